# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Instructions that the shim adds to a post and to a poll, counted by callgrind inside these calls
only, on a device that does nearly nothing (tests/unit/mock_null.c)."""

import os
import re
import subprocess

import image

BED = False
COUNT = 2000
BUILD = os.path.join(image.TOP, "build")
# name, what is done in one counted call
WAYS = [("post_send", "ibv_post_send of one signalled request", 1),
        ("wr_send", "ibv_wr_start, _send, _set_sge, _complete", 1),
        ("post_recv", "ibv_post_recv of one request", 1),
        ("poll_one", "ibv_poll_cq that finds one of one", 1),
        ("poll_batch", "ibv_poll_cq that finds 16 of 16, each", 16),
        ("poll_empty", "ibv_poll_cq that finds none", 1)]


def count(way, environment):
    """Instructions of COUNT calls."""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/unit", **environment}
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
         f"--toggle-collect=call_{way}", f"{BUILD}/bench/insns", way, str(COUNT)],
        env=env, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        raise RuntimeError(f"{way}: {result.stdout}{result.stderr}")
    return int(found.group(1)) / COUNT


def bench(record):
    for way, text, each in WAYS:
        plain = count(way, {}) / each
        ours = count(way, {"LD_PRELOAD": f"{BUILD}/libibrepath.so"}) / each
        record(f"instructions added to {text}", ours - plain, aim="at most 100", most=100,
               with_shim=ours, without=plain)
