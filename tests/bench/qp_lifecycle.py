# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Create and destroy a queue pair, with the module loaded and without, in turn, beside 1, 1024 and
16384 queue pairs that stay; soft RoCE. And what memory the module takes, and for each that stays. First in
a guest whose clock counts instructions, where the machine's noise is not seen, then in time:
QP_LIFECYCLE_ROUNDS says how often."""

import os

import bed as beds
from statistic import median

BED = False
# Those beside it, rounds.
COUNTED = ((1, 4), (1024, 4), (16384, 2))
ROUNDS = int(os.environ.get("QP_LIFECYCLE_ROUNDS", "15"))
TIMED = ((1, ROUNDS), (1024, ROUNDS), (16384, ROUNDS))
MEMORY = (1, 16384)     # the module alone; fewer objects are lost among what else comes and goes
TIMES = 300


def take(guest):
    """The median of TIMES, ns or instructions."""
    before = int(guest.run("wc -l < /tmp/took"))
    guest.run(f"echo {TIMES} > /tmp/times")
    guest.wait_until(f"[ $(wc -l < /tmp/took) -gt {before} ]", 120)
    return int(guest.run("tail -n 1 /tmp/took"))


def held_kb(guest):
    """By objects and code of the kernel. What is free does not tell: freed pages wait where they are
    not counted."""
    guest.run("echo 3 > /proc/sys/vm/drop_caches")
    rows = guest.run("grep -E '^(SUnreclaim|VmallocUsed):' /proc/meminfo")
    return sum(int(row.split()[1]) for row in rows.splitlines())


def load(guest):
    """And wait until all that belongs to loading is over."""
    guest.load_repath()
    guest.wait_until("[ $(cat /sys/module/ib_repath/parameters/rescans) != 0 ]", 120)
    guest.run("repath adopt")


def rounds_of(guest, active, rounds):
    """[{loaded: what one took}], [bytes of memory that the module takes]."""
    guest.run("rm -f /tmp/times /tmp/took; mkfifo /tmp/times")
    job = guest.start(f"exec holdqp -r -q {active} <> /tmp/times > /tmp/took")
    guest.wait_until("grep -q '}' /tmp/took", 300)
    pairs, memory = [], []
    for number in range(rounds):
        took = {}
        # Who goes first changes, so that neither profits from the order.
        for loaded in (True, False) if number % 2 else (False, True):
            before = held_kb(guest) if active in MEMORY and number < 3 else None
            if loaded:
                load(guest)
                if before:
                    memory.append((held_kb(guest) - before) * 1024)
            took[loaded] = take(guest)
            if loaded:
                guest.run("rmmod ib_repath")
        pairs.append(took)
    job.kill(9)
    guest.wait_until("[ -z \"$(pidof holdqp)\" ]", 300)
    return pairs, memory


def bench(record):
    for unit, cases in (("instructions", COUNTED), ("ns", TIMED)):
        with beds.Bed() as bed:
            bed.icount = unit == "instructions"
            guest, taken = bed.guest("a", memory=1024), {}
            for active, rounds in cases:
                pairs, memory = rounds_of(guest, active, rounds)
                ratios = sorted(took[True] / took[False] for took in pairs)
                record(f"create and destroy beside {active}, {unit}",
                       median(took[True] for took in pairs), median(took[False] for took in pairs),
                       "at most 2 % more", 1.02, rounds=rounds, median_ratio=median(ratios),
                       least_ratio=ratios[0], most_ratio=ratios[-1])
                taken[active] = median(memory) if memory else 0
        one, many = (taken[active] for active in MEMORY)
        record("kB of memory that the module takes beside one", one / 1024)
        record(f"memory for each of {MEMORY[1]}, bytes", (many - one) / (MEMORY[1] - MEMORY[0]), None, "at most 256", most=256)
