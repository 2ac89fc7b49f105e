# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's own perftest, unmodified, is moved in full run: polling and events,
1 and 16 queue pairs, client and server. It goes on and ends with its normal report. LONG=1: all of
its operations both ways; else some."""

import re

from move import LONG, moving
from unmodified import move_in_full_run, start

TIMEOUT = 900
SECONDS = 20

# program, options, the end that is moved. All run both ways: a passive end has nothing under way.
# Waiting for events perftest runs for a number of messages, not for a time.
RUNS = [
    ("ib_write_bw", f"-s 4096 -t 16 -D {SECONDS}", "client"),
    ("ib_write_bw", f"-s 1024 -q 16 -t 4 -D {SECONDS}", "server"),
    ("ib_send_bw", "-s 1024 -t 16 -r 64 -n 40000 -e", "client"),
    ("ib_send_bw", f"-s 1024 -q 16 -t 4 -r 32 -D {SECONDS}", "client"),
    ("ib_read_bw", "-s 1024 -t 16 -n 40000 -e", "client"),
    ("ib_read_bw", f"-s 1024 -q 16 -t 4 -D {SECONDS}", "server"),
    ("ib_atomic_bw", "-t 16 -n 60000 -e", "client"),
    ("ib_atomic_bw", f"-q 16 -t 4 -D {SECONDS}", "client"),
]
SOME = RUNS[2], RUNS[5], RUNS[7]


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for program, options, end in RUNS if LONG else SOME:
            mover.comm = program
            moved, other = (b, a) if end == "client" else (a, b)
            jobs = start(a, b, f"{program} -d rxe0 -x 1 -F -b {options}")
            move_in_full_run(mover, jobs, moved, other)
            report = re.search(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$",
                               jobs[1].output(), re.M)
            assert report, f"{program} has no report:\n{jobs[1].output()}"
            assert float(report.group(1)) > 0, report.group(0)
            print(f"  {program} {options}: {report.group(0).strip()}", flush=True)
