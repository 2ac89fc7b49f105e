# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath-migrate takes a guest to another QEMU and another NIC, detaching early and late, and late with a
copy that takes long of a guest that writes little; with fakeshim as the process, so that only the module,
the agent and the scripts are under test."""

import agent
from migrate import Migration

PROCESSORS = 1
TIMEOUT = 240
BOTH = ["prepare", "unplug", "plug", "device-new", "resume", "suspend", "device-gone", "migrate"]


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    job = agent.start(b)
    server = a.start("fakeshim -q 2")
    client = b.start(f"fakeshim -q 2 {a.mgmt_ip}")
    client.wait_for("traffic ok", 60)

    slowly = ("--max-bandwidth", str(40 << 20))
    for count, (mode, options) in enumerate((("early", ()), ("late", ()), ("late", slowly)), 2):
        before = b.gid(index=0)
        move = Migration(b, mode, options=options)
        assert move.wait() == 0, move.text
        move.adopt()
        assert b.gid(index=0) != before
        assert [nic.mac for nic in b.nics] == [move.mac]
        assert "10.0.0.2/24" in b.run("ip -4 address show dev rdma0")
        report = move.report
        assert set(move.stages()) == set(BOTH + ["copy"] * (mode == "late")), report
        parts = {stage["stage"]: stage.get("parts", {}) for stage in report["stages"]}
        assert set(parts["suspend"]) == {"check", "gate", "drain", "release"}, parts
        assert set(parts["resume"]) == {"open", "recreate", "connect", "replay"}, parts
        for stage in report["stages"]:
            assert sum(stage.get("parts", {}).values()) <= stage["ms"], stage
        assert 0 < report["blackout_ms"] < report["total_ms"], report
        for end in (server, client):
            end.wait_for(f"(?s)(traffic ok.*){{{count}}}", 60)
    order = move.stages()
    assert order.index("copy") < order.index("suspend") < order.index("migrate"), order
    assert order.index("migrate") < order.index("unplug"), order
    assert next(stage for stage in report["stages"] if stage["stage"] == "copy")["passes"] > 1, report
    assert job.running, job.output()
