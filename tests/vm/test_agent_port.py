# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The agent answers on its port whatever comes: garbage, half lines, hosts that leave and come,
a migration in between, a port that is plugged anew. It needs no module for that."""

import agent as agents

PROCESSORS = 1
PORT_NAMES = "/sys/class/virtio-ports/*/name"


def refuses(agent, cmd, **members):
    try:
        agent.ask(cmd, **members)
    except agents.Refused as refused:
        return str(refused)
    raise AssertionError(f"{cmd} {members} was not refused")


def cpu_seconds(guest):
    """How much of a second the agent is busy."""
    ticks = "awk '{print $14 + $15}' /proc/$(pidof repath)/stat"
    before, after = guest.run(f"{ticks}; sleep 1; {ticks}").split()
    return (int(after) - int(before)) / 100


def test(bed):
    guest = bed.guest("a")
    job = agents.start(guest)
    guest.wait_until("pidof repath")
    assert cpu_seconds(guest) < 0.3, "it spins without a host"
    agent = agents.connect(guest.agent_path)

    assert [m["ok"] for m in agents.raw(agent, "garbage\n\0\x01{\n[]\n")] == [False] * 3
    assert [m["ok"] for m in agents.raw(agent, "x" * 100000 + "\n")] == [False]
    assert agents.raw(agent, '{"id":"half"') == []
    assert agents.raw(agent, ',"cmd":"ping"}\n') == [{"id": "half", "ok": True}]
    assert "modprobe" in refuses(agent, "version")
    assert "modprobe" in refuses(agent, "suspend", dev="rxe0")
    assert "not a command" in refuses(agent, "reboot")
    assert "dev" in refuses(agent, "device-gone", dev="rxe0; touch /tmp/owned")
    assert '"dev" is not as it should be' in refuses(agent, "wait-device", dev="../../tmp")
    assert "dev" in refuses(agent, "relay", port=1)
    for notice in ("00", "0" * 399 + "x", "0" * 402):
        assert "notice" in refuses(agent, "relay", dev="rxe0", notice=notice)
    assert "dev" in refuses(agent, "moved", dgid="10.0.0.2", to="10.0.0.3")
    for wrong in ({"to": "nowhere"}, {"lid": 0}, {"lid": 0xc000}, {"to": 5}):
        assert next(iter(wrong)) in refuses(agent, "moved", dev="rxe0", dgid="10.0.0.2", **wrong)
    assert "modprobe" in refuses(agent, "moved", dev="rxe0", dgid="10.0.0.2", to="10.0.0.3")
    assert "rxe9 has not come" in refuses(agent, "wait-device", dev="rxe9", timeout=0.2)
    agent.ask("wait-device", dev="rxe0", timeout=5)

    # A host that leaves in the middle of a line, and another one.
    agents.raw(agent, '{"id":1,"cmd":"pi', wait=0)
    agent.close()
    for _ in range(3):
        agent = agents.connect(guest.agent_path)
        agent.ask("ping")
        agent.close()
    assert cpu_seconds(guest) < 0.3, "it spins after its host has left"
    assert guest.status("repath agent") == 1, "a second agent took the port"

    # Through a migration, with an answer outstanding.
    agent = agents.connect(guest.agent_path)
    dst = guest.prepare_destination(with_nics=True)
    there = agents.Agent(dst.agent_path, agents.Interrupt())
    agents.raw(agent, '{"id":"later","cmd":"wait-device","dev":"rxe7","timeout":60}\n', wait=0.1)
    guest.start_migration(dst)
    dst.qmp.wait_event("RESUME")
    guest.adopt(dst)
    there.wait_for_it(10)
    there.ask("wait-device", dev="rxe0", timeout=5)

    # The hooks: a real unplug in between, another MAC, another name.
    there.ask("device-gone", dev="rxe0")
    assert "rxe0" not in guest.run("rdma link show")
    guest.unplug(guest.nics[0])
    nic = bed.new_nic(guest, "rdma", None, None, "virtio-net-pci")
    guest.qemu.qmp("device_add", **nic.device())
    there.ask("device-new", dev="rxe0", timeout=20)
    there.ask("wait-device", dev="rxe0", timeout=5)
    assert guest.run("cat /sys/class/net/rdma0/address").strip() == nic.mac
    assert "10.0.0.1/24" in guest.run("ip -4 address show dev rdma0")
    assert guest.gid().endswith("ffff:0a00:0001"), guest.gid()
    there.ask("device-new", dev="rxe0")     # as it is there already

    # The port itself is taken away and comes again.
    guest.qemu.qmp("device_del", id="agent-port")
    guest.wait_until(f"! grep -qx repath.0 {PORT_NAMES}")
    assert cpu_seconds(guest) < 0.3, "it spins without a port"
    guest.qemu.qmp("device_add", driver="virtserialport", id="agent-port", chardev="agent", name="repath.0")
    there.wait_for_it(10)
    assert job.running, job.output()
    assert "owned" not in guest.run("ls /tmp")
