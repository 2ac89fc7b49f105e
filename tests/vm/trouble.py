# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Trouble at exact points of a move, for tests: see tests/apps/stopper.c.

    case = Case(a, b, 3, "a", "before msg INFO")    # a pair; the process in a ends, or stops, there
    case.start(); case.arm("kill")
"""

import re
import time

from move import LIBRARY, LOG, repath
from traffic import PROBING, Pair, check_all_dead, json_lines

STAGES = {name: number for number, name in enumerate(
    "none check gate drain release open recreate connect replay abort".split())}
MESSAGES = {name: number for number, name in enumerate(
    "none HELLO PREPARE PREPARED GATE DRAINED READY INFO CONNECTED ABORT ABORTED KEYS KEYS_ACK "
    "GONE RESOLVE MOVED".split())}
LIBRARIES = f"/usr/bin/libstopper.so {LIBRARY}"
# Few requests ask for a completion, and never the last one: what is under way can only be known by a
# marker, so that GATE crosses GATE before READY.
QPS = 2
STUCK_DEPTH = 8
OPTIONS = f"-q {QPS} -n 16 -k 16 -s 256 -b -r 100"
# A survivor's shim says either: the HCA has found out, or it was told.
DEAD = "has not answered any retry of the HCA|the peer's end is gone"
FINAL = ("suspended", "resumed", "failed", "parked", "checked")


class Case:
    """A pair of rcheck and a point at which one of the two comes to grief.

    who: "mover", the client in @b, or "peer", the server in @a; point: "before reply gate",
    "after msg INFO" ...; None: nothing happens to this pair.
    """

    def __init__(self, a, b, number, who=None, point=None, options=OPTIONS, env="",
                 each_options=f"-i 0.3 --stall 60 --tail {PROBING}"):
        self.number = number
        self.who = who
        self.pid = None         # mover_pid(), where somebody has asked as long as it was there
        self.ending = "kill"
        self.stuck = False      # stuck_case()
        self.point = point
        self.server_guest, self.client_guest = a, b
        self.pair = Pair(a, b, options, each_options,
                         env=f'STOPPER={self.trap} {env} LD_PRELOAD="{LIBRARIES}" '
                             f"REPATH_LOG=info:{self.log}", port=18700 + number)

    def __repr__(self):
        return f"{self.who} {self.point}" if self.who else "witness"

    @property
    def trap(self):
        return f"/tmp/stopper.{self.number}"

    @property
    def log(self):
        return f"/tmp/shim.{self.number}.log"

    @property
    def guest(self):
        return self.client_guest if self.who == "mover" else self.server_guest

    @property
    def other_guest(self):
        return self.server_guest if self.who == "mover" else self.client_guest

    @property
    def victim(self):
        return self.pair.client if self.who == "mover" else self.pair.server

    @property
    def survivor(self):
        return self.pair.server if self.who == "mover" else self.pair.client

    def mover_pid(self):
        """Its process in the mover's guest, among those of the same name."""
        if not self.pid:
            self.pid = int(self.client_guest.run(f"""for p in $(pidof rcheck); do
                tr '\\0' ' ' < /proc/$p/cmdline | grep -q -e '-p {self.pair.port} ' && echo $p
                done; true"""))
        return self.pid

    def arm(self, what, point=None, guest=None):
        """@what: "kill", "stop" or "exit"; its own point of the victim, or @point of the process in @guest."""
        if what != "stop":
            self.ending = what
        when, kind, names = (point or self.point).split()
        numbers = sum(1 << (STAGES if kind == "reply" else MESSAGES)[name]
                      for name in names.split("/"))
        (guest or self.guest).run(f"echo {what} {when} {kind} {numbers:x} > {self.trap}.new;"
                                  f"mv {self.trap}.new {self.trap}")

    def wait_hit(self, guest=None, timeout=60):
        """The point was reached."""
        (guest or self.guest).wait_until(f"[ ! -e {self.trap} ]", timeout)

    def signal(self, sig):
        """To the process itself."""
        self.victim.kill(sig)

    def log_of(self, guest):
        return guest.run(f"cat {self.log}", check=False)

    def check_dead(self, open_gate=False):
        """The victim was killed, or exited, at its point; the survivor got the errors that verbs define, on each
        queue pair. @open_gate: they were not suspended then, so it learns of it as without us: from
        a request that is not answered."""
        self.victim.wait(30, check=False)
        assert self.victim.status == (0 if self.ending == "exit" else 128 + 9), f"{self}: {self.victim.status}"
        assert self.guest.status(f"[ ! -e {self.trap} ]") == 0, f"{self}: not at its point"
        self.survivor.wait(60, check=False)
        try:
            error = check_all_dead(self.survivor, 1 if self.stuck else QPS, not self.stuck)
        except AssertionError as failure:
            ends = [f"{end} says:\n{end.output()[-600:]}\nand its log:\n{self.log_of(guest)[-4000:]}"
                    for end, guest in ((self.victim, self.guest), (self.survivor, self.other_guest))]
            raise AssertionError("\n".join([f"{self}, {self.ending}: {failure}", *ends])) from failure
        log = self.log_of(self.other_guest)
        assert re.search(DEAD, log), f"{self}: the survivor's log:\n{log}"
        # Who exits as it takes back its part in a move may have said so before its queue pair goes: as without us.
        taken_back = self.ending == "exit" and self.point.endswith(" ABORTED")
        # Or its peer had left RTS, and said where it is before its last word: then they were connected anew.
        if not (open_gate or taken_back or " is now 0x" in log.partition(": abort ")[2]):
            assert "the peer's end is gone" in log, f"{self}: the survivor's log:\n{log}"
            kernel_says(self.other_guest, r"\(rcheck\): the peer of QP 0x\w+, which is suspended, is gone")
        return error


def is_stuck(job):
    """It has had no receive left for some time, and nobody has any for what it has posted."""
    lines = json_lines(job.output(), "waiting")[-3:]
    return len(lines) == 3 and all(not line["recvs"] and line["waiting"] >= STUCK_DEPTH
                                   for line in lines)


def wait_stuck(pair, timeout=60):
    end = time.monotonic() + timeout
    while not all(is_stuck(job) for job in pair.jobs):
        for job in pair.jobs:
            assert job.running, f"not stuck:\n{job.output()[-1500:]}"
            if time.monotonic() > end:
                raise TimeoutError(f"not stuck:\n{job.output()[-1500:]}")
        time.sleep(0.1)


def stuck_case(a, b, number, who):
    """One whose ends can stop to post receives (toggle_receives), so that both wait for one, and have to say DRAINED."""
    case = Case(a, b, number, who, "before msg DRAINED",
                f"-q 1 -n {STUCK_DEPTH} -s 256 -b -r 300 -m send,send_imm",
                each_options=f"-i 0.2 --stall 60 --no-recv-ms 600000 --overrun --tail {PROBING}")
    case.stuck = True
    return case


def toggle_receives(case):
    for job in case.pair.jobs:
        job.kill(10)


def wait_final(guest, op, timeout=60):
    """The operation comes to an end: its state and all that `repath status` says."""
    end = time.monotonic() + timeout
    while True:
        status, found, text = repath(guest, f"status {op}")
        if status or (found and found["state"] in FINAL):
            return (found["state"] if found else None), text
        if time.monotonic() > end:
            raise TimeoutError(f"operation {op} hangs:\n{text}")
        time.sleep(0.05)


def wait_state(guest, op, wanted):
    """The operation comes to this state, after others in which it may rest."""
    guest.wait_until(f"repath -j status {op} | grep -q '\"state\":\"{wanted}\"'")


def start(guest, words):
    """Begin an operation, do not wait for it: its number."""
    status, op, text = repath(guest, f"{words} nowait")
    assert status == 0, text
    return op["op"]


def rxe_elsewhere(guest):
    """A soft RoCE device rxe5, in a network in which there is nobody else."""
    guest.run("ip link add dead0 type dummy && ip address add 10.9.9.9/24 dev dead0 && ip link set dead0 up &&"
              " rdma link add rxe5 type rxe netdev dead0")
    guest.wait_until("grep -q ACTIVE /sys/class/infiniband/rxe5/ports/1/state")


def kernel_said(guest):
    """How many lines of the kernel's log are ours so far."""
    return len(guest.run("dmesg | grep repath: || true").splitlines())


def kernel_says(guest, pattern, since=0):
    """The kernel's log says why; @since: kernel_said() of before."""
    log = "\n".join(guest.run("dmesg | grep repath: || true").splitlines()[since:])
    assert re.search(pattern, log), f"{guest}: no {pattern!r} in its log:\n{log}"


def shim_says(guest, pattern):
    """The shim's log of its processes says why."""
    log = guest.run(f"cat {LOG}")
    assert re.search(pattern, log), f"{guest}: no {pattern!r} in the shim's log:\n{log}"
