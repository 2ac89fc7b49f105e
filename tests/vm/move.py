# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moving a process from one RDMA device to another, as the move tests do it.

    def test(bed):
        a, b = bed.guests("a", "b")
        with moving(a, b) as mover:
            pair = Pair(a, b, "-q 16", env=SHIM)
            pair.wait_running()
            mover.swap(b)           # or mover.migrate(b)
            pair.wait_progress()
            pair.finish()

A move always changes the NIC (MAC, IP) and burns numbers at the destination, and fails if a QPN,
a key or a GID comes back. A test fails if in none of its moves a send request was under way when the
gate closed: in one alone, of processes that get no CPU just then, there may be none.
"""

import contextlib
import json
import os
import re

import traffic

# What the processes write about their real and virtual numbers; read when a test fails.
LOG = "/tmp/shim.log"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libibrepath.so"
SHIM = f"LD_PRELOAD={LIBRARY} REPATH_LOG=info:{LOG}"


# All cases of tests that have more than a run of all tests needs: `LONG=1 tests/vm/run ...`
LONG = bool(os.environ.get("LONG"))


def repath(guest, arguments, timeout=60):
    """`repath -j ARGUMENTS` as (status, object or None, everything that it wrote)."""
    job = guest.start(f"repath -j {arguments}")
    job.wait(timeout, check=False)
    found = None
    for line in job.output().splitlines():
        if line.startswith(("{", "[")):
            found = json.loads(line)
    return job.status, found, job.output()


def numbers(guest, comm, device="rxe0"):
    """The real numbers of all processes called @comm: {"qpn": {...}, "lkey":, "rkey":, "gid":, "lid":}"""
    texts = guest.run(f"for p in $(pidof {comm}); do ls /proc/$p/task; done; echo ,;"
                      "rdma -j -dd resource show qp; echo ,; rdma -j -dd resource show mr; echo ,;"
                      f"cat /sys/class/infiniband/{device}/ports/1/gids/[01]; echo ,;"
                      f"cat /sys/class/infiniband/{device}/ports/1/lid")
    threads, qps, mrs, gids, lid = (text.strip() for text in re.split("^,$", texts, flags=re.M))
    # The kernel notes the thread that made an object: after a move that is the shim's.
    qps, mrs = ([row for row in json.loads(rows or "[]") if str(row.get("pid")) in threads.split()]
                for rows in (qps, mrs))
    assert qps and mrs, f"{guest} has no {comm} with queue pairs and regions"
    return {
        "qpn": {row["lqpn"] for row in qps},
        "lkey": {row["lkey"] for row in mrs},
        "rkey": {row["rkey"] for row in mrs} - {"0"},   # of a region with local access only
        # InfiniBand's second one is an alias, of which there is none; RoCE has no LID.
        "gid": {gid for gid in gids.split() if not gid.endswith(":0000" * 4)},
        "lid": {lid} - {"0x0"},
    }


class Mover:
    """Suspends, changes the device under a process, resumes; remembers what it saw."""

    def __init__(self, comm="rcheck"):
        self.comm = comm
        self.burned = 40        # queue pairs, at each move
        self.burned_regions = 80
        self.timeout = 30       # of suspend and resume, seconds
        self.moves = 0
        self.inflight = []      # send requests under way, where that was looked at
        self.suspended = []     # the operations as `repath` told them, in order
        self.resumed = []

    def device(self, guest):
        """The one that a move takes away, and the one that comes."""
        return "rxe0"

    def numbers(self, guest):
        return numbers(guest, self.comm, self.device(guest))

    def suspend(self, guest, device=None, timeout=None):
        device = device or self.device(guest)
        timeout = timeout or self.timeout
        status, op, text = repath(guest, f"suspend {device} timeout {timeout}", timeout + 30)
        assert status == 0 and op["state"] == "suspended", f"suspend: {status}\n{text}"
        self.suspended.append(op)
        return op

    def resume(self, guest, op, device=None, timeout=None):
        device = device or self.device(guest)
        timeout = timeout or self.timeout
        status, op, text = repath(guest, f"resume {op['op']} on {device} timeout {timeout}",
                                  timeout + 30)
        assert status == 0 and op["state"] == "resumed", f"resume: {status}\n{text}"
        self.resumed.append(op)
        return op

    def release(self, guest):
        """rxe and NIC go away: nobody may hold the device."""
        guest.rxe_del("rxe0")
        guest.unplug(guest.nics[0])

    def new_device(self, guest):
        """Another NIC and another rxe0, on which other numbers are given out."""
        self.moves += 1
        nic = guest.plug("rdma", ip=f"10.0.0.{guest.number + 10 * self.moves}")
        guest.rxe_add("rxe0", nic)
        self.burn(guest)

    def burn(self, guest):
        """Queue pairs and regions of no use: what comes after has numbers never seen before."""
        queue_pairs, regions = (n * self.moves + 1 for n in (self.burned, self.burned_regions))
        guest.run(f"holdqp -b -d {self.device(guest)} -q {queue_pairs} -m {regions}", timeout=120)

    def swap(self, guest, inflight=True, look=True):
        """Within one guest: NIC and rxe deleted, others added. @look: at the numbers before and after."""
        return self._move(guest, lambda: None, inflight, look)

    def migrate(self, guest, inflight=True, look=True):
        """With a live migration in between."""
        return self._move(guest, guest.migrate, inflight, look)

    def _move(self, guest, between, inflight, look):
        before = self.numbers(guest) if look else None
        op = self.suspend(guest)
        if inflight:
            self.note_inflight(op)
        self.release(guest)
        between()
        self.new_device(guest)
        op = self.resume(guest, op)
        if look:
            self.check_numbers(before, self.numbers(guest))
        return op

    def note_inflight(self, *ops):
        counters = [process.get("counters", {}) for op in ops for process in op["processes"]]
        self.inflight.append(sum(c.get("send-inflight", 0) for c in counters))

    def check_inflight(self):
        if self.inflight:
            print(f"  send requests under way when the gate closed: {self.inflight}", flush=True)
            assert any(self.inflight), "nothing was under way in any of the moves"

    @staticmethod
    def check_numbers(before, after):
        for kind, old in before.items():
            same = old & after[kind]
            assert not same, f"{kind} {same} is the same after the move: it proves nothing"

    def report(self):
        for op in self.suspended + self.resumed:
            stages = {k: round(v, 1) for p in op["processes"]
                      for k, v in p.get("reached-ms", {}).items()}
            print(f"  {op['kind']} {op['dev']}: {op.get('stages') or stages} ms", flush=True)


@contextlib.contextmanager
def moving(*guests, comm="rcheck", mover=None, module=""):
    """The module in all guests; on failure, what everybody says about it is printed, and whether there is
    a network at all."""
    for guest in guests:
        guest.load_repath(module)
    mover = mover or Mover(comm)
    try:
        yield mover
        mover.report()
        mover.check_inflight()
    except Exception:
        for guest in guests:
            explain(guest)
        for job in traffic.Pair.jobs_made:
            print(f"--- {job}\n{job.output()[-1500:]}", flush=True)
        guests[0].bed.check_network()
        raise


def explain(guest):
    """Print what the parts know."""
    if not guest.alive:
        return
    text = guest.run(f"repath status; repath process; repath connection; repath qp; "
                     f"grep -H . /sys/class/infiniband/*/ports/1/cm_*/sidr_*"
                     f" /sys/class/infiniband/*/ports/1/hw_counters/[!l]* | grep -v ':0$';"
                     f"cat /proc/net/arp; tail -n 40 {LOG}; dmesg | tail -n 15", check=False)
    print(f"--- {guest}\n{text}", flush=True)
