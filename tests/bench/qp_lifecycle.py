# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Create and destroy a queue pair, with the module loaded and without, in turn, beside 1, 1024 and
16384 queue pairs that stay; soft RoCE. And what memory the module takes for each that stays."""

from statistic import median

ACTIVE = (1, 1024, 16384)
ROUNDS = 15
TIMES = 300


def take(guest):
    """The median of TIMES, ns."""
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


def bench(bed, record):
    (a,) = bed.guests("a", memory=1024)
    for active in ACTIVE:
        a.run("rm -f /tmp/times /tmp/took; mkfifo /tmp/times")
        job = a.start(f"exec holdqp -r -q {active} <> /tmp/times > /tmp/took")
        a.wait_until("grep -q '}' /tmp/took", 300)
        pairs, memory = [], []
        for number in range(ROUNDS):
            took = {}
            # Who goes first changes, so that neither profits from the order.
            for loaded in (True, False) if number % 2 else (False, True):
                # Fewer objects are lost among what else comes and goes.
                before = held_kb(a) if active >= 16384 and number < 3 else None
                if loaded:
                    load(a)
                    if before:
                        memory.append((held_kb(a) - before) * 1024 / active)
                took[loaded] = take(a)
                if loaded:
                    a.run("rmmod ib_repath")
            pairs.append(took)
        ratios = sorted(took[True] / took[False] for took in pairs)
        record(f"create and destroy beside {active}, ns", median(t[True] for t in pairs),
               median(t[False] for t in pairs), "at most 2 % more", 1.02, rounds=ROUNDS,
               median_ratio=median(ratios), least_ratio=ratios[0], most_ratio=ratios[-1])
        if memory:
            record(f"memory of the module for each of {active}, bytes, its code with it",
                   median(memory))
        job.kill(9)
        a.wait_until("[ -z \"$(pidof holdqp)\" ]", 300)
