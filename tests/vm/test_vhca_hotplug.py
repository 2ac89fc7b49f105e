# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""HCAs are removed while programs use them, many times and at any moment: the programs see what a
pulled PCI card shows, and nothing of the HCA stays behind."""

import random

from move import LONG

PROCESSORS = 1

ROUNDS = 25 if LONG else 12

# Requests, memory, queues: gone with the HCA; the other end finds nobody.
PULLED = """
    open a vhca1 1
    open b vhca2 1
    connect a b
    recv b 50
    recv a 50
    send a 20 3000
    send b 20 3000
    done b send 20 success
    done a send 20 success
    send b 20 100000
    !echo vhca2 > /sys/devices/vhca/remove
    event b device_fatal
    fails send b 1 64
    fails sqd b
    fails is b state rts 0
    !test ! -e /sys/class/infiniband/vhca2
    send a 1 64
    done a send 1 transport_retry_counter_exceeded
    is a state err
"""

# What may be going on at that moment; all but the first end by themselves when the HCA is gone.
USERS = ("exec holdqp -d vhca2 -q 20 -m 20 -c",
         "while holdqp -b -d vhca2 -q 8 -m 8; do :; done",
         "while ibv_devinfo -d vhca2; do :; done",
         "exec rcheck -d vhca2 -m all -q 4 -n 16 -b --vary -T 60 127.0.0.1")


def test(bed):
    fabric = bed.fabric("mesh:2")
    a = fabric.guest
    chance = random.Random(1)
    for _ in range(3):
        fabric.play(PULLED)
        fabric.place.pop("H2")
        fabric.add("H2")
        fabric.wait_active()
    for _ in range(ROUNDS):
        server = a.start("exec rcheck -d vhca1")
        users = [a.start(command + " >/dev/null 2>&1") for command in USERS]
        a.run(f"usleep {chance.randrange(1500) * 1000}")
        fabric.remove("H2")
        for job in users[1:]:
            job.wait(60, check=False)
        assert users[-1].status, "rcheck has not noticed"
        # The one waits for nothing, so it has seen nothing; the other one perhaps for its client.
        for job in (users[0], server):
            job.kill(9)
            job.wait(20, check=False)
        fabric.add("H2")
        fabric.wait_active()
    # With programs on both, the driver stays as long as the last one.
    holder = a.start("exec holdqp -d vhca1 -q 4 -c")
    holder.wait_for("qpns")
    for host in list(fabric.hosts):
        fabric.remove(host)
    holder.kill(9)
    holder.wait(20, check=False)
    a.wait_until("rmmod ib_vhca")
