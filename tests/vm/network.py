# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Named networks between guests, and the NICs on them.

A network is a multicast group on the loopback of the bed's own network namespace: a hub which a
migration's destination simply joins, and from which nothing leaves.
"""

_PREFIX = {"mgmt": "192.168.77", "rdma": "10.0.0"}


def address(network, number):
    """The IPv4 address of guest @number on @network."""
    return f"{_PREFIX[network]}.{number}"


class Networks:
    """All networks of a bed."""

    def __init__(self):
        self._groups = {}

    def _mcast(self, network):
        group = self._groups.setdefault(network, len(self._groups) + 1)
        return f"239.192.77.{group}:{47000 + group}"

    def backend(self, netdev, network):
        """Arguments of netdev_add for a NIC backend called @netdev on @network."""
        return {"type": "socket", "id": netdev, "mcast": self._mcast(network),
                "localaddr": "127.0.0.1"}

    def backend_option(self, netdev, network):
        options = self.backend(netdev, network)
        return options.pop("type") + "," + ",".join(f"{k}={v}" for k, v in options.items())

    def mgmt(self, mac):
        """Command line of the NIC that stays with a guest."""
        return ["-netdev", self.backend_option("mgmt", "mgmt"),
                "-device", f"virtio-net-pci,id=mgmt-nic,netdev=mgmt,mac={mac},romfile="]


class Nic:
    """A hot-pluggable NIC.

    network, ip, mac as given; port: number of the root port it is in (QEMU's id: portN);
    netdev, id: QEMU's ids of backend and device; ifname: what it is called in the guest.
    """

    def __init__(self, network, port, ip, mac, model="virtio-net-pci", device_id=None):
        self.network = network
        self.port = port
        self.ip = ip
        self.mac = mac
        self.model = model
        self.netdev = f"{network}{port}"
        self.id = device_id or f"{network}{port}-nic"
        self.ifname = f"{network}{port}"

    def __repr__(self):
        return f"{self.id} ({self.mac}, {self.ip})"

    def device(self):
        """Arguments of device_add."""
        return {"driver": self.model, "id": self.id, "netdev": self.netdev,
                "bus": f"port{self.port}", "mac": self.mac, "romfile": ""}
