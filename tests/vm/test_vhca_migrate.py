# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath-migrate takes a guest to another QEMU while unmodified perftest writes from it, or to it, over
InfiniBand by LID. Its HCA goes and comes with the NIC that is exchanged, and the new one has another
place in the fabric: LID, GID, queue pair numbers and keys change. perftest ends as it always does."""

import agent
from migrate import Migration
from move import moving
from move_fabric import FabricMover
from unmodified import bandwidth_report, start, wait_traffic

COMMAND = "ib_write_bw -s 4096 -t 16 -D 30 -F -b"

# With NICs of its own kind under it QEMU has no HCA: the NIC stands for the HCA's function.
NIC_IS_THERE = r"ls -d /sys/class/net/*/device | grep -qv /mgmt/"


class MigratingMover(FabricMover):
    """By repath-migrate and the agent; the hooks do what a driver's probe() and remove() do."""

    def migrate(self, guest, mode="early"):
        name, before = self.device(guest), self.numbers(guest)
        old, new = self.host(guest), self.spare.pop(0)
        there = f"/sys/class/infiniband/{name}"
        agent.set_hook(guest, "device-gone",
                       f"[ ! -e {there} ] || {self.fabric.remove_command(name)}")
        agent.set_hook(guest, "device-new", f"""
            until {NIC_IS_THERE}; do usleep 20000; done
            [ -e {there} ] || {self.fabric.add_command(new, name)}""")
        nic = guest.nics[0].mac
        move = Migration(guest, mode, dev=name)
        assert move.wait() == 0, move.text
        move.adopt()
        self.fabric.has_gone(old)
        self.fabric.has_come(new, name, guest)
        self.spare.append(old)
        assert [nic.mac for nic in guest.nics] == [move.mac] != [nic]
        after = self.numbers(guest)
        self.check_numbers(before, after)
        self.note_inflight(next(s for s in move.report["stages"] if s["stage"] == "suspend"))
        print(f"  {mode}: {before}\n  became {after}", flush=True)
        return move


def test(bed):
    fabric = bed.fabric("mesh:3", guests={"a": ["H1"], "b": ["H2"]})
    a, b = fabric.guests
    b.plug("rdma")
    serving = agent.serve(b)
    with moving(a, b, mover=MigratingMover(fabric, spare=["H3"], comm="ib_write_bw")) as mover:
        for server, client, mode in ((a, b, "early"), (b, a, "late")):
            jobs = start(server, client, COMMAND)
            wait_traffic(a)
            mover.migrate(b, mode)
            wait_traffic(b)
            assert all(job.running for job in jobs), "ended before the move did: it proves nothing"
            for job in jobs:
                text = job.wait(90)
                assert " LID 0x" in text and "GID" not in text, text
            print(f"  {bandwidth_report(jobs[1])}", flush=True)
    assert serving.running, serving.output()
