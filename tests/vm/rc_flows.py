# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""perftest's RC traffic between HCAs of a fabric, that is so slow that it is the links that limit it."""

import re
import time

# Percent of the time that a byte takes at 4x QDR: links of 3.2 Mbit/s, which an emulated
# processor can fill.
SLOW = 1000000
LINK = 400000       # bytes a second
PORT = 18600


def slow_links(fabric):
    """All cables of the topology, at both ends."""
    for node, text in re.findall(r'^Switch\s+\d+\s+"([^"]+)".*\n((?:\[.*\n)*)', fabric.topology, re.M):
        for port in re.findall(r"^\[(\d+)\]", text, re.M):
            fabric.command(f'Fault "{node}"[{port}] slow={SLOW}')


def service_level(fabric, a, b):
    """What the SA says of the path from host to host."""
    record = fabric.guest.run(f"saquery -C {fabric.hosts[a]} -t 8000 --src-to-dst "
                              f"{fabric.lid(a)}:{fabric.lid(b)}")
    return int(re.search(r"\bsl\.+(?:0x)?([0-9a-fA-F]+)", record)[1], 16)


class Flows:
    """Messages of @size bytes for each (from, to, service level), until stopped. What has come in all,
    about every second that was waited for, is added to @samples: (seconds, bytes)."""

    def __init__(self, fabric, flows, size=20000, samples=None, timeout=22, options=""):
        self.guest = fabric.guest
        self.samples = [] if samples is None else samples
        self.counters = "/sys/class/infiniband/{}/ports/1/counters/port_rcv_data"
        self.receivers = [fabric.hosts[b] for _, b, _ in flows]
        self.jobs = []
        for number, (a, b, sl) in enumerate(flows):
            # By default with a timeout of 17 s: a queue pair that stands still shall stand still.
            # With events: what polls takes the processor from vfabric. One for each message: else
            # nothing is sent between the last of a queue and the news of it.
            program = (f"exec ib_send_bw -F -e -Q 1 -n 100000 -m 2048 -t 16 -r 32 -u {timeout} "
                       f"-s {size} -S {sl} -p {PORT + number} {options}")
            self.jobs.append(self.guest.start(f"{program} -d {fabric.hosts[b]}"))
            self.guest.wait_until(f"netstat -ltn | grep -q :{PORT + number}", timeout=30)
            self.jobs.append(self.guest.start(f"{program} -d {fabric.hosts[a]} 127.0.0.1"))

    def received(self):
        """(seconds, bytes that have come to each flow's receiver), by the guest's clock."""
        files = " ".join(self.counters.format(hca) for hca in self.receivers)
        up, *words = self.guest.run(f"cut -d' ' -f1 /proc/uptime; cat {files}").split()
        amounts = [4 * int(n) for n in words]
        self.samples.append((float(up), sum(amounts)))
        return float(up), amounts

    def rates(self, seconds):
        """Bytes a second of each flow from now on, headers and others' acknowledgements included."""
        start, before = self.received()
        for _ in range(seconds):
            time.sleep(1)
            end, after = self.received()
        return [(y - x) / (end - start) for x, y in zip(before, after)]

    def stop(self):
        for job in self.jobs:
            job.kill(9)
        for job in self.jobs:
            job.wait(30, check=False)
