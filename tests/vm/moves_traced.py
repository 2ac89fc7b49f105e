# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which modify_qp calls the kernel is asked for by the module for each queue pair that it moves:

    trace = Trace(guest)
    ...
    for move in trace.end():
        print(move.dev, move.dlid, move.calls)

    drain address on         what SQD takes
    load drain address on    the same, after the path was announced (UnPath): it was loaded as the alternate one, and
                             when it became valid nothing had come both ways to arm it
    load over                loaded when it was announced, armed, and gone over to
    load                     its peer has gone over first, and it has followed
    load over load, load load
                             these, and the path in use as the alternate one, too, for a peer that can do nothing but
                             migrate: where the device has not shown yet that it drains
    drain on                 within these: not drained in time, sent on by the old path, and the next way is tried
"""

import collections
import json
import re

TRACE = "/sys/kernel/tracing"
EVENT = re.compile(r"-(\d+) +\[\d+\].*? (modify_qp|sm_report|move|qp): (.*)")
MOVED = "4"                                 # enum repath_move_state
WAYS = {"1": "apm", "2": "sqd"}             # enum repath_moved_by
SQD = "4"                                   # enum ib_qp_state
UNPATH = "68"
STATE, AV, ALT_PATH, MIG_STATE = 1, 1 << 7, 1 << 14, 1 << 18    # enum ib_qp_attr_mask
DRAINED = "drain address on"
PLAIN = {"sqd": (DRAINED, f"load {DRAINED}"), "apm": ("load over", "load", "load over load", "load load")}

Move = collections.namedtuple("Move", "dev qpn dlid peer by calls announced")


def call(mask, state):
    """What a modification is for."""
    if mask & ALT_PATH:
        return "load"
    if mask & AV:
        return "address"
    return {STATE: "drain" if state == SQD else "on", MIG_STATE: "over"}.get(mask, hex(mask))


def listen(guest):
    """To the module, by its tracepoints."""
    guest.run(f"mount -t tracefs none {TRACE} 2>/dev/null; cd {TRACE} && "
              "for e in sm_report move qp; do echo 1 > events/repath/$e/enable; done")


def probe(guest, on):
    """Each call of the kernel's function is in the trace, or not: it takes time. What was traced goes with it."""
    enable = f"echo {int(on)} > events/repath_test/modify_qp/enable"
    guest.run(f"cd {TRACE} && echo 'p:repath_test/modify_qp ib_modify_qp mask=%dx:u32' > kprobe_events && {enable}"
              if on else f"cd {TRACE} && {enable} && echo > kprobe_events")


class Trace:
    """What is done from now on."""

    def __init__(self, guest):
        self.guest = guest
        listen(guest)
        probe(guest, True)
        guest.run(f"cd {TRACE} && echo 4096 > buffer_size_kb && echo > trace")

    def end(self):
        """The moves."""
        found = moves(self.guest)
        probe(self.guest, False)
        return found


def moves(guest):
    """Of each queue pair that the kernel itself has modified, as the trace says."""
    devs = {str(part["index"]): part["dev"] for part in json.loads(guest.run("repath -j stats")) if "dev" in part}
    text = guest.run(f"grep -E ' (modify_qp|sm_report|move|qp): ' {TRACE}/trace", timeout=120, check=False)
    found, announced, asked = {}, set(), {}
    for task, event, said in EVENT.findall(text):
        words = dict(re.findall(r"(\w+)[ =](-?\w+)", said))
        where = words.get("dev"), words.get("qpn")
        if event == "modify_qp":
            assert task not in asked, f"refused: {asked[task]}"
            asked[task] = int(words["mask"])
        elif event == "sm_report" and words["trap"] == UNPATH:
            announced.add((words["dev"], words["dlid"]))
        elif event == "qp" and said.endswith(" change") and task in asked:
            move = found.get(where) or Move(devs[words["dev"]], int(words["qpn"]), int(words["dlid"]),
                                            int(words["dqpn"]), None, [],
                                            (words["dev"], words["dlid"]) in announced)
            found[where] = move
            move.calls.append(call(asked.pop(task), words["state"]))
        elif event == "move" and words["state"] == MOVED and where in found:
            found[where] = found[where]._replace(by=WAYS.get(words["by"]))
    assert not asked, f"refused: {asked}"
    return list(found.values())


def check(moves):
    """Each has taken the calls of its way, and no other."""
    by_apm = {(move.qpn, move.peer) for move in moves if move.by == "apm"}
    for move in moves:
        said = " ".join(move.calls)
        calls = re.sub(r"\bdrain on\b *", "", said).strip()
        assert calls in PLAIN.get(move.by, ()), move
        assert move.announced or calls == DRAINED or calls != said, move
        # Who has followed has a peer that has gone over.
        assert calls not in ("load", "load load") or (move.peer, move.qpn) in by_apm, move
