# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Instructions that the shim adds to a post and to a poll, counted by callgrind inside these calls
only, on a device that does nearly nothing (tests/unit/mock_null.c); and how many of them are those of
the lines that ask whether the gate is closed, or a number another than the device's."""

import os
import re
import subprocess
import tempfile

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
# The lines that ask, by what they say; each is there in this file.
ASKS = {"libshim/post_send.c": ("if (unlikely(qp->slow & slow))", "ibqp->qp_type == IBV_QPT_UD"),
        "libshim/post_recv.c": ("if (unlikely(qp->slow & slow))",),
        "libshim/poll.c": ("cq->soft_n || !cq->real", "qp->foreign")}


def asking_lines():
    """{(file, line)} of ASKS."""
    found = set()
    for path, texts in ASKS.items():
        with open(os.path.join(image.TOP, path)) as f:
            lines = f.read().splitlines()
        for text in texts:
            numbers = [n for n, line in enumerate(lines, 1) if text in line]
            if not numbers:
                raise RuntimeError(f"{path} does not say {text!r} any more")
            found |= {(path, n) for n in numbers}
    return found


def by_line(text):
    """Instructions by (file, line) in what callgrind has written, without those of calls from there."""
    costs, path, inclusive = {}, "", False
    for line in text.splitlines():
        if found := re.match(r"f[lie]=(.*)", line):
            path = found[1]
        elif line.startswith("calls="):
            inclusive = True
        elif found := re.match(r"(\d+) (\d+)$", line):
            if not inclusive:
                at = path[path.find("libshim/"):], int(found[1])
                costs[at] = costs.get(at, 0) + int(found[2])
            inclusive = False
    return costs


def count(way, environment, out="/dev/null"):
    """Instructions of a call."""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/unit", **environment}
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
         "--compress-strings=no", "--compress-pos=no",
         f"--toggle-collect=call_{way}", f"{BUILD}/bench/insns", way, str(COUNT)],
        env=env, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        raise RuntimeError(f"{way}: {result.stdout}{result.stderr}")
    return int(found.group(1)) / COUNT


def bench(record):
    for way, text, each in WAYS:
        plain = count(way, {}) / each
        with tempfile.NamedTemporaryFile("r") as out:
            ours = count(way, {"LD_PRELOAD": f"{BUILD}/libibrepath.so"}, out.name) / each
            costs = by_line(out.read())
        asks = sum(costs.get(at, 0) for at in asking_lines()) / COUNT / each
        if not asks:
            raise RuntimeError(f"{way}: none of the lines that ask was run, or the shim has no -g")
        record(f"instructions added to {text}", ours - plain, aim="at most 100", most=100,
               with_shim=ours, without=plain)
        record(f"of these, gate and identity check, in {text}", asks, aim="at most 10", most=10)
