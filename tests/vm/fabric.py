# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An InfiniBand fabric for a test: vfabric's switches and cables, a software HCA (tests/vhca) at
each host of the topology, and OpenSM.

    def test(bed):
        fabric = bed.fabric("mesh:3x2")         # ports ACTIVE when this returns
        a = fabric.guest                        # one guest with vhca1 .. vhca6, at H1 .. H6
        a.run("ibnetdiscover -C vhca1")
        fabric.command('Unlink "S2"[4]')        # vfabric's console

Everything runs inside the guest: vfabric and the HCAs talk over its own lo. With several guests

    fabric = bed.fabric("mesh:3x2", guests={"a": ("H1", "H2"), "b": ("H3",)})

vfabric runs outside of them, and they talk to it over the management network, which a migration
keeps; OpenSM runs in the first one.

HCAs with virtual functions (SR-IOV), each a HCA with its own LID behind a switch of its server's:

    fabric = bed.fabric("mesh:2,vswitch=2", guests={"pf": ["H1"], "vm1": ["H1v1"], "vm2": ["H2v1"]})
    fabric.move("H2v1", "H1v2")             # the VF of a VM that has moved: its GUID comes along

or functions that share a port, one LID and one space of QPNs, each VF with an alias GUID that the SM
chooses, or that the PF is given:

    fabric = bed.fabric("mesh:2,shared=2", guests={"pf": ["H1", "H2"], "vm": ["H1v1", "H2v2"]},
                        vguids={"H1v1": 0x2c9ff00000001})

OpenSM with libosmrepath.so, and what its file of options says:

    fabric = bed.fabric("mesh:3x2", opensm="-R lash -Q", repath="method hybrid")
    fabric.repath_status()["notices"]

When a test has passed, repath fabric check judges what OpenSM has set, if it still runs. A test that leaves
something wrong on purpose says so, and why:

    fabric.judged = False     # why
"""

import json
import os
import re
import shlex
import subprocess
import time

import image
import kernel as kernels
from network import MTU

PORT = 7000
LANE_DEPTH = 64     # VHCA_LANE_DEPTH: packets of a lane that an HCA holds
CONTROL = "/run/vfabric"
SYSFS = "/sys/devices/vhca"
TOOLS = """opensm ibnetdiscover smpquery perfquery saquery iblinkinfo sminfo ibportstate ibv_rc_pingpong
    ib_read_bw ib_write_bw mckey""".split()
PROVIDER = "libibverbs/libipathverbs-rdmav34.so"
MODULES = ("rdmavt", "ib_ipoib")
GUID = 0x0002c90200000000
CRASHED = (132, 134, 135, 136, 139)     # statuses: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV


VFABRIC = os.path.join(image.TOP, "build/vfabric/vfabric")
PLUGIN = os.path.join(image.TOP, "build/libosmrepath.so")


def files(kernel, directory):
    """What a guest needs beyond the base image, as {path there: path here}."""
    found = {"usr/bin/vfabric": VFABRIC,
             f"{image.LIBRARIES}/libosmrepath.so": PLUGIN,
             f"{image.LIBRARIES}/{PROVIDER}": f"/{image.LIBRARIES}/{PROVIDER}",
             "etc/libibverbs.d/ipathverbs.driver": "/etc/libibverbs.d/ipathverbs.driver"}
    for tool in TOOLS:
        found[f"usr/bin/{tool}"] = image.find_tool(tool)
    for path in kernel.module_files(MODULES):
        name = re.sub(r"\.ko.*", "", os.path.basename(path)).replace("-", "_")
        if name not in MODULES:
            continue
        plain = os.path.join(directory, name + ".ko")
        os.makedirs(directory, exist_ok=True)
        with open(plain, "wb") as f:
            f.write(kernels.read_module(os.path.join(kernel.modules, path)))
        found[f"usr/lib/repath/{name}.ko"] = plain
    return found


def node_guid(host):
    """Of the HCA in a host's place: "H3", or "H3v1", its first VF."""
    number, function = re.search(r"(\d+)(?:v(\d+))?$", host).groups("0")
    return GUID + int(function) * 0x100000 + int(number) * 16


class Fabric:
    """A running fabric.

    guest: the first guest, where OpenSM runs, and vfabric if it is the only one; hosts: {host of
    the topology: its HCA}, in the topology's order; place: {host: the guest that has that HCA}.
    A topology is what vfabric takes by name, or the text of a file. HCAs are at all its hosts, or
    only at those in @hosts; with @guests, {name: hosts}, they are in several guests.
    """

    def __init__(self, bed, topology, opensm="", options="", module="", ipoib=False, hosts=None,
                 memory=512, guests=None, vguids=None, repath=None):
        # rdmavt copies requests of several types by one memcpy(): a warning, once a boot.
        bed.expect_kernel_log(r"memcpy: detected field-spanning write .*rdmavt/qp\.c")
        bed.files.update(files(bed.kernel, os.path.join(bed.directory, "vhca")))
        self.guests = bed.guests(*(guests or ["a"]), rdma=False, memory=memory)
        self.guest = self.guests[0]
        self.address = bed.networks.host_address("mgmt") if guests else "127.0.0.1"
        self._outside = bed.directory if guests else None
        self.hosts, self.place, self.guids = {}, {}, {}
        self.vguids = vguids or {}
        self.repath = repath
        self.sm_jobs = []
        self.judged = True
        bed.judges.append(self.judge)
        if "\n" in topology:
            path = os.path.join(bed.directory, "topology")
            with open(path, "w") as f:
                f.write(topology)
            self.guest.push(path, "/run/topology")
            topology = path if guests else "/run/topology"
        if guests:
            bed.at_end.append(self._start_outside(topology, options))
        else:
            self._start(topology, options)
        for guest in self.guests:
            if guests:      # so that IP cuts no packet of the fabric in two
                guest.run(f"ip link set mgmt mtu {MTU}")
            self.load(module, ipoib, guest)
        wanted = guests or {"a": hosts}
        # As vfabric has it, in ibsim's net format.
        self.topology = self._vfabric("-w", topology)
        for guest in self.guests:
            for host, ports in self._hosts():
                if wanted[guest.name] is None or host in wanted[guest.name]:
                    self.add(host, ports, guest=guest)
        if opensm is not None:
            self.start_opensm(opensm)
            self.wait_active()

    def _start(self, topology, options):
        self.guest.start(
            f"exec vfabric -q -r -c {CONTROL} -x udp:{self.address}:{PORT} {options} "
            f"'{topology}' >/run/vfabric.out 2>&1")
        self.guest.wait_until("grep -q 'vfabric ready' /run/vfabric.out || ! pidof vfabric")

    def _start_outside(self, topology, options):
        """Returns what ends it."""
        out = open(os.path.join(self._outside, "vfabric.out"), "w+")
        vfabric = subprocess.Popen(
            [VFABRIC, "-q", "-r", "-c", os.path.join(self._outside, "vfabric"),
             "-x", f"net:{self.address}:{PORT}", *options.split(), topology],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

        def end():
            vfabric.kill()
            vfabric.wait()
            out.close()
        return end

    def load(self, parameters="", ipoib=False, guest=None):
        """Load the driver and what it needs."""
        modules = "rdmavt ib_ipoib" if ipoib else "rdmavt"
        (guest or self.guest).run(
            "modprobe -a ib_umad ib_cm rdma_ucm; "
            f"for m in {modules}; do grep -q ^$m /proc/modules || insmod /lib/repath/$m.ko; done; "
            f"insmod /lib/repath/ib_vhca.ko {parameters}")

    def _hosts(self):
        """The topology's hosts with their numbers of ports."""
        found = []
        for ports, name in re.findall(r'^Hca\s+(\d+)\s+"([^"]+)"', self.topology, re.M):
            found.append((name, int(ports)))
            found += [(f"{name}v{i + 1}", 1) for i in range(self._shared_vfs(name))]
        return found

    def _shared_vfs(self, host):
        """How many VFs share a host's port."""
        inside = re.search(rf'^Switch\s+(\d+)\s+"{host}-hca".* shared port$', self.topology, re.M)
        return int(inside[1]) - 2 if inside else 0

    def _functions(self, host):
        """The host that an HCA names, and what it says of functions that share its port."""
        pf, _, function = host.partition("v")
        if function and self._shared_vfs(pf):
            return pf, f"function={function}"
        vfs = self._shared_vfs(host)
        if not vfs:
            return host, ""
        chosen = [self.vguids.get(f"{host}v{i + 1}", 0) for i in range(vfs)]
        return host, f"vfs={vfs} vguids=" + ",".join(f"{guid:#x}" for guid in chosen)

    def _vfabric(self, option, *words, timeout=30):
        """What vfabric says where it runs."""
        if self._outside:
            return subprocess.run([VFABRIC, option, *words], timeout=timeout, check=True,
                                  capture_output=True, text=True).stdout
        return self.guest.run(shlex.join(["vfabric", option, *words]), timeout)

    def add(self, host, ports=1, name=None, guest=None, guid=None, numbers=None):
        """Hot-add an HCA in a host's place: its name. @numbers: it gives out those of the guest's HCA that came as
        number @numbers, from 0 on."""
        name = name or "vhca" + re.search(r"\d+(v\d+)?$", host)[0]
        guest = guest or self.guest
        guest.run(self.add_command(host, name, ports, guid, numbers))
        return self.has_come(host, name, guest, guid)

    def add_command(self, host, name, ports=1, guid=None, numbers=None):
        """The shell command that adds it, in whatever guest."""
        at, functions = self._functions(host)
        return (f"echo {name} {at} udp:{self.address}:{PORT} guid={guid or node_guid(host):#x} "
                f"ports={ports} {functions} {'' if numbers is None else f'numbers={numbers}'} > {SYSFS}/add")

    def has_come(self, host, name, guest, guid=None):
        """Somebody has run that command: its name."""
        self.place[host] = guest
        self.guids[host] = guid or node_guid(host)
        self.hosts[host] = name
        return name

    def remove(self, host):
        """Hot-remove a host's HCA, whoever uses it."""
        self.place[host].run(self.remove_command(self.hosts[host]))
        self.has_gone(host)

    @staticmethod
    def remove_command(name):
        """The shell command that removes it, in the guest that has it."""
        return f"echo {name} > {SYSFS}/remove"

    def has_gone(self, host):
        """Somebody has run that command. An OpenSM there only logs for ever that it can receive nothing."""
        for job in self.sm_jobs:
            if job.host == host and self.place[host].alive and job.running:
                job.kill(9)
        del self.place[host], self.hosts[host]

    def move(self, host, to, guest=None):
        """Hot-remove a host's HCA, and add one with its GUID in another host's place, in the same
        guest or another one: what a hypervisor does with the VF of a VM that it moves."""
        guest = guest or self.place[host]
        name, guid = self.hosts[host], self.guids[host]
        vguid = self.vguid(host) if self._shared_vfs(host.partition("v")[0]) else None
        self.remove(host)
        if vguid:
            self.set_vguid(host, "none")
            self.set_vguid(to, vguid)
        self.add(to, name=name, guest=guest, guid=guid)
        self.wait_active([to])

    def vguid(self, host):
        """Of a VF that shares its PF's port: what the PF's table says."""
        pf, _, function = host.partition("v")
        gid = self.place[pf].run(
            f"cat /sys/class/infiniband/{self.hosts[pf]}/ports/1/gids/{function}")
        return int(gid.strip().replace(":", "")[16:], 16)

    def set_vguid(self, host, guid):
        """A VF's GUID, or "none": the PF knows when this returns, and so does the SM."""
        pf, _, function = host.partition("v")
        self.place[pf].run(f"echo {self.hosts[pf]} {function} {guid} > {SYSFS}/vguid")
        wanted = 0 if guid == "none" else guid
        end = time.monotonic() + 60
        while self.vguid(host) != wanted:
            if time.monotonic() > end:
                raise TimeoutError(f"the SM did not give {host} the GUID {guid}")
            time.sleep(0.2)

    def port_guid(self, host, port=1):
        return self.guids[host] + port

    def start_opensm(self, options="", host=None, conf=""):
        """Start OpenSM at a host (default: the first). @conf: of its file of options."""
        host = host or next(iter(self.hosts))
        name = f"/run/opensm-{host}"
        if self.repath is not None:
            conf += f"\nevent_plugin_name osmrepath\nevent_plugin_options {name}/repath.conf"
            for path, text in (
                    ("repath.conf", f"status_socket {name}/repath.sock\n{self.repath}"),
                    ("opensm.conf", conf)):
                self.place[host].run(
                    f"mkdir -p {name}; printf '%s\\n' {shlex.quote(text)} > {name}/{path}")
            options += f" -F {name}/opensm.conf"
        job = self.place[host].start(
            f"mkdir -p {name}; OSM_TMP_DIR={name} OSM_CACHE_DIR={name} exec opensm "
            f"-g {self.port_guid(host):#x} -e -f {name}/log {options} >{name}/out 2>&1")
        job.host = host
        self.sm_jobs.append(job)
        return job

    def sm_log(self, host=None):
        host = host or next(iter(self.hosts))
        return self.place[host].run(f"cat /run/opensm-{host}/log")

    def judge(self, patience=30):
        """Fail if an OpenSM has crashed, or something is wrong in what it has set: nobody must be unreached, or can wait
        for ever."""
        crashed = [(job.host, job.status) for job in self.sm_jobs if not job.running and job.status in CRASHED]
        assert not crashed, crashed
        running = [job.host for job in self.sm_jobs
                   if job.host in self.hosts and self.place[job.host].alive and job.running and
                   not self.place[job.host].status(
                       f"[ -e /sys/class/infiniband/{self.hosts[job.host]} ]")]
        end = time.monotonic() + patience
        # A sweep may be under way, and MADs be lost.
        while self.judged and running and (wrong := self._wrong(running[0])):
            if time.monotonic() > end:
                raise AssertionError(f"repath fabric check: {wrong}")
            time.sleep(1)

    def _wrong(self, host):
        """What is. One engine does not avoid credit loops."""
        engine = re.findall(r"(\S+) tables configured", self.place[host].run(
            f"grep 'tables configured' /run/opensm-{host}/log | tail -n 1", check=False))
        try:
            said = self.place[host].run(f"repath -j fabric check dev {self.hosts[host]} 2>&1",
                                        timeout=60, check=False)
        except TimeoutError as error:
            return str(error)
        if not said.startswith("{"):
            return said or "nothing"
        return [fault["what"] for fault in json.loads(said)["faults"] if fault["wrong"] and
                not (engine[-1:] == ["minhop"] and fault["kind"] == "credit-loop")]

    def repath_status(self, host=None):
        """What libosmrepath.so says of itself in the OpenSM at a host."""
        host = host or next(iter(self.hosts))
        return json.loads(self.place[host].run(
            f"repath -j sm socket /run/opensm-{host}/repath.sock"))

    def wait_active(self, hosts=None, timeout=60):
        """Wait until the ports of all HCAs (or those at @hosts) are ACTIVE."""
        for host in hosts or self.hosts:
            states = f"/sys/class/infiniband/{self.hosts[host]}/ports/*/state"
            try:
                self.place[host].wait_until(
                    f"[ $(cat {states} | grep -c ACTIVE) = $(echo {states} | wc -w) ]", timeout)
            except TimeoutError:
                print(self.place[host].run(f"grep . {states}; dmesg | tail -n 20", check=False),
                      self.guest.run("tail -n 30 /run/opensm-*/log; tail -n 20 /run/vfabric.out",
                                     check=False), flush=True)
                if self._outside:
                    with open(os.path.join(self._outside, "vfabric.out")) as f:
                        print(f.read()[-2000:], flush=True)
                raise

    def lid(self, host, port=1):
        return int(self.place[host].run(
            f"cat /sys/class/infiniband/{self.hosts[host]}/ports/{port}/lid"), 0)

    def command(self, line, timeout=30):
        """Run a line on vfabric's console; what it printed. Raises if it failed."""
        control = os.path.join(self._outside, "vfabric") if self._outside else CONTROL
        return self._vfabric("-k", control, line, timeout=timeout)

    def faults(self, port):
        """What has gone wrong on the cable that a port ("S1[2]") sends on: {what: packets}. A Fault line
        must have named the port."""
        names, *lines = (line.split(",") for line in self.command("Results faults").splitlines())
        line, = (line for line in lines if line[0] == port)
        return dict(zip(names[1:], map(int, line[1:])))

    def play(self, script, program="qpscript"):
        """Run a script of qpscript's; what it said is shown if a line fails."""
        slowness = self.guest.bed.kernel.slowness
        job = self.guest.start(f"exec {program} -w {slowness}", stdin=script.encode())
        try:
            job.wait(120)
        except Exception:
            print(job.output(), self.guest.run("dmesg | tail -n 20"), flush=True)
            raise
