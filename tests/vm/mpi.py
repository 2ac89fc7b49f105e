# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's Open MPI over UCX between guests.

    mpi.bring(bed)                          # before the first guest boots
    a, b = bed.guests("a", "b", memory=512)
    job = mpi.start([a, b], 2, "rc_verbs,ud_verbs:aux", "-n 50")
    job.wait_rounds(10)
    job.finish()

mpirun runs in the first guest and gets into the others by guest/mpi-launch. What it says to its
daemons goes over the management network, which stays; what ranks say to each other is RDMA, or
shared memory within a guest.
"""

import glob
import json
import os
import re
import time

import image
from move import LOG

OPENMPI = f"/{image.LIBRARIES}/openmpi/lib/openmpi3"
# OpenSHMEM, files, and networks that guests do not have, with their libraries.
LEFT_OUT = tuple(f"mca_{name}_" for name in (
    "atomic", "fbtl", "fcoll", "fs", "io", "memheap", "mtl", "scoll", "sharedfp", "spml",
    "sshmem", "vprotocol")) + ("mca_btl_ofi", "mca_btl_openib")
STOP = "/tmp/mpicheck.stop"
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
# What may be said: ours; that mpirun's rsh was quicker than mpirun, who would make it a group of processes; and
# what UCX says of the events that a new device brings.
USUAL = re.compile(r"\{|repath: run: |\[\w+:\d+\] plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=Permission|"
                   r"\[[\d.]+\] \[\w+:\d+ *:\w+\] +ib_device\.c:\d+ +UCX  WARN  "
                   r"IB Async event on rxe0: (GID table change|LID change|LID was changed|client reregistration)")
RC, UD = "rc_verbs,ud_verbs:aux,sm,self", "ud_verbs,sm,self"
LEFT = "^rc_mlx5,dc_mlx5,ud_mlx5"       # what `repath run` takes out, where nobody says UCX_TLS
WARNS = "UCX  WARN  transports 'rc_mlx5','dc_mlx5','ud_mlx5' are not available"     # of a UCX that has none


def bring(bed):
    """Put Open MPI, UCX and mpicheck into the guests of @bed."""
    files = bed.files
    files["usr/bin/mpirun"] = "/usr/bin/orterun"
    files["usr/bin/orted"] = "/usr/bin/orted"
    files["usr/bin/mpi-launch"] = os.path.join(image.HERE, "guest/mpi-launch")
    files["usr/bin/mpicheck"] = os.path.join(image.TOP, "build/mpi/mpicheck")
    plugins = [path for path in glob.glob(f"{OPENMPI}/mca_*.so")
               if not os.path.basename(path).startswith(LEFT_OUT)]
    plugins += glob.glob(f"/{image.LIBRARIES}/ucx/libuct_*.so.0")
    plugins += glob.glob(f"/{image.LIBRARIES}/pmix2/lib/pmix/*.so")
    plugins += glob.glob("/etc/openmpi/*.conf")
    plugins += glob.glob("/usr/share/openmpi/*.txt") + glob.glob("/usr/share/pmix/*.txt")
    for path in plugins:
        files[path.lstrip("/")] = path


def packets(guest):
    """How many packets its rxe0 has sent and received."""
    return sum(int(n) for n in
               guest.run(f"cat {COUNTERS}/sent_pkts {COUNTERS}/rcvd_pkts").split())


class Job:
    """An mpirun in the first of @guests."""

    def __init__(self, guests, command):
        self.guests = guests
        self.job = guests[0].start(command)

    def lines(self):
        """What rank 0 has said."""
        text = self.job.output()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()
                if line.startswith("{")]

    @property
    def begun(self):
        """Has MPI_Init returned?"""
        return bool(self.lines())

    @property
    def rounds(self):
        lines = self.lines()
        return lines[-1]["rounds"] if lines else 0

    def said(self):
        """What was said, for a person: the first complaints, the end, and what shims have to say."""
        text = self.job.output()
        wrong = [line for line in text.splitlines() if not USUAL.match(line)]
        logs = [f"{guest}: " + guest.run(f"tail -n 30 {LOG}", check=False) for guest in self.guests]
        return "\n".join((*wrong[:20], "...", text[-2000:], *logs))

    def wait_rounds(self, count, timeout=120):
        """Wait until there are @count rounds more than now."""
        goal, end = self.rounds + count, time.monotonic() + timeout
        while self.rounds < goal:
            assert self.job.running, f"no {count} rounds more:\n{self.said()}"
            if time.monotonic() > end:
                raise TimeoutError(f"no {count} rounds more:\n{self.said()}")
            time.sleep(0.1)

    def finish(self, timeout=120, also=None):
        """Let it end; what rank 0 said at the end."""
        self.guests[0].run(f"touch {STOP}")
        return self.wait(timeout, also)

    def wait(self, timeout=120, also=None):
        """Wait for its end; what rank 0 said then. No rank may have complained of anything but what
        may be said here @also: a regex."""
        text = self.job.wait(timeout)
        last = self.lines()[-1]
        assert last["ok"], last
        wrong = [line for line in text.splitlines()
                 if not USUAL.match(line) and not (also and re.search(also, line))]
        assert not wrong, "somebody complained:\n" + "\n".join(wrong)
        return last


def move_in_the_middle(job, move):
    """@move while @job runs; afterwards it does each size of message once more."""
    job.wait_rounds(3)
    before = job.rounds
    move()
    assert job.job.running, f"it was over: this proves nothing\n{job.said()}"
    assert job.rounds < before + 200, f"{job.rounds - before} rounds meanwhile: this proves nothing"
    job.wait_rounds(12)


def listen(guests):
    """Let mpirun into @guests."""
    for guest in guests:
        if not hasattr(guest, "mpi_server"):
            guest.mpi_server = guest.start("exec mpi-launch -l")
            guest.wait_until("netstat -ltn | grep -q :7000")


def start(guests, ranks, transports, options="", under="repath run --", plain=False,
          device="rxe0"):
    """Start mpicheck over UCX @transports, with @ranks in each of @guests, or a list of how many; None: over those
    that `repath run` leaves to UCX. @plain: without repath, with the least that UCX needs on rxe; @device: may be a
    shell's text, to be read by each rank."""
    if isinstance(ranks, int):
        ranks = [ranks] * len(guests)
    listen(guests[1:])
    guests[0].run(f"rm -f {STOP}")
    hosts = ",".join(f"{guest.mgmt_ip}:{each}" for guest, each in zip(guests, ranks))
    if plain:
        under = ""
        own = (f"-x UCX_TLS={transports} -x UCX_UD_VERBS_ETH_DGID_CHECK=n "
               "--mca pml ucx --mca osc ucx")
    else:
        own = f"-x UCX_TLS={transports} " if transports else ""
        own += f"-x REPATH_LOG=info:{LOG}"
    if "$" in device:
        program = f"sh -c 'UCX_NET_DEVICES={device}:1 exec mpicheck \"$@\"' sh"
    else:
        program = f"-x UCX_NET_DEVICES={device}:1 mpicheck"
    return Job(guests, f"""
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        exec nice -n 10 {under} mpirun -H {hosts} -n {sum(ranks)} \\
            --mca plm_rsh_agent /usr/bin/mpi-launch --mca oob_tcp_if_include mgmt \\
            --mca mpi_yield_when_idle 1 --bind-to none \\
            {own} {program} -s {STOP} {options}""")
