# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest is live-migrated: what runs in it goes on, with and without its NIC, and a migration
that is called off leaves it where it was."""


def counts_on(job):
    """The job's counter grows from where it is now."""
    seen = max(int(line) for line in job.output().split() if line.isdigit())
    job.wait_for(rf"^{seen + 5}$")


def test(bed):
    a, b = bed.guests("a", "b")
    counter = b.start("n=0; while :; do n=$((n+1)); echo $n; usleep 20000; done")
    ping = a.start("ping -i 0.1 192.168.77.2")
    stream = a.start("sleep 1000 | nc -l -p 5000")
    a.wait_until("netstat -ltn | grep -q :5000")
    sender = b.start("n=0; while :; do n=$((n+1)); echo $n; usleep 20000; done | nc 192.168.77.1 5000")
    counter.wait_for(r"^10$")
    stream.wait_for(r"^10$")

    # Called off: the guest stays in its first QEMU.
    dst = b.prepare_destination(with_nics=True)
    first = b.qemu
    b.start_migration(dst, bandwidth=1 << 20)
    b.migrate_cancel(dst)
    assert b.qemu is first and not dst.running
    counts_on(counter)

    # With its NIC: rxe is software and comes along.
    figures = b.migrate()
    assert b.qemu is not first and not first.running
    assert 0 < figures["downtime_ms"] < 5000, figures
    assert figures["total_ms"] >= figures["downtime_ms"], figures
    for job in (counter, stream):
        counts_on(job)
    a.run("ping -c 1 10.0.0.2")

    # Without, and with another one at the destination.
    b.rxe_del("rxe0")
    b.unplug(b.nics[0])
    b.migrate()
    nic = b.plug("rdma", ip="10.0.0.12")
    b.rxe_add("rxe0", nic)
    a.run("ping -c 1 10.0.0.12")
    for job in (counter, stream):
        counts_on(job)

    # As an external program does it.
    dst = b.prepare_destination(with_nics=True)
    b.start_migration(dst)
    dst.qmp.wait_event("RESUME")
    b.adopt(dst)
    assert [n.mac for n in b.nics] == [nic.mac]
    for job in (counter, stream):
        counts_on(job)
    assert ping.running and sender.running

    numbers = [int(line) for line in counter.output().split()]
    assert numbers == list(range(1, len(numbers) + 1)), "output was lost or doubled"
