# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that were written for soft RoCE, on InfiniBand: `INFINIBAND=1 tests/vm/run move_client`.

A guest's "rxe0" is then a software HCA (tests/vhca) on a fabric of two switches, for which vfabric and OpenSM
run outside of all guests. What a test does with NICs it does with hosts of that topology: an address
that was never used stands for a place that nobody had, so that an HCA that comes there has another GUID, LID
and GID; the address that a NIC had before, for its place. A migration takes no NIC along then.

For a test that names neither GIDs by index nor QEMU's own devices; which have run is in docs/survives.md.
"""

import glob
import os
import shutil
import subprocess

import fabric as fabrics
from guest import Guest
from network import address

TOPOLOGY = "mesh:2,hosts=31"
SM_HOST = "H1"
# For HCAs that come anew; then those that went first are taken again.
PLACES = [f"H{number}" for number in range(2, 63)]


class Place:
    """What plays a NIC: a host of the topology, where an HCA can be."""

    network = "infiniband"
    port = mac = None

    def __init__(self, ip, host):
        self.ip, self.host = ip, host

    def __repr__(self):
        return f"{self.host} ({self.ip})"


class Places:
    """Which address is which host of the topology."""

    def __init__(self):
        self.free = list(PLACES)
        self.of = {}

    def take(self, ip):
        """The one that @ip had before, else the one that nobody has had, or not for longest."""
        host = self.of.get(ip) or self.free[0]
        self.free.remove(host)
        self.of[ip] = host
        return Place(ip, host)

    def give(self, place):
        self.free.append(place.host)


class HcaGuest(Guest):
    """A guest whose RDMA devices are HCAs of a fabric."""

    fabric = places = None      # set when the fabric is there

    def plug(self, network="rdma", ip=None, mac=None, model="virtio-net-pci"):
        if network != "rdma":
            return super().plug(network, ip, mac, model)
        place = self.places.take(ip or address(network, self.number))
        self.nics.append(place)
        return place

    def unplug(self, nic, timeout=60):
        if not isinstance(nic, Place):
            return super().unplug(nic, timeout)
        self.places.give(nic)
        return self.nics.remove(nic)

    def rxe_add(self, name="rxe0", nic=None, again=False):
        host = (nic or self.nics[0]).host
        self.fabric.add(host, name=name, guest=self, numbers=0 if again else None)
        self.fabric.wait_active([host])

    def rxe_del(self, name="rxe0", timeout=60):
        host, = (host for host, guest in self.fabric.place.items()
                 if guest is self and self.fabric.hosts[host] == name)
        self.fabric.remove(host)

    def prepare_destination(self, with_nics=False, networks=()):
        """Places are not QEMU's."""
        return super().prepare_destination(networks=())

    def adopt(self, dst, timeout=60):
        places = [nic for nic in self.nics if isinstance(nic, Place)]
        super().adopt(dst, timeout)
        self.nics += places


def start_opensm(directory):
    """OpenSM at SM_HOST, as one of ibsim's clients: returns what ends it."""
    library, = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")
    environment = dict(os.environ, SIM_HOST=SM_HOST, LD_PRELOAD=library, OSM_TMP_DIR=directory,
                       OSM_CACHE_DIR=directory)
    opensm = subprocess.Popen(
        [shutil.which("opensm"), "-e", "-d2", "-f", os.path.join(directory, "opensm.log")], cwd=directory,
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def end():
        opensm.kill()
        opensm.wait()
    return end


def guests(bed, names, memory):
    """As bed.guests(): booted, each with an rxe0 whose port is ACTIVE."""
    bed.kind = HcaGuest
    # UCX takes half as much again as on soft RoCE.
    fabric = fabrics.Fabric(bed, TOPOLOGY, opensm=None, guests={name: [] for name in names},
                            memory=memory * 3 // 2)
    bed.at_end.insert(0, start_opensm(bed.directory))
    places = Places()
    for guest in fabric.guests:
        guest.fabric, guest.places = fabric, places
        guest.rxe_add(nic=guest.plug())
    return fabric.guests
