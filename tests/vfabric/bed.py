# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A fabric for tests in one line:

    with Fabric("mesh:3x2", opensm="-R lash") as fabric:
        fabric.command('Unlink "S2"[4]')
        print(fabric.run("H2", "ibnetdiscover"))

Everything lives in a temporary directory and ends with the block. Sockets are unix sockets whose
names no other run has. repath fabric check judges all that OpenSM sets: each time that it was waited for, and
at the end. OpenSM has to run until then, and to end well.
"""

import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.environ.get("VFABRIC_TOP", os.getcwd())
TOP = TOP if os.path.isdir(f"{TOP}/tests/vfabric") else os.path.abspath(f"{__file__}/../../..")
NETS = f"{TOP}/tests/vfabric/nets"
PATIENCE = 150
ENDING = 30     # seconds
LARGE = 100     # hosts, from which on the subnet manager is not asked for the SL of each path
HUGE = 1000     # from which on a check takes half a minute: LONG=1 has it


class Failed(Exception):
    """What a command of the fabric said instead of ok."""


def umad2sim():
    """Path of libumad2sim.so; tests that need it are skipped without."""
    found = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so*")
    if not found or not shutil.which("opensm"):
        print("needs the packages opensm and ibsim-utils")
        sys.exit(77)
    return found[0]


class Fabric:
    """A running vfabric, and OpenSM on it if asked for."""

    # Who wants a fabric in which something is wrong does without, and benches do: the check takes minutes for
    # the largest.
    judged = True

    def __init__(self, topology, *options, opensm=None, sm_host="H1", binary="vfabric"):
        self.topology, self.options, self.sm_options = topology, options, opensm
        self.sm_host, self.binary = sm_host, binary
        self.sm = None
        self.judged_at = -1     # OpenSM's log was so long
        self.sm_may_end = False     # before the end, or as it likes

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="vfabric-")
        self.name = os.path.basename(self.dir)
        self.log = open(f"{self.dir}/vfabric.log", "w+", encoding="utf-8")
        self.server = subprocess.Popen(
            [f"{TOP}/build/vfabric/{self.binary}", "-q", "-n", self.name, "-c",
             f"{self.dir}/control", *self.options, self.topology],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        self.control = socket.socket(socket.AF_UNIX)
        try:
            while self.control.connect_ex(f"{self.dir}/control"):
                if self.server.poll() is not None or time.monotonic() > until:
                    raise Failed(self.server_log())
                time.sleep(0.02)
            self.reader = self.control.makefile("r", encoding="utf-8")
            if self.sm_options is not None:
                self.start_opensm(self.sm_options)
        except BaseException:
            self.end(True)
            raise
        return self

    def __exit__(self, kind, *unused):
        try:
            if not kind and self.sm and not self.sm_may_end:
                expect(self.sm.poll() is None, "OpenSM has ended:", self.sm.returncode, self.sm_log()[-2000:])
                self.judge()
        except BaseException:
            self.end(True)
            raise
        self.end(kind)

    def end(self, failed):
        late = []
        for process in filter(None, (self.sm, self.server)):
            process.terminate()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                late.append(process)
                process.kill()
                process.wait()
        log = self.server_log()
        # The largest may be long about it.
        ill = not (failed or not self.sm or self.sm_may_end or (self.sm in late and not self.judged)) and self.sm.returncode
        last = self.sm_log()[-2000:] if ill and os.path.exists(f"{self.dir}/opensm.log") else ""
        self.control.close()
        self.log.close()
        shutil.rmtree(self.dir)
        # What is wrong with its end, or what it has left, shows then only.
        expect(failed or not self.server.returncode, "vfabric ends well:", self.server.returncode, log)
        expect(not ill, "OpenSM ends well:", f"not in {ENDING} s" if self.sm in late else ill, last)

    def server_log(self):
        self.log.seek(0)
        return self.log.read()

    def command(self, line):
        """Runs a console line; returns what it printed."""
        self.control.sendall(line.encode() + b"\n")
        answer = ""
        for text in self.reader:
            if text == "ok\n":
                return answer
            if text == "failed\n":
                raise Failed(f"{line}: {answer}")
            answer += text
        raise Failed(f"{line}: vfabric is gone: {self.server_log()}")

    def environment(self, host):
        return dict(os.environ, IBSIM_SOCKNAME=self.name, SIM_HOST=host,
                    LD_PRELOAD=umad2sim(), OSM_TMP_DIR=self.dir, OSM_CACHE_DIR=self.dir)

    def launch_opensm(self, options):
        """Starts OpenSM on sm_host."""
        open(f"{self.dir}/opensm.log", "w", encoding="utf-8").close()
        self.sm = subprocess.Popen(
            ["opensm", *options.split(), "-e", "-d2", "-f", f"{self.dir}/opensm.log"], cwd=self.dir,
            env=self.environment(self.sm_host), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def start_opensm(self, options):
        """The same, and waits until the subnet is up."""
        self.launch_opensm(options)
        return self.wait_sm(0)

    def sm_log(self):
        with open(f"{self.dir}/opensm.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def sm_mark(self):
        """How much OpenSM has logged: what to give to wait_sm() before provoking a sweep."""
        return len(self.sm_log())

    def wait_sm(self, mark, want="", patience=PATIENCE):
        """Waits for SUBNET UP behind the mark and want, and until OpenSM is silent for a moment."""
        until = time.monotonic() + patience
        seen = -1
        while time.monotonic() < until:
            log = self.sm_log()
            at = log.find(want, mark)
            if at >= 0 and "SUBNET UP" in log[at:] and len(log) == seen:
                self.judge(PATIENCE if mark else 0)
                return log[mark:]
            seen = len(log)
            if self.sm.poll() is not None:
                break
            time.sleep(0.3)
        raise Failed(f"no {want} SUBNET UP; OpenSM said: {self.sm_log()[-2000:]}")

    def run(self, host, *command, check=True):
        """Runs a program at a host; returns its output."""
        result = subprocess.run(command, env=self.environment(host), cwd=self.dir, text=True,
                                capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        if check and result.returncode:
            raise Failed(f"{command}: {result.returncode}: {result.stdout}{result.stderr}")
        return result.stdout

    def repath_fabric_check(self, host, *words):
        return subprocess.run([f"{TOP}/build/repath", "-j", "fabric", "check", *words],
                              env=self.environment(host), cwd=self.dir, text=True,
                              capture_output=True, timeout=240, stdin=subprocess.DEVNULL)

    def judge(self, patience=PATIENCE):
        """What is set first is right at once. Of later faults the two ends tell, and may be heard apart."""
        until = time.monotonic() + patience
        while self.judged and (wrong := self.wrong()):
            expect(time.monotonic() < until, *wrong)
            time.sleep(0.3)

    def wrong(self, *words):
        """What is not right in what OpenSM has set. One engine does not avoid credit loops. Large fabrics are
        looked at again when OpenSM has said something."""
        hosts, said = len(self.command("Dump").split("\nHca ")) - 1, len(self.sm_log())
        few = hosts < LARGE
        if not few and not words and said == self.judged_at or hosts >= HUGE and not os.environ.get("LONG"):
            return []
        until = time.monotonic() + PATIENCE
        # Who asks may not be answered in time, or while a sweep changes what it reads.
        while not (result := self.repath_fabric_check(self.sm_host, *words,
                                                      *(() if few else ("sl", "0")))).stdout:
            expect(time.monotonic() < until, result.stderr)
            time.sleep(0.3)
        engine = re.findall(r"(\S+) tables configured", self.sm_log())[-1]
        wrong = [(engine, fault) for fault in json.loads(result.stdout)["faults"] if fault["wrong"] and
                 not (engine == "minhop" and fault["kind"] == "credit-loop")]
        self.judged_at = -1 if wrong else said
        return wrong

    def nothing_wrong(self, *words):
        """With more wanted than what always is."""
        until = time.monotonic() + PATIENCE
        while wrong := self.wrong(*words):
            expect(time.monotonic() < until, *wrong)
            time.sleep(0.3)

    def all_active(self):
        """Whether every cabled port is active."""
        dump = self.command("Dump")
        states = re.findall(r" (\w+)/LinkUp", dump)
        return bool(states) and set(states) == {"Active"}


class Client:
    """A program at a host, as libumad2sim.so tells of it: one socket for words, one for MADs."""

    CONNECT, DISCONNECT, SET_ISSM = 1, 2, 9

    def __init__(self, fabric, host, ident, is_sm=False):
        self.fabric, self.ident, self.number = fabric, ident, 0
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.control.bind(f"\0{fabric.name}:test{ident}")
        self.control.connect(f"\0{fabric.name}:ctl\0")
        self.control.settimeout(30)
        self.mads = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.mads.bind(f"\0{fabric.name}:in{ident}\0")
        self.number = self.ask(self.CONNECT, struct.pack("=III32s", ident, 0, is_sm, host.encode()))
        self.mads.connect(f"\0{fabric.name}:out{self.number}\0")

    def ask(self, kind, body=b""):
        self.control.send(struct.pack("=IIII64s", 0xdeadbeef, self.number, kind, 64, body))
        answer = self.control.recv(100)
        expect(struct.unpack_from("=8xI", answer)[0] == kind, "done:", kind)
        return struct.unpack_from("=I", answer, 16)[0]

    def get(self, tid, attribute, *route):
        """Send a SubnGet by a directed route."""
        self.send(1, tid, attribute, bytes(64), route)

    def set(self, tid, attribute, data, *route):
        """Or a SubnSet."""
        self.send(2, tid, attribute, data, route)

    def send(self, method, tid, attribute, data, route):
        mad = struct.pack(">BBBBHBBQHHI", 1, 0x81, 1, method, 0, 0, len(route), tid, attribute, 0, 0)
        mad += struct.pack(">8xHH28x", 0xffff, 0xffff) + data + bytes((0, *route))
        self.mads.send(struct.pack(">5I4xQ256s", 0xffff, 0xffff, 0, 0, 0, 256, mad))

    def hear(self, seconds):
        """(status, transaction ID without what marks the client, MAD), or None if nothing comes."""
        self.mads.settimeout(seconds)
        try:
            message = self.mads.recv(400)
        except socket.timeout:
            return None
        mad = message[32:]
        return (*struct.unpack_from(">16xI", message), int.from_bytes(mad[10:16], "big"), mad)

    def close(self, goodbye=True):
        if goodbye:
            self.ask(self.DISCONNECT)
        self.control.close()
        self.mads.close()


def expect(condition, *what):
    if not condition:
        raise SystemExit("not so: " + " ".join(str(w) for w in what))
