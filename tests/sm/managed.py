# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A fabric of vfabric whose OpenSM has the plugin:

    with Managed("mesh:3x2", "-R lash", method="hybrid") as fabric:
        print(fabric.status()["signal"]["subscribers"])

repath fabric check judges all that was set: each time that OpenSM was waited for, and at the end.
"""

import json
import re
import socket
import subprocess
import time

import bed
from bed import NETS, TOP, Failed, expect

__all__ = ["NETS", "Failed", "Managed", "TOP", "expect", "until"]


LARGE = 100     # hosts, from which on the subnet manager is not asked for the SL of each path
PATIENCE = 60


class Managed(bed.Fabric):
    # Benches do without: the check takes minutes for the largest fabrics. So does who has cut a fabric
    # into what can not be routed.
    judged = True

    def __init__(self, topology, sm_options="", plugin=f"{TOP}/build", conf="", sm_host="H1",
                 vfabric=(), **options):
        super().__init__(topology, *vfabric, opensm=sm_options, sm_host=sm_host)
        self.plugin, self.conf, self.options_of_plugin = plugin, conf, options

    def environment(self, host):
        return dict(super().environment(host), LD_LIBRARY_PATH=self.plugin)

    def start_opensm(self, options):
        self.socket = f"{self.dir}/status"
        with open(f"{self.dir}/repath.conf", "w", encoding="utf-8") as file:
            file.write(f"status_socket {self.socket}\n")
            for name, value in self.options_of_plugin.items():
                file.write(f"{name} {value}\n")
        with open(f"{self.dir}/opensm.conf", "w", encoding="utf-8") as file:
            file.write("event_plugin_name osmrepath\n"
                       f"event_plugin_options {self.dir}/repath.conf\n{self.conf}\n")
        return super().start_opensm(f"{options} -F {self.dir}/opensm.conf")

    def __exit__(self, *exception):
        try:
            if not any(exception) and self.sm and self.sm.poll() is None:
                self.judge(PATIENCE)
        finally:
            super().__exit__(*exception)

    def wait_sm(self, mark, *args, **options):
        """What is set first is right at once. Of later faults the two ends tell, and may be heard apart."""
        found = super().wait_sm(mark, *args, **options)
        self.judge(PATIENCE if mark else 0)
        return found

    def judge(self, patience):
        until = time.monotonic() + patience
        while self.judged and (wrong := self.wrong()):
            expect(time.monotonic() < until, *wrong)
            time.sleep(0.3)

    def wrong(self):
        """What is not right in what OpenSM has set. One engine does not avoid credit loops."""
        few = len(self.command("Dump").split("\nHca ")) < LARGE
        until = time.monotonic() + PATIENCE
        # Who asks may not be answered in time, or while a sweep changes what it reads.
        while not (result := self.repath_fabric_check(self.sm_host, *(() if few else ("sl", "0")))).stdout:
            expect(time.monotonic() < until, result.stderr)
            time.sleep(0.3)
        engine = re.findall(r"(\S+) tables configured", self.sm_log())[-1]
        return [(engine, fault) for fault in json.loads(result.stdout)["faults"] if fault["wrong"] and
                not (engine == "minhop" and fault["kind"] == "credit-loop")]

    def status(self):
        """What the plugin says of itself."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(self.socket)
            with asked.makefile(encoding="utf-8") as answer:
                return json.loads(answer.read())

    def repath_fabric_check(self, host, *words):
        return subprocess.run([f"{TOP}/build/repath", "-j", "fabric", "check", *words],
                              env=self.environment(host), cwd=self.dir, text=True,
                              capture_output=True, timeout=240, stdin=subprocess.DEVNULL)

    def check(self, *required, host="H2", partitions=None):
        """Has repath fabric check judge the live tables and lanes; returns what it tells."""
        words = [word for what in required for word in ("require", what)]
        words += ["partitions", partitions] if partitions else []
        result = self.repath_fabric_check(host, *words)
        expect(result.returncode == 0, result.stdout, result.stderr)
        return json.loads(result.stdout)

    def reached(self, count):
        """Whether that many hosts are, and from the first all others are reached."""
        hosts = re.findall(r'Hca 1 "H\d+".*\n\[1\]\t.*?\tlid (\d+) .*Active', self.command("Dump"))
        try:
            for lid in hosts[1:]:
                self.command(f"Route {hosts[0]} {lid}")
        except Failed:
            return False
        return len(hosts) == count and self.all_active()

    def plugin_log(self):
        return [line for line in self.sm_log().splitlines() if "repath" in line]


def until(condition, *what):
    """Sweeps follow one another: what a port's state was in one is seen in the next."""
    end = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < end, *what)
        time.sleep(0.2)
