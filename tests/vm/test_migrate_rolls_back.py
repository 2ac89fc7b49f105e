# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whatever goes wrong while repath-migrate moves a guest, the process goes on where it was; or it
waits, is said to, and goes on when it is resumed as told. fakeshim is the process."""

import signal
import time

import agent
from migrate import Migration, settings

PROCESSORS = 1
TIMEOUT = 280
NO_SUCH_NIC = "driver=no-such-nic,id=new"


def stays(move, job, old_mac, error, status=1):
    """The move fails, everything is as before, and the process still moves data."""
    guest = move.guest
    assert move.wait() == status, move.text
    assert error in move.report["error"], move.report
    assert move.report["ok"] is False
    move.forget()
    assert guest.run("cat /sys/class/net/rdma0/address").strip() == old_mac
    assert job.running, job.output()
    assert "moving 0" in guest.run("repath process")
    assert settings(guest) == move.settings


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    nic = b.nics[0]
    server = a.start("fakeshim -q 2")
    client = b.start(f"fakeshim -q 2 {a.mgmt_ip}")
    client.wait_for("traffic ok", 60)

    stays(Migration(b), client, nic.mac, "agent does not answer", status=3)
    agent.start(b)

    # Somebody without the shim: refused, nothing touched.
    holder = b.start("exec holdqp")
    holder.wait_for("}")
    stays(Migration(b), client, nic.mac, "holdqp")
    holder.kill()
    holder.wait(check=False)
    assert "released" not in client.output()

    # Nobody listens at the destination: unplugged already, plugged again.
    stays(Migration(b, uri="unix:/nowhere"), client, nic.mac, "migration failed")
    client.wait_for("resumed", 60)

    # A signal, early and late, in the middle of the copy.
    for mode, stage, number in (("early", "suspend", signal.SIGHUP),
                                ("late", "prepare", signal.SIGINT)):
        move = Migration(b, mode, options=("--max-bandwidth", str(4 << 20)))
        wait_copying(b)
        move.process.send_signal(number)
        stays(move, client, nic.mac, "interrupted")
        assert stage in move.stages()

    # Late, and no new NIC to be had: the machine moves and keeps its own.
    move = Migration(b, "late", new_nic=NO_SUCH_NIC)
    assert move.wait() == 1, move.text
    assert "no-such-nic" in move.report["error"], move.report
    assert "has moved" in move.report["left"], move.report
    move.adopt()
    assert [n.mac for n in b.nics] == [nic.mac]
    assert "moving 0" in b.run("repath process")

    # Early, and no new NIC: the processes wait; then by hand what the report says.
    move = Migration(b, new_nic=NO_SUCH_NIC)
    assert move.wait() == 4, move.text
    assert "repath resume" in move.report["left"], move.report
    move.adopt()
    b.plug("rdma", ip="10.0.0.12")
    b.rxe_add("rxe5")
    b.run(f"repath resume {move.report['op']} on rxe5")
    for job in (client, server):
        job.wait_for("(?s)traffic ok.*traffic ok", 60)
        assert job.running, job.output()


def wait_copying(guest, timeout=60):
    end = time.monotonic() + timeout
    while guest.qemu.qmp("query-migrate").get("ram", {}).get("transferred", 0) < 1 << 20:
        if time.monotonic() > end:
            raise TimeoutError("the migration does not begin")
        time.sleep(0.02)

