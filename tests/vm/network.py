# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Named networks between guests, and the NICs on them.

A network is a bridge in the bed's own network namespace, each NIC a tap on it, so nothing leaves;
a migration's destination has taps of its own, and the bridge learns where the guest now is.
(Measured against QEMU's multicast sockets: half the latency, half as much bandwidth again.)
"""

import contextlib
import itertools
import subprocess

MTU = 9000          # that networks carry; guests' NICs have 1500 until they are told
_PREFIX = {"mgmt": "192.168.77", "rdma": "10.0.0"}


def _ip(arguments):
    subprocess.run(["ip", *arguments.split()], check=True)


def _quiet(link):
    """The host's end of a network says nothing by itself."""
    with open(f"/proc/sys/net/ipv6/conf/{link}/disable_ipv6", "w") as f:
        f.write("1")


def address(network, number):
    """The IPv4 address of guest @number on @network."""
    return f"{_PREFIX[network]}.{number}"


class Networks:
    """All networks of a bed."""

    _numbers = itertools.count()    # no tap is called as one of an earlier bed, still on its way out

    def __init__(self):
        self._bridges = {}
        self._taps = []
        self._of = {}

    def _bridge(self, network):
        if network not in self._bridges:
            bridge = self._bridges[network] = f"net{next(self._numbers)}-{network}"[:15]
            _ip(f"link add {bridge} type bridge mcast_snooping 0")
            _quiet(bridge)
            _ip(f"link set {bridge} mtu {MTU} up")
        return self._bridges[network]

    def _tap(self, network):
        tap = f"tap{next(self._numbers)}"
        _ip(f"tuntap add {tap} mode tap vnet_hdr")
        _quiet(tap)
        _ip(f"link set {tap} mtu {MTU} master {self._bridge(network)} up")
        self._taps.append(tap)
        self._of.setdefault(network, []).append(tap)
        return tap

    def taps(self, network):
        """The host's ends of all NICs on @network."""
        return list(self._of.get(network, []))

    @contextlib.contextmanager
    def cut(self, network):
        """Nothing gets from one guest to another on @network; no NIC is told of that."""
        _ip(f"link set {self._bridge(network)} down")
        try:
            yield
        finally:
            _ip(f"link set {self._bridge(network)} up")

    def backend(self, netdev, network):
        """Arguments of netdev_add for a NIC backend called @netdev on @network."""
        return {"type": "tap", "id": netdev, "ifname": self._tap(network),
                "script": "no", "downscript": "no"}

    def backend_option(self, netdev, network):
        options = self.backend(netdev, network)
        return options.pop("type") + "," + ",".join(f"{k}={v}" for k, v in options.items())

    def host_address(self, network):
        """Give the host an address on @network, reached by all its guests: it."""
        _ip(f"address replace {_PREFIX[network]}.254/24 dev {self._bridge(network)}")
        return address(network, 254)

    def close(self):
        """Remove bridges and taps; no QEMU uses them any more."""
        for link in [*self._taps, *self._bridges.values()]:
            _ip(f"link del {link}")
        self._taps, self._bridges = [], {}

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
