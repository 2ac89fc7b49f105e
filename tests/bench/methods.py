# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How the subnet manager may signal, the methods beside each other as in paper II's experiments (its
figures 7 and 8): processes of a parallel program on six hosts of the 3x2 mesh, each with a queue
pair to every one on another host; the link S4-S5 is pulled, which changes no path, and S2-S5, which does.

Times are from the module's tracepoints, by one guest's clock: from the first report, and from the first RePath, which
are not the same where changes are announced; and from OpenSM's log in the same guest, by the same clock: trap 128,
LASH's lanes, and the tables, from the cable on. Its one emulated processor carries six HCAs, the switches and OpenSM: what
hosts do at the same time in a real fabric they do one after the other.
PROCESSES="8 16" and METHODS="hybrid" choose. What hosts spend of the processor, by function (paper I's figure 8), is
from a fault of its own, since it takes time to trace. tests/bench/plot methods draws both.

With hybrid what hosts do of their own is compared with the bare verbs, and with ten times as many queue pairs on other
paths, where the guest's clock counts instructions: that does not depend on what else the machine does.
"""

import collections
import os
import re
import time

import bed as beds
import host_time
import moves_traced
from moves_traced import MOVED, TRACE, UNPATH
from rc_flows import service_levels
from rerouting import DAY, TRAP, stamped
from test_notice_heard import wait_subscribed
from test_vhca_deadlock import NET

BED = False
PROCESSES = [int(n) for n in os.environ.get("PROCESSES", "8 16 32 64").split()]
METHODS = os.environ.get("METHODS", "wildcard repath-only hybrid affected auto").split()
OPENSM = "-R lash -Q -d2"       # its log is whole at any time
NOTHING, SOMETHING = 'Unlink "S4"[3]', 'Unlink "S2"[3]'
OTHERS = 10         # times as many queue pairs whose path does not change
REPATH = "69"       # the trap that says that the new path is valid
QUIET = 2           # seconds without news
PATIENCE = 300
ANNOUNCES = "auto"  # each path by itself
EVENT = re.compile(r"(\d+\.\d+): (sm_report|sm_paths|move|qp|tracing_mark_write): (.*)")
# Of the class SubnAdm as hosts, and the one with OpenSM, receive them: (method, attribute). What is acknowledged of
# an answer in several packets has the question's method.
MAD = re.compile(r"ib_mad_recv_done_handler: .* method 0x(\w+) .* tid 0x(\w+) .*attr_id 0x(\w+) ")
MADS = {(0x06, 0x02): "reports", (0x86, 0x02): "answers to them", (0x12, 0x35): "questions and ACKs",
        (0x92, 0x35): "packets of answers"}
SINGLE = ("reports", "answers to them")     # one packet each, with a TID of its own


def paths(fabric):
    """{(from, to): service level} as the SA has them, by HCA's number from 0."""
    number = {fabric.lid(host): i for i, host in enumerate(fabric.hosts)}
    return {(number[slid], number[dlid]): sl for (slid, dlid), sl in service_levels(fabric).items()
            if slid in number and dlid in number}


class Trace:
    """What the kernel does when a link is pulled."""

    def __init__(self, guest):
        self.guest = guest
        moves_traced.listen(guest)
        # Nobody has told the guest of leap seconds: it is the clock of OpenSM's log.
        guest.run(f"cd {TRACE} && echo tai > trace_clock && echo 32768 > buffer_size_kb && "
                  "echo 1 > events/repath/sm_paths/enable; cd events/ib_mad/ib_mad_recv_done_handler && "
                  "echo mgmt_class==3 > filter && echo 1 > enable")

    def begin(self, command):
        self.guest.run(f"cd {TRACE}; echo > trace; echo begin > trace_marker; "
                       f"vfabric -k /run/vfabric '{command}'")

    def moves(self):
        return int(self.guest.run(f"grep -c ' move: ' {TRACE}/trace", check=False))

    def modifies(self, method):
        """Of a path that is announced more is seen to change than what the calls change."""
        event = " modify_qp: " if method == ANNOUNCES else " qp: .* change"
        return int(self.guest.run(f"grep -c '{event}' {TRACE}/trace", check=False))

    def mads(self):
        """{type: how many have arrived}. On a busy machine the kernel sends again what has not been answered in time,
        with the same TID, which the plugin does not know of: one report, or one answer, is counted once."""
        found, seen = collections.Counter(), set()
        for method, tid, attr in MAD.findall(self.guest.run(f"grep ib_mad_recv {TRACE}/trace", timeout=120,
                                                            check=False)):
            kind = MADS.get((int(method, 16), int(attr, 16)))
            if kind and (kind not in SINGLE or (kind, tid) not in seen):
                seen.add((kind, tid))
                found[kind] += 1
        return found

    def read(self):
        """[(seconds, event, {word: value})], the first one when the link was pulled"""
        text = self.guest.run(f"grep -E ' (sm_report|sm_paths|move|qp|tracing_mark_write): ' "
                              f"{TRACE}/trace", timeout=120)
        found = [(float(at), event, dict(re.findall(r"(\w+) (-?\w+)", said)), said)
                 for at, event, said in EVENT.findall(text)]
        assert found[0][1] == "tracing_mark_write", found[0]
        return found


def settled(fabric, trace, told):
    """Wait until OpenSM has routed after @told, and nothing has been said or moved for a while:
    what the plugin says then."""
    end = time.monotonic() + PATIENCE
    still, last = 0, None
    while still < QUIET:
        status = fabric.repath_status()
        if time.monotonic() > end:
            raise TimeoutError(status)
        now = (status["paths"]["routings"], status["signal"]["answered"], trace.moves())
        quiet = (status["paths"]["told"] > told and not status["signal"]["queued"] and
                 not status["signal"]["on_the_way"])
        still, last = still + 1 if quiet and now == last else 0, now
        time.sleep(1)
    return status


class Program:
    """The parallel program, with @others queue pairs to each process to which the path stays."""

    def __init__(self, fabric, processes, old, new, options="", others=1):
        self.changed = {pair for pair in old if old[pair] != new[pair]}
        lines = "".join(
            f"{a} {b} {old[a, b]} {1 if {(a, b), (b, a)} & self.changed else others} {new[a, b]}\n"
            for a, b in old if a != b)
        self.moved = sum((a % 6, b % 6) in self.changed
                         for a in range(processes) for b in range(processes))
        hcas = " ".join(fabric.hosts.values())
        self.job = fabric.guest.start(f"exec allpairs {options} {processes} {hcas}",
                                      stdin=lines.encode())
        self.wait("ready")

    def wait(self, word):
        end = time.monotonic() + PATIENCE
        while word not in self.job.output():
            if time.monotonic() > end:
                raise TimeoutError(self.job.output())
            time.sleep(0.5)

    def stop(self):
        self.job.kill(15)
        self.job.wait(60, check=False)


def bare(fabric, processes, old, new):
    """Seconds of the verbs alone, by a program, for all queue pairs whose path changes."""
    program = Program(fabric, processes, old, new, "-b")
    program.job.wait(PATIENCE)
    done = re.findall(r"^(\d+) (\d+)$", program.job.output(), re.M)
    assert sum(int(n) for n, _ in done) == program.moved, (done, program.moved)
    return sum(int(ns) for _, ns in done) / 1e9


def spans(events):
    """{what: seconds}: of the host that takes longest."""
    start, slowest = events[0][0], {}
    for dev in {words["dev"] for _, event, words, _ in events if event == "sm_report"}:
        own = [(at, event, words, said) for at, event, words, said in events
               if words.get("dev") == dev]
        reports = [at for at, event, *_ in own if event == "sm_report"]
        valid = [at for at, event, words, _ in own if event == "sm_report" and words["trap"] == REPATH]
        read = [at for at, event, _, said in own if event == "sm_paths" and " read " in said]
        answered = [at for at, event, _, said in own if event == "sm_paths" and " answered " in said]
        moves = [at for at, event, words, _ in own if event == "move" and words["state"] == MOVED]
        # A report that was lost may be said again when all is done.
        end = max(moves + read or reports)
        host = {"host": end - reports[0], "from RePath": end - valid[0] if valid else 0, "until the answer": answered[0] - reports[0] if answered else 0,
                "reading it": read[0] - answered[0] if answered else 0,
                "whole": end - start, "first report": reports[0] - start}
        if not slowest or host["host"] > slowest["host"]:
            slowest = host
    return slowest


def before_hosts(log, events):
    """{what: seconds from the cable}: of the routing of which hosts are told first, or the last; 0: it was not so"""
    start = events[0][0]
    said = [((at - start) % DAY, text) for at, text in stamped(log)]

    def heard(trap):
        return min((at - start for at, event, words, _ in events if event == "sm_report" and words["trap"] == trap),
                   default=0)

    def last(what, until):
        return max((at for at, text in said if what in text and at <= (until or DAY)), default=0)

    unpath, repath = heard(UNPATH), heard(REPATH)
    return {"trap 128": min((at for at, text in said if re.search(TRAP, text)), default=0),
            "lanes computed": last("lash_core", unpath or repath), "first UnPath": unpath,
            "tables configured": last("tables configured", repath), "first RePath": repath}


def check_answers(fabric, mads, questions):
    """Of RMPP: an answer has the paths to all LIDs, 64 bytes each, of which 200 go into a packet; the first packet,
    each 64th after it and the last are acknowledged. Returns how many packets an answer is, and its ACKs."""
    lids = 2 * len(fabric.hosts)        # as many switches
    packets = -(-lids * 64 // 200)
    acks = 1 + -(-(packets - 1) // 64)
    assert mads["packets of answers"] == questions * packets, (mads, questions)
    assert mads["questions and ACKs"] == questions * (1 + acks), (mads, questions)
    return packets, acks


def check_messages(fabric, method, changed, found, before, after):
    """Paper II's equations 3 to 6, with n hosts and m paths that are others: what is sent must be that; and what is
    ours, with the hosts at which these begin, which are also told before. How the answers are cut is RMPP's: the
    paper has a quarter of a packet for a path to a host, and two more. By that alone the sum is another one, where
    something is asked."""
    n, m, mads = len(fabric.hosts), len(changed), found["mads"]
    affected = len({a for a, _ in changed})
    new = {name: after["signal"][name] - before["signal"][name] for name in ("reports", "repeated")}
    sweeps = after["paths"]["routings"] - before["paths"]["routings"]
    first = new["reports"] - new["repeated"]
    assert mads["reports"] == new["reports"], (mads, new)
    whole = 4 * n + n * n / 4
    equation = {"repath-only": m, "hybrid": whole * bool(m), "wildcard": whole * sweeps,
                "affected": (5 + n / 4) * affected, "auto": 2 * m}[method]
    if method == "repath-only":
        assert first == m, (first, m)
        assert mads["questions and ACKs"] == mads["packets of answers"] == 0, mads
    elif method == "hybrid":
        assert first == found["questions"] == n * bool(m), (first, found)
    elif method == "wildcard":
        assert first == n * sweeps, (first, n, sweeps)
    elif method == "affected":
        assert first == 2 * affected and found["questions"] == affected, (first, affected, found)
    elif method == "auto":
        # Nobody has so many that one question for all were less.
        assert first == 2 * m and not found["questions"], (first, m, found)
    packets, acks = check_answers(fabric, mads, found["questions"])
    # Reports that were lost and sent again are not the method's.
    found["all"] = sum(mads.values()) - mads["answers to them"] - new["repeated"]
    found["cut"] = found["questions"] * (packets + acks - n / 4 - 2)
    assert found["all"] == equation + found["cut"], (found, equation)
    assert found["all"] == equation or method not in ("repath-only", "auto"), (found, equation)
    # Drained, given the other path, sent on again. What is announced, one by one, may be loaded before.
    steps = 3 * found["moved"]
    if method == ANNOUNCES:
        moves_traced.check(found["moves"])
        assert len(found["moves"]) == found["moved"], found
        steps = sum(len(move.calls) for move in found["moves"])
    assert found["modifies"] == steps, (found["modifies"], steps)
    found["equation"] = equation


def spent(fabric, trace, command, verbs=True):
    """Pull a link, and what hosts spend of the processor: {part: seconds}."""
    told = fabric.repath_status()["paths"]["told"]
    hosts = host_time.HostTime(fabric.guest, verbs)
    trace.begin(command)
    after = settled(fabric, trace, told)
    found = hosts.end()
    mend(fabric, trace, command, after)
    return found


def fault(fabric, trace, command, program, method):
    """Pull a link: {what: number}."""
    before, logged = fabric.repath_status(), len(fabric.sm_log())
    trace.begin(command)
    after = settled(fabric, trace, before["paths"]["told"])
    events = trace.read()
    # One that is told its path again while others move says that it is there; it takes no call for that.
    moved = {(words["dev"], words["qpn"]) for _, event, words, _ in events if event == "move" and words["state"] == MOVED}
    assert len(moved) == (program.moved if command == SOMETHING else 0), (len(moved), program.moved)
    found = {"reports": after["signal"]["reports"] - before["signal"]["reports"],
             "questions": sum(" asked " in said for _, event, _, said in events if event == "sm_paths"),
             "moved": len(moved),
             "moves": moves_traced.moves(fabric.guest) if method == ANNOUNCES else [],
             "modifies": trace.modifies(method),
             "mads": trace.mads(), **spans(events), **before_hosts(fabric.sm_log()[logged:], events)}
    check_messages(fabric, method, program.changed if command == SOMETHING else (), found, before, after)
    del found["moves"]
    mend(fabric, trace, command, after)
    return found


def mend(fabric, trace, command, after):
    """The link is there again."""
    trace.begin(command.replace("Unlink", "ReLink"))
    settled(fabric, trace, after["paths"]["told"])


def use(fabric, method):
    """Another OpenSM, with this method."""
    fabric.sm_jobs[-1].kill(15)
    fabric.sm_jobs.pop().wait(60, check=False)
    fabric.repath = f"method {method}"
    fabric.start_opensm(OPENSM)
    end = time.monotonic() + PATIENCE
    while True:
        time.sleep(1)
        if time.monotonic() > end:
            raise TimeoutError(fabric.sm_log()[-2000:])
        try:
            if fabric.repath_status()["signal"]["subscribers"] == len(fabric.hosts):
                return
        except Exception:       # its socket is not there yet
            pass


def tell(record, what, which, found):
    """The figures for @what (@which: to be found by): messages, and seconds."""
    mads, equation, cut = (found.pop(name) for name in ("mads", "equation", "cut"))
    because = {"more": cut, "because": "answers have paths to switches too, and packets of 200 bytes"} if cut else {}
    record(f"{what}: MADs, without answers to reports, and by the paper's equation", found.pop("all"), equation,
           **because, **mads)
    record(f"{what}: seconds on the slowest host", found.get("host", 0),
           **which, **{name: round(value, 6) for name, value in found.items()})


def tell_parts(record, what, which, found):
    """What all hosts together spend of the processor."""
    record(f"{what}: seconds of the processor, all hosts", sum(found.values()),
           **which, parts={part: round(value, 6) for part, value in sorted(found.items())})


class Mesh:
    """The fabric, and the paths that it has before the fault and after it."""

    def __init__(self, bed):
        with open(NET) as f:
            self.fabric = bed.fabric(f.read(), opensm=OPENSM, repath="", memory=3072)
        self.guest = self.fabric.guest
        self.guest.load_repath()
        wait_subscribed(self.guest, self.fabric.hosts.values())
        self.trace = Trace(self.guest)
        self.old, told = paths(self.fabric), self.fabric.repath_status()["paths"]["told"]
        self.trace.begin(SOMETHING)
        told = settled(self.fabric, self.trace, told)["paths"]["told"]
        self.new = paths(self.fabric)
        self.trace.begin(SOMETHING.replace("Unlink", "ReLink"))
        settled(self.fabric, self.trace, told)
        assert paths(self.fabric) == self.old


def method_faults(mesh, record, method):
    """Both faults with each number of processes."""
    fabric, trace = mesh.fabric, mesh.trace
    use(fabric, method)
    if method == ANNOUNCES:
        moves_traced.probe(mesh.guest, True)
    for processes in PROCESSES:
        program = Program(fabric, processes, mesh.old, mesh.new)
        for command in NOTHING, SOMETHING:
            found = fault(fabric, trace, command, program, method)
            changes = f"{found['moved']} queue pairs" if command == SOMETHING else "no path changes"
            what = f"{method}, {processes} processes, {changes}"
            which = {"method": method, "processes": processes, "changes": command == SOMETHING}
            tell(record, what, which, found)
            tell_parts(record, what, which, spent(fabric, trace, command))
        program.stop()
    if method == ANNOUNCES:
        moves_traced.probe(mesh.guest, False)


def costs(mesh, record):
    """All hosts together, in instructions, beside the bare verbs, and with many more queue pairs that are not concerned."""
    use(mesh.fabric, "hybrid")
    for processes in sorted({min(PROCESSES[-1], 16), PROCESSES[-1]}):
        verbs = bare(mesh.fabric, processes, mesh.old, mesh.new)
        took = {}
        for others in (1, OTHERS):
            program = Program(mesh.fabric, processes, mesh.old, mesh.new, others=others)
            took[others] = 1e9 * sum(spent(mesh.fabric, mesh.trace, SOMETHING, verbs=False).values())
            if others == 1:
                tell_parts(record, f"hybrid, {processes} processes, counted", {}, spent(mesh.fabric, mesh.trace, SOMETHING))
            program.stop()
        record(f"hybrid, {processes} processes: instructions of all hosts together beside the bare verbs",
               took[1], 1e9 * verbs, "at most 1.2 times", most=1.2)
        record(f"hybrid, {processes} processes: instructions of all hosts together with {OTHERS} times as many others",
               took[OTHERS], took[1], "within 10 %", most=1.1)


def bench(record):
    with beds.Bed() as bed:
        mesh = Mesh(bed)
        for method in METHODS:
            method_faults(mesh, record, method)
    if "hybrid" in METHODS:
        with beds.Bed() as bed:
            bed.icount = True
            costs(Mesh(bed), record)
