# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""vfabric in virtual time, and OpenSM on it beside ibsim: what tests/vfabric/bench measures."""

import json
import os
import subprocess

import image

BED = False
PROGRAM = os.path.join(image.TOP, "tests", "vfabric", "bench")


def rows(name):
    with subprocess.Popen([PROGRAM, name], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise RuntimeError(f"{PROGRAM} {name}: status {process.returncode}")


def speed(record):
    copies = []
    for row in rows("speed"):
        copies.append(row["copies_per_hop"])
        record(f"{row['switches']} switches: ns a packet-hop beside a copy of 2 KiB", row["hop_ns"],
               row["copy_ns"], "at most ten", 10, hops_per_s=row["hops_per_s"],
               events_per_s=row["events_per_s"])
    record("copies a packet-hop: the largest fabric beside the smallest", copies[-1], copies[0],
           "flat: within a factor of two", 2)


def fattree(record):
    for row in rows("fattree"):
        record(f"648-port fat tree, {row['pattern']}, {row['vls']} VLs: Gbit/s a host",
               row["gbps_per_host"],
               **{name: row[name] for name in ("p99_us", "run_s", "events_per_s", "memory_mib")})


def bringup(record):
    for row in rows("bringup"):
        record(f"{row['nodes']} nodes, OpenSM's {row['engine']}: s to SUBNET UP beside ibsim",
               row["up_s"], row["ibsim_s"], memory_mib=row["memory_mib"])


def bench(record):
    speed(record)
    fattree(record)
    bringup(record)
