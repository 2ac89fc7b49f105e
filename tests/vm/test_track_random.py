# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""At moments drawn by lot processes come, end and are killed, with the shim and without, the module is
unloaded and loaded, the device is suspended, deleted, or its NIC taken out of its slot. After each round
the module tracks what the kernel has, no more and no less; and it can always be unloaded.

STRESS_ROUNDS=n plays another number of rounds than 15, STRESS_SEED=n the same again.
"""

import os
import random
import time
from types import SimpleNamespace

import tracking
from move import SHIM

GUESTS = 1
TIMEOUT = 3600
ROUNDS = int(os.environ.get("STRESS_ROUNDS") or 15)
SPAN = 500000       # us, of a round

PROGRAMS = ("-q 8 -c", "-q 4 -t ud", "-q 2 -t uc", "-q 16 -c -b", "-q 1 -m 20")
STAY = "/tmp/stay"      # PIDs
REMOVE = "dev=$(readlink -f /sys/class/net/rdma0/device) && echo 1 > ${dev%/*}/remove"
# Of a round that does not end: who waits where.
HANGS = "ps -o pid,stat,args | grep -v '\\['; for p in /proc/[0-9]*; do " \
        "[ -s $p/cmdline ] && echo ${p#/proc/} $(cat $p/comm) && cat $p/task/*/stack; done; true"
LOOK = "repath qp; repath process; repath connection; repath stats all; repath status"


class Round:
    """What happens in one, as a shell's script. Some of its processes are still there at its end: they
    die in the next."""

    def __init__(self, dice):
        self.dice = dice
        self.lines = [f"old=$(cat {STAY}); : >{STAY}"]
        self.takes_device = False
        self.at(self.moment(), "kill -KILL $old")
        for act in dice.sample((self.reload, self.delete, self.unplug, self.suspend, self.look),
                               dice.randint(1, 3)):
            act()
        for _ in range(dice.randint(1, 4)):
            self.program()

    def moment(self, since=0):
        return self.dice.randrange(since, SPAN)

    def at(self, when, command):
        self.lines.append(f"(usleep {when}; {command}) >/dev/null 2>&1 & waits=\"$waits $!\"")

    def program(self):
        begin = self.moment()
        shim = self.dice.random() < 0.5
        fate = self.dice.choice(("KILL", "KILL", "TERM", None))
        command = (f"exec env {SHIM if shim else ''} holdqp -d rxe0 "
                   f"{self.dice.choice(PROGRAMS)}")
        if fate is None and not shim and not self.takes_device:
            self.lines.append(f"(usleep {begin}; {command}) >{STAY}.{begin} 2>&1 &"
                              f"echo $! >>{STAY}; stays=$!")
            # The round ends when it has all that it wants.
            self.lines.append(f"(while kill -0 $stays && ! grep -q . {STAY}.{begin}; do"
                              f" usleep 10000; done; rm {STAY}.{begin}) & waits=\"$waits $!\"")
            return
        self.at(begin, command)
        self.lines.append("one=$!")
        self.at(self.moment(begin), f"kill -{fate or 'KILL'} $one")
        self.at(SPAN, "kill -KILL $one")

    def reload(self):
        unload = self.moment()
        self.at(unload, "rmmod ib_repath")
        self.at(self.moment(unload), "insmod /lib/repath/ib_repath.ko unplug_ms="
                                     f"{self.dice.choice((0, 200))}")

    def delete(self):
        self.takes_device = True
        self.at(self.moment(), "rdma link delete rxe0")

    def unplug(self):
        self.takes_device = True
        self.at(self.moment(), REMOVE)

    def suspend(self):
        self.at(self.moment(), "repath suspend rxe0 timeout 1; repath resume rxe0 timeout 1")

    def look(self):
        for command in LOOK.split("; ") + ["repath adopt"]:
            self.at(self.moment(), command)

    def script(self):
        return "\n".join([f"usleep {SPAN} & waits=$!", *self.lines, "wait $waits", ":"])


def restore(guest):
    """Device and module are there again."""
    if guest.status("[ -e /sys/class/net/rdma0 ]"):
        guest.run("echo 1 > /sys/bus/pci/rescan")
        guest.configure(guest.nics[0])
    if guest.status("[ -e /sys/class/infiniband/rxe0 ]"):
        guest.rxe_add()
    if guest.status("grep -q ^ib_repath /proc/modules"):
        guest.load_repath()


def test(bed):
    a = bed.guest("a")
    a.run("modprobe dummy; ip link add dummy0 type dummy; ip link set dummy0 up;"
          "ip address add 10.9.0.1/24 dev dummy0")
    a.rxe_add("rxe1", SimpleNamespace(ifname="dummy0", ip="10.9.0.1"))
    a.load_repath()
    a.run(f": >{STAY}")
    stayer, numbers = tracking.hold(a, "-d rxe1 -q 3 -c")

    seed = int(os.environ.get("STRESS_SEED") or time.time())
    print(f"  STRESS_SEED={seed}", flush=True)
    dice = random.Random(seed)
    for number in range(ROUNDS):
        script = Round(dice).script()
        try:
            a.run(script, timeout=60)
            restore(a)
            found = tracking.compare_with_kernel(a)
            assert set(numbers["qpns"]) == {qpn for (dev, qpn), qp in found.items()
                                            if dev == "rxe1" and "pid" in qp}, found
        except Exception:
            print(f"  round {number}:\n{script}\n{a.run(HANGS)}", flush=True)
            raise

    a.run(f"kill -KILL $(cat {STAY}) || true")
    tracking.wait_qps(a, 3)
    device = tracking.device(a, "rxe1")
    assert (device["contexts"], device["processes"]) == (1, 1), device
    stayer.kill(9)
    tracking.wait_qps(a, 0)
    a.run("rmmod ib_repath")
