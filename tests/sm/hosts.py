# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Subscribers at the hosts of a managed fabric, and what the SA says of their paths."""

import collections
import re
import subprocess
import time

from bed import TOP
from managed import Failed

HOST = f"{TOP}/build/tests/sm/host"
PATIENCE = 60

Heard = collections.namedtuple("Heard", "trap flags mask serial number epoch slid dlid sl mtu rate "
                               "life guid old")
WAIT, AHEAD, MOVED, WAY_BACK = 0x80, 0x40, 2, 3


class Hosts:
    """All hosts but the SM's subscribe; mute: how many reports each leaves unanswered first."""

    def __init__(self, fabric, mute=0):
        self.fabric = fabric
        self.lid = {name: int(lid) for name, lid in re.findall(
            r'Hca 1 "(\w+)".*\n\[1\]\t.*?lid (\d+)', fabric.command("Dump"))}
        self.listeners = {}
        for name in self.lid:
            if name != fabric.sm_host:
                out = open(f"{fabric.dir}/heard.{name}", "w", encoding="utf-8")
                self.listeners[name] = subprocess.Popen(
                    [HOST, "hear", str(mute)], env=fabric.environment(name), cwd=fabric.dir,
                    stdout=out, stderr=out, stdin=subprocess.DEVNULL)
                out.close()
        self.wait(lambda: all("ready" in self.text(name) for name in self.listeners), "subscribed")

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        ended = [name for name, process in self.listeners.items() if process.poll() is not None]
        said = {name: self.text(name)[-500:] for name in ended}
        for name in list(self.listeners):
            self.leave(name)
        if said and not kind:
            raise Failed(f"have heard nothing since they ended: {said}")

    def leave(self, name):
        """A host hears no more."""
        process = self.listeners.pop(name)
        process.kill()
        process.wait()

    def text(self, name):
        with open(f"{self.fabric.dir}/heard.{name}", encoding="utf-8") as file:
            return file.read()

    def heard(self, name):
        """In the order in which it came; repetitions too."""
        lines = self.text(name).split("ready\n")[-1].splitlines()
        return [Heard(*(int(word, 0) for word in line.split())) for line in lines]

    def wait(self, condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise Failed(f"not {what}: {self.fabric.status()}")
            time.sleep(0.05)

    def settle(self):
        """Until all tables are set, and every notice is answered or given up; how many tables."""
        def idle():
            status = self.fabric.status()
            return not (status["signal"]["queued"] or status["signal"]["on_the_way"] or
                        status["paths"]["routings"] != status["paths"]["told"])
        self.wait(idle, "settled")
        return self.fabric.status()["paths"]["routings"]

    def fault(self, command):
        """A change of the fabric, until OpenSM and the hosts are through with it. Both ends of a
        cable tell of it, the second perhaps a good while later."""
        mark = self.fabric.sm_mark()
        self.fabric.command(command)
        self.fabric.wait_sm(mark)
        routings = 0
        while routings != self.settle():
            routings = self.settle()
            time.sleep(0.5)

    def records(self):
        """The SA's, of all pairs, as {(slid, dlid): (sl, mtu, rate)}; asked by the last host."""
        asker = list(self.listeners)[-1]
        out = self.fabric.run(asker, HOST, "paths", *(str(lid) for lid in self.lid.values()))
        words = [line.split() for line in out.splitlines()]
        return {(int(w[0]), int(w[1])): tuple(int(v) for v in w[2:])
                for w in words if w[2] != "none"}
