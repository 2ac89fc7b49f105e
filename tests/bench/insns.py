# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Instructions that the shim adds to a post and to a poll, counted by callgrind inside these calls
only, on a device that does nearly nothing (tests/unit/mock_null.c); how many of them are those of the
lines that ask whether the gate is closed, or a number another than the device's; how many those that log
what may be replayed, and the bytes of that. And the cycles that a request takes with its completion, with the shim and without,
in turn: a ratio, and beside the best published sums."""

import os
import re
import subprocess
import tempfile

import image

BED = False
COUNT = 2000
PUBLISHED_CYCLES = 8.3
BUILD = os.path.join(image.TOP, "build")
SHIM = {"LD_PRELOAD": f"{BUILD}/libibrepath.so"}
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
# Those that log a request: into its slot, and on to the next.
IN_SLOT = ("struct rp_slot *s = r->next;", "s->wr_id = wr->wr_id;", "s->index = r->head;",
           "*slot_sge(s) = wr->sg_list[0];", "sge[i] = wr->sg_list[i];")
LOGS = {"libshim/post_send.c": (*IN_SLOT, "memcpy(&s->send.num_sge, &wr->num_sge,",
                                "s->hidden = !((wr->send_flags | qp->sig_all)", "s->sends = r->sends +",
                                "r->sends = s->sends;"),
        "libshim/post_recv.c": (*IN_SLOT, "s->recv.num_sge = 1;", "s->recv.num_sge = wr->num_sge;"),
        "libshim/ring.h": ("if (likely(r->head < r->room))", "r->head++;", "r->next = r->next->next;"),
        "libshim/shim.h": ("return (unsigned int)op < 32 && (set >> op & 1);",)}
LOGGED = ("post_send", "wr_send", "post_recv")


def lines_of(texts_by_file):
    """{(file, line)} of ASKS or LOGS."""
    found = set()
    for path, texts in texts_by_file.items():
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


def environment(preload):
    return {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/unit", **preload}


def insns(preload, *words):
    """What it prints by itself."""
    return subprocess.run([f"{BUILD}/bench/insns", *words], env=environment(preload), capture_output=True, text=True,
                          check=True).stdout


def count(way, preload, out="/dev/null"):
    """Instructions of a call."""
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
         "--compress-strings=no", "--compress-pos=no",
         f"--toggle-collect=call_{way}", f"{BUILD}/bench/insns", way, str(COUNT)],
        env=environment(preload), capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        raise RuntimeError(f"{way}: {result.stdout}{result.stderr}")
    return int(found.group(1)) / COUNT


def cycles(way, preload):
    """Of a call with its completion."""
    return float(insns(preload, "cycles", way, "20000"))


def added_cycles(record, way, text):
    """The least of several runs each, in turn: a machine that others use as well only adds."""
    plain, ours = (min(times) for times in zip(*(
        [cycles(way, {}), cycles(way, SHIM)] for _ in range(5))))
    record(f"cycles added to {text}", ours - plain, aim="below 8.3, the best published", most=PUBLISHED_CYCLES,
           with_shim=ours, without=plain, share=(ours - plain) / plain)


def logged_bytes():
    """Of a send request, of a receive."""
    return [int(n) for n in insns(SHIM, "bytes", "0").split()]


def bench(record):
    for kind, size in zip(("send request", "receive"), logged_bytes()):
        record(f"bytes of the log, a {kind} with one element", size)
    for way, text, each in WAYS:
        plain = count(way, {}) / each
        with tempfile.NamedTemporaryFile("r") as out:
            ours = count(way, SHIM, out.name) / each
            costs = by_line(out.read())
        asks, logs = (sum(costs.get(at, 0) for at in lines_of(texts)) / COUNT / each
                      for texts in (ASKS, LOGS))
        if not asks or (way in LOGGED and not logs):
            raise RuntimeError(f"{way}: none of the lines that ask or log was run, or the shim has no -g")
        record(f"instructions added to {text}", ours - plain, aim="at most 100", most=100,
               with_shim=ours, without=plain)
        record(f"of these, gate and identity check, in {text}", asks, aim="at most 10", most=10)
        if way in LOGGED:
            record(f"of these, the log, in {text}", logs)
    for way, text in (("post_send", "a SEND by ibv_post_send and its completion"),
                      ("post_recv", "a receive and its completion")):
        added_cycles(record, way, text)
