# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""perftest's RC traffic between HCAs of a fabric, that is so slow that it is the links that limit it."""

import re
import time

# Percent of the time that a byte takes at 4x QDR: links of 3.2 Mbit/s, which an emulated
# processor can fill.
SLOW = 1000000
LINK = 400000       # bytes a second
PORT = 18600


def slow_links(fabric, slow=SLOW):
    """All cables of the topology, at both ends."""
    for node, text in re.findall(r'^Switch\s+\d+\s+"([^"]+)".*\n((?:\[.*\n)*)', fabric.topology, re.M):
        for port in re.findall(r"^\[(\d+)\]", text, re.M):
            fabric.command(f'Fault "{node}"[{port}] slow={slow}')


def service_level(fabric, a, b):
    """What the SA says of the path from host to host."""
    record = fabric.guest.run(f"saquery -C {fabric.hosts[a]} -t 8000 --src-to-dst "
                              f"{fabric.lid(a)}:{fabric.lid(b)}")
    return int(re.search(r"\bsl\.+(?:0x)?([0-9a-fA-F]+)", record)[1], 16)


def service_levels(fabric):
    """What the SA says of all paths: {(SLID, DLID): service level}."""
    found = {}
    for record in fabric.guest.run("saquery -C vhca1 -t 8000 PR", timeout=60).split("PathRecord")[1:]:
        slid, dlid, sl = (int(re.search(rf"\b{name}\.+(\w+)", record)[1], 0)
                          for name in ("slid", "dlid", "sl"))
        found[slid, dlid] = sl
    return found


def under_way(span):
    """Whether each flow's host has sent more between two counts of Flows.counted() than what acknowledges
    others, a twentieth of a link."""
    (start, _, before), (end, _, after) = span
    return all(y - x > (end - start) * LINK / 20 for x, y in zip(before, after))


class Flows:
    """Messages of @size bytes for each (from, to, service level), until stopped. What has come in all,
    about every second that was waited for, is added to @samples: (seconds, bytes)."""

    def __init__(self, fabric, flows, size=20000, samples=None, timeout=22, options=""):
        self.guest = fabric.guest
        self.samples = [] if samples is None else samples
        counter = "/sys/class/infiniband/{}/ports/1/counters/port_{}_data"
        self.counters = [counter.format(fabric.hosts[b], "rcv") for _, b, _ in flows] + \
            [counter.format(fabric.hosts[a], "xmit") for a, _, _ in flows]
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

    def counted(self):
        """(seconds, bytes that have come to each flow's receiver, bytes that each sender has sent), by the
        guest's clock."""
        up, *words = self.guest.run(f"cut -d' ' -f1 /proc/uptime; cat {' '.join(self.counters)}").split()
        amounts = [4 * int(n) for n in words]
        flows = len(amounts) // 2
        self.samples.append((float(up), sum(amounts[:flows])))
        return float(up), amounts[:flows], amounts[flows:]

    def received(self):
        """(seconds, bytes that have come to each flow's receiver), by the guest's clock."""
        return self.counted()[:2]

    def rates(self, seconds):
        """Bytes a second of each flow from now on, headers and others' acknowledgements included."""
        start, before = self.received()
        for _ in range(seconds):
            time.sleep(1)
            end, after = self.received()
        return [(y - x) / (end - start) for x, y in zip(before, after)]

    def steady_rates(self, seconds, patience=120):
        """As rates(), over so many seconds in which all flows were under way, not counting those in which one
        of them waited. Where each host sends one flow, a flow that waits for its time-out sends next to
        nothing, while the others get its part of the links: what they got then, and in the second
        before and behind, says nothing of how they share."""
        last, spans = self.counted(), []
        while True:
            time.sleep(1)
            now = self.counted()
            spans.append((last, now))
            last = now
            steady = [spans[i] for i in range(1, len(spans) - 1) if all(map(under_way, spans[i - 1:i + 2]))]
            if len(steady) >= seconds:
                break
            if len(spans) >= patience:
                raise TimeoutError(f"in {patience} s all flows were under way for {len(steady)} s")
        if len(spans) > seconds + 2:
            print(f"  a flow waited in {sum(not under_way(span) for span in spans)} s of {len(spans)}", flush=True)
        time_taken = sum(end[0] - start[0] for start, end in steady)
        return [sum(end[1][i] - start[1][i] for start, end in steady) / time_taken
                for i in range(len(last[1]))]

    def stop(self):
        for job in self.jobs:
            job.kill(9)
        for job in self.jobs:
            job.wait(30, check=False)
