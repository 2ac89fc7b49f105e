# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Flows of a managed fabric in real time, whose hosts do what the subnet manager says of lanes:

    with Flows(fabric, slow=100, bus={"H5": 124}) as flows:
        flows.start(("H1", "H5"), rate=12.9)
        flows.run(5)
        print(flows.gbps(2))

All links are slower than they say by a factor, as this machine is; rates are given and told as if
they were not. A host's bus takes that percentage of its link's time for a byte that comes; sending is that of all
hosts for one that goes.
"""

import json
import re
import subprocess
import time

from bed import Failed
from hosts import HOST, WAY_BACK

UNPATH, REPATH = 68, 69
LANE = 1
PATIENCE = 30


class Flows:
    def __init__(self, fabric, slow, bus, sending=100):
        self.fabric, self.slow, self.bus, self.sending = fabric, slow, bus, sending
        self.listeners, self.done, self.told, self.heard, self.fast = {}, {}, [], set(), {}
        self.ways_back = set()      # (who heard of a path, to whom, its service level)

    def __enter__(self):
        dump = self.fabric.command("Dump")
        lids = re.findall(r'Hca 1 "(\w+)".*\n\[1\]\t.*?\tlid (\d+)', dump)
        self.name_of = {int(lid): name for name, lid in lids}
        for kind, name in re.findall(r'(Switch|Hca) \d+ "([^"]+)"', dump):
            self.fabric.command(f'Fault "{name}" slow={self.slow * (self.sending if kind == "Hca" else 100)}')
        for name, percent in self.bus.items():
            self.fabric.command(f'Fault "{name}" drain={percent * self.slow}')
        for name in self.name_of.values():
            if name != self.fabric.sm_host:
                self.listen(name)
        until = time.monotonic() + PATIENCE
        while not all("ready" in self.text(name) for name in self.listeners):
            if time.monotonic() > until:
                self.__exit__()
                raise Failed("a host could not subscribe")
            time.sleep(0.05)
        return self

    def __exit__(self, *unused):
        for process in self.listeners.values():
            process.kill()
            process.wait()

    def listen(self, name):
        with open(f"{self.fabric.dir}/told.{name}", "w", encoding="utf-8") as out:
            self.listeners[name] = subprocess.Popen(
                [HOST, "hear"], env=self.fabric.environment(name), cwd=self.fabric.dir, stdout=out,
                stderr=out, stdin=subprocess.DEVNULL)
        self.done[name] = 0

    def text(self, name):
        with open(f"{self.fabric.dir}/told.{name}", encoding="utf-8") as file:
            return file.read()

    def obey(self):
        """dFtree's algorithm 2: flows to that LID use that service level, or the one they had."""
        for name in self.listeners:
            lines = [line for line in self.text(name).split("ready\n")[-1].splitlines(True)
                     if line.endswith("\n")]
            for line in lines[self.done[name]:]:
                trap, flags, _, _, number, epoch, _, dlid, sl, *_ = (int(w, 0)
                                                                     for w in line.split())
                if flags & 15 == WAY_BACK:
                    self.ways_back.add((name, self.name_of[dlid], sl))
                # Reports whose answers are late come twice.
                if flags & 15 != LANE or (name, epoch, number) in self.heard:
                    continue
                self.heard.add((name, epoch, number))
                hot = self.name_of[dlid]
                self.told.append((time.monotonic(), trap, name, hot, sl))
                self.lane(name, hot, sl if trap == REPATH else self.fast.get((name, hot), 0))
            self.done[name] = len(lines)

    def lane(self, name, hot, sl):
        if name != hot:
            self.fabric.command(f'Lane "{name}" "{hot}" {sl}')

    def start(self, *pairs, rate, sl=0):
        """Flows of as many Gbit/s as the unslowed links would have; sl="sa": of the service level that the SA says."""
        for a, b in pairs:
            answer = self.fabric.command(f'Flow "{a}" "{b}" message=20000 rate={rate / self.slow} sl={sl}')
            self.fast[a, b] = int(re.search(r"sl (\d+)", answer)[1]) if sl == "sa" else sl

    def run(self, seconds, until=lambda: False):
        """Obeys for that long, or until; returns whether it is so."""
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            time.sleep(0.05)
            self.obey()
        return until()

    def gbps(self, seconds):
        """What each flow gets from now on, as {("H1", "H5"): ...}."""
        self.fabric.command("Measure")
        self.run(seconds)
        flows = json.loads(self.fabric.command("Results json"))["flows"]
        return {(f["from"], f["to"]): f["gbps"] * self.slow for f in flows}
