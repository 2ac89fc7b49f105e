# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One of each kind of object, checked all the time: an SRQ with its limit, an extended CQ, one that is resized again and again,
memory windows of both types, atomics, UC, UD with address handles, multicast. Each end moves, twice.

The last time the new NIC's carrier is there before the kernel calls the link operational, as it may be
with any NIC: until then there is no route to a group (nor to any address of IPv6), and what is sent is an error."""

from move import SHIM, Mover, moving
from traffic import Pair, json_lines, last_json


class LateLink(Mover):
    """New devices are not operational for a while, if @late."""
    late = False

    def new_device(self, guest):
        super().new_device(guest)
        if self.late and not guest.bed.infiniband:
            link = f"ip link set {guest.nics[0].ifname}"
            guest.run(f"{link} down && {link} mode dormant && {link} state dormant && {link} up")
            guest.wait_until("grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state")
            guest.start(f"sleep 1.5; {link} mode default; {link} state up")


class Vcheck:
    """A vcheck server and its client. @vhca: the HCAs of a fabric that they are to use."""

    def __init__(self, server, client, vhca=None):
        # On InfiniBand the provider has no extended CQ and no windows, and vcheck no group.
        infiniband = server.bed.infiniband or vhca
        at, to = (f"-d {hca}" for hca in vhca) if vhca else ("", "")
        self.kinds = ("uc", "ud") if infiniband else ("uc", "ud", "mc")
        self.lacks = ["extended CQ", "memory windows", "multicast group"] if infiniband else []
        self.jobs = [server.start(f"exec env {SHIM} vcheck {at}"),
                     client.start(f"exec env {SHIM} vcheck {to} {server.mgmt_ip}")]
        Pair.jobs_made += self.jobs

    def told(self):
        """What each has reported last."""
        return [(json_lines(job.output(), "rounds") or [{}])[-1] for job in self.jobs]

    def more(self, rounds=30, timeout=90):
        """That many more rounds at both ends; datagrams have come both ways meanwhile."""
        before = self.told()
        goal = before[0].get("rounds", 0) + rounds
        for job in self.jobs:
            job.wait_for("|".join(f'"rounds":{n},' for n in range(goal, goal + 11)), timeout)
        after = self.told()
        print(f"  {after}", flush=True)
        for old, new in zip(before, after):
            assert new["lacks"] == self.lacks, new
            for kind in self.kinds:
                gain = new[kind] - old.get(kind, 0)
                assert gain >= rounds // 2, f"{kind}: {gain} of {rounds}: {old} {new}"
            assert "resize_cq" in self.lacks or new["resized"] > old.get("resized", 0), f"not resized: {old} {new}"
            assert new["limits"] > old.get("limits", 0), f"no limit event: {old} {new}"

    def finish(self):
        self.jobs[1].kill(15)
        for job in self.jobs:
            job.wait(60)
            assert last_json(job.output())["ok"], job.output()


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b, mover=LateLink("vcheck")) as mover:
        check = Vcheck(a, b)
        check.more()
        for guest, mover.late in ((a, False), (b, False), (b, False), (a, True)):
            mover.swap(guest, inflight=False)
            check.more()
        check.finish()
