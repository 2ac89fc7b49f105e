# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One QEMU process: its command line, its sockets, its end."""

import os
import subprocess
import time

import kernel as kernels
from qmp import QMP, QMPError

PORTS = 2       # pcie-root-ports, so hot-pluggable NICs, of a guest
# no_timer_check: on a busy host the ticks that the check waits for come too late, and it panics.
BOOT_OPTIONS = ("console=ttyS0 quiet no_timer_check oops=panic panic=-1 mitigations=off "
                "log_buf_len=4M random.trust_cpu=on rcupdate.rcu_expedited=1 tsc=reliable nokaslr")

# One, but TCG leaves out barriers and locks where there can be no second one, though the threads that
# serve virtio are others as well: once in some hundred minutes an interrupt was not asked for, and a
# guest's network stood still for good.
CPUS = "1,maxcpus=2"
# TCG of QEMU 7.2 takes the flags of before CMPXCHG16B from where they were last, not from where they are: they may be
# an operand instead. An interrupt before the next comparison saves and restores those: the direction of string
# instructions, or virtual 8086 mode. Linux 6.12 falls by that once in an hour, in its allocator; without the
# instruction that does otherwise.
CPU = {"tcg": "max,-cx16", "kvm": "max"}

# KiB more than the MiB asked for. QEMU 7.2 looks for what a guest has written since the last pass of a migration
# by words of 64 pages where memory has a whole number of them, and forgets then to have TCG tell of the next store to
# them: pages came to the destination as they were before, once in some sixty migrations, and the guest's kernel
# panicked. Page by page it does not.
ODD = 8


class Qemu:
    """A QEMU, running as soon as the object is made.

    qmp_path, agent_path, shell_path, uri are its sockets: QMP for others (the bed has a monitor
    of its own), the port repath.0, the port bed.0, and where a migration comes in.
    """

    def __init__(self, directory, label, boot, networks, nics, memory, incoming=False, state=None,
                 icount=False):
        """With @incoming it waits for a migration; with @state it starts, paused, from what save()
        has left there. With @icount its clocks count instructions, one a nanosecond."""
        self.label = label
        self._networks = networks
        self._backends = {nic.netdev for nic in nics}
        self._quit = False
        self._base = os.path.join(directory, label)
        self.qmp_path = self._base + ".qmp"
        self.agent_path = self._base + ".agent"
        self.shell_path = self._base + ".shell"
        self.uri = f"unix:{self._base}.incoming"
        self.console_path = self._base + ".console"
        self.log_path = self._base + ".log"
        command = self._command(boot, memory, icount) + networks.mgmt(boot.mgmt_mac)
        for nic in nics:
            command += ["-netdev", networks.backend_option(nic.netdev, nic.network),
                        "-device", ",".join(f"{k}={v}" for k, v in nic.device().items())]
        if incoming:
            command += ["-incoming", self.uri]
        elif state:
            command += ["-incoming", f"exec:cat '{state}'"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT)
        self._wait_for_sockets()
        self.qmp = QMP(self._base + ".monitor")

    def _command(self, boot, memory, icount):
        accel = "tcg" if icount else kernels.accelerator()
        unix = "server=on,wait=off"
        options = BOOT_OPTIONS
        if accel == "tcg":
            options += f" tsc_early_khz={1000000 if icount else kernels.tsc_khz()}"
        command = [
            kernels.QEMU, "-nodefaults", "-no-user-config", "-display", "none",
            "-machine", "q35", "-accel", accel, "-cpu", CPU[accel], "-smp", CPUS, "-m", f"{1024 * memory + ODD}K",
            "-no-reboot", "-kernel", boot.vmlinux, "-initrd", boot.initrd,
            "-append", f"{options} {boot.append}",
            "-chardev", f"file,id=console,path={self.console_path}",
            "-serial", "chardev:console",
            "-qmp", f"unix:{self._base}.monitor,{unix}",
            "-qmp", f"unix:{self.qmp_path},{unix}",
            "-device", "virtio-serial-pci,id=serial",
            "-chardev", f"socket,id=shell,path={self.shell_path},{unix}",
            "-device", "virtserialport,chardev=shell,name=bed.0",
            "-chardev", f"socket,id=agent,path={self.agent_path},{unix}",
            "-device", "virtserialport,id=agent-port,chardev=agent,name=repath.0",
        ]
        if icount:
            command += ["-icount", "shift=0"]
        for port in range(PORTS):
            command += ["-device", f"pcie-root-port,id=port{port},chassis={port + 1},"
                                   f"slot={port + 1},bus=pcie.0"]
        return command

    def _wait_for_sockets(self):
        # The monitors come last, so all the others are there when this one is.
        end = time.monotonic() + 30
        while not os.path.exists(self.qmp_path):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.label}: QEMU did not start:\n{self.why()}")
            time.sleep(0.01)

    def save(self, path, timeout):
        """Pause it and write its state to @path; all that it is good for then is quit()."""
        self.qmp("stop")
        self.qmp("migrate-set-parameters", max_bandwidth=1 << 40)
        self.qmp("migrate", uri=f"exec:cat >'{path}'")
        end = time.monotonic() + timeout
        # "completed" comes first; only then QEMU waits for the program that writes.
        while self.qmp("query-status")["status"] != "postmigrate":
            info = self.qmp("query-migrate")
            if info.get("status") in ("failed", "cancelled"):
                raise RuntimeError(f"{self.label}: its state was not saved: {info}")
            if time.monotonic() > end:
                raise TimeoutError(f"{self.label}: its state is not saved after {timeout} s: {info}")
            time.sleep(0.01)

    def resume(self, timeout):
        """Let it run when it has read the state that it starts from."""
        end = time.monotonic() + timeout
        while self.qmp("query-status")["status"] == "inmigrate":
            if time.monotonic() > end:
                raise TimeoutError(f"{self.label}: its state is not read after {timeout} s")
            time.sleep(0.01)
        self.qmp("cont")

    def why(self):
        """What QEMU and the console said last, for an error message."""
        text = ""
        for title, path, lines in (("QEMU", self.log_path, 20), ("console", self.console_path, 100)):
            with open(path, errors="replace") if os.path.exists(path) else open(os.devnull) as f:
                tail = f.read().replace("\r", "").splitlines()[-lines:]
            text += f"--- {title} of {self.label}\n" + "\n".join(tail) + "\n"
        return text

    def add_backend(self, netdev, network):
        """Have a backend called @netdev on @network. It stays when its NIC goes."""
        if netdev not in self._backends:
            self.qmp("netdev_add", **self._networks.backend(netdev, network))
            self._backends.add(netdev)

    def plugged(self):
        """(id, model, network, port, mac) of each hot-pluggable NIC that is there now, whoever
        plugged it."""
        found = []
        for item in self.qmp("qom-list", path="/machine/peripheral"):
            if not item["type"].startswith("child<"):
                continue
            path = "/machine/peripheral/" + item["name"]
            names = {prop["name"] for prop in self.qmp("qom-list", path=path)}
            if item["name"] == "mgmt-nic" or not {"netdev", "mac"} <= names:
                continue
            netdev, mac = (self.qmp("qom-get", path=path, property=p) for p in ("netdev", "mac"))
            network = netdev.rstrip("0123456789")
            found.append((item["name"], item["type"][len("child<"):-1], network,
                          int(netdev[len(network):]), mac))
        return sorted(found, key=lambda nic: nic[3])

    def queue(self, nic, number):
        """What QEMU knows of a queue of a virtio NIC (0: receive, 1: transmit)."""
        try:
            return self.qmp("x-query-virtio-queue-status", queue=number,
                            path=f"/machine/peripheral/{nic.id}/virtio-backend")
        except QMPError as error:
            return str(error)

    @property
    def running(self):
        return self.process.poll() is None

    @property
    def ended_by_itself(self):
        """It has gone without quit(): by a signal, or as its guest's kernel panicked."""
        return not self.running and not self._quit

    def quit(self):
        """End it at once, as pulling the plug does."""
        if self.running:
            self._quit = True
            try:
                self.qmp("quit")
                self.process.wait(5)
            except (OSError, EOFError, QMPError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        self.qmp.close()
