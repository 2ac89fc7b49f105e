# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A fabric of vfabric whose OpenSM has the plugin:

    with Managed("mesh:3x2", "-R lash", method="hybrid") as fabric:
        print(fabric.status()["signal"]["subscribers"])
"""

import json
import re
import signal
import socket
import subprocess
import time

import bed
from bed import NETS, TOP, Failed, expect

__all__ = ["NETS", "Failed", "Managed", "TOP", "expect", "until"]


PATIENCE = 60


class Managed(bed.Fabric):
    def __init__(self, topology, sm_options="", plugin=f"{TOP}/build", conf="", sm_host="H1",
                 vfabric=(), **options):
        super().__init__(topology, *vfabric, opensm=sm_options, sm_host=sm_host)
        self.plugin, self.conf, self.options_of_plugin = plugin, conf, options

    def environment(self, host):
        return dict(super().environment(host), LD_LIBRARY_PATH=self.plugin)

    def launch_opensm(self, options):
        self.socket = f"{self.dir}/status"
        with open(f"{self.dir}/repath.conf", "w", encoding="utf-8") as file:
            file.write(f"status_socket {self.socket}\n")
            for name, value in self.options_of_plugin.items():
                file.write(f"{name} {value}\n")
        with open(f"{self.dir}/opensm.conf", "w", encoding="utf-8") as file:
            file.write("event_plugin_name osmrepath\n"
                       f"event_plugin_options {self.dir}/repath.conf\n{self.conf}\n")
        super().launch_opensm(f"{options} -F {self.dir}/opensm.conf")

    def port_guid(self, host):
        return int(re.search(r"nodeguid (\w+)", self.command(f'Dump "{host}"'))[1], 16) + 1

    def write_partitions(self, partitions, default="ALL=full"):
        """OpenSM's file of partitions, before it is started: (name, P_Key, port GUIDs of full members) of each."""
        self.conf += f"\npartition_config_file {self.dir}/partitions"
        with open(f"{self.dir}/partitions", "w", encoding="utf-8") as file:
            file.write(f"Default=0x7fff : {default};\n")
            for name, key, guids in partitions:
                file.write(f"{name}={key:#x} : {', '.join(f'{guid:#x}=full' for guid in guids)};\n")

    def status(self):
        """What the plugin says of itself."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(self.socket)
            with asked.makefile(encoding="utf-8") as answer:
                return json.loads(answer.read())

    def sweep(self, want=""):
        """A heavy one, until it is over; returns what OpenSM said."""
        mark = self.sm_mark()
        self.sm.send_signal(signal.SIGHUP)
        return self.wait_sm(mark, want)

    def let_use(self, vls):
        """From now on OpenSM may use so many VLs, a code of PortInfo; returns what it said."""
        with open(f"{self.dir}/opensm.conf", "a", encoding="utf-8") as file:
            file.write(f"max_op_vls {vls}\n")
        return self.sweep()

    def tables(self):
        """All that is set, without counters."""
        return re.sub(r"(xmit|discards) \d+", "", self.command("Dump"))

    def check(self, *required, host="H2", partitions=None):
        """Has repath fabric check judge the live tables and lanes; returns what it tells."""
        words = [word for what in required for word in ("require", what)]
        words += ["partitions", partitions] if partitions else []
        result = self.repath_fabric_check(host, *words)
        expect(result.returncode == 0, result.stdout, result.stderr)
        return json.loads(result.stdout)

    def lanes_weigh_the_same(self, lid, vls=8):
        """In VL arbitration of the first port, and none goes before others."""
        text = self.run(self.sm_host, "smpquery", "vlarb", str(lid), "1")
        found = {}, {}
        for table, of in zip(text.split("# High priority"), found):
            for lanes, weights in re.findall(r"VL +: (.*)\nWEIGHT: (.*)", table):
                for lane, weight in zip(re.findall(r"0x\w+", lanes), re.findall(r"0x\w+", weights)):
                    of[int(lane, 16)] = of.get(int(lane, 16), 0) + int(weight, 16)
        low, high = found
        expect(sorted(low) == list(range(vls)) and 0 < min(low.values()) == max(low.values()) and
               not any(high.values()), "all lanes weigh the same", text)

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
