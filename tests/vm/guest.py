# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest as tests see it: commands, files, NICs, rxe devices, migration."""

import contextlib
import os
import shlex
import time

import kernel_log
from channel import Channel, GuestGone
from network import Nic, address
from qemu import PORTS, Qemu


class Guest:
    """One machine, through however many QEMUs it is migrated.

    name: also its hostname; number: 1.. in order of creation; mgmt_ip: its address on the
    network that stays; nics: what is plugged now.
    """

    def __init__(self, bed, name, number, boot, memory, nics, state=None):
        """It boots, or begins with the saved @state of one that has."""
        self.bed = bed
        self.name = name
        self.number = number
        self.mgmt_ip = address("mgmt", number)
        self.nics = nics
        self._boot = boot
        self._memory = memory
        self._life = 0      # which QEMU of this guest is running it
        self._state = state
        self.qemu = self._new_qemu(nics, state=state)
        self._channel = Channel(name, self.qemu.shell_path, bed.kernel.slowness)

    def __repr__(self):
        return f"guest {self.name}"

    def _new_qemu(self, nics, **start):
        self._life += 1
        label = self.name if self._life == 1 else f"{self.name}.{self._life}"
        qemu = Qemu(self.bed.directory, label, self._boot, self.bed.networks, nics,
                    self._memory, icount=self.bed.icount, **start)
        qemu.qmp.slowness = self.bed.kernel.slowness
        self.bed.qemus.append(qemu)
        return qemu

    def wait_boot(self, timeout=120):
        if self._state:
            self.qemu.resume(timeout)
            self._channel.wake(self.name)
        else:
            self._channel.wait_hello(timeout)

    # Commands and files

    def start(self, command, stdin=b""):
        """Start a shell command in the background: a Job."""
        return self._channel.start(command, stdin)

    def run(self, command, timeout=60, check=True, stdin=b""):
        """Run a shell command and return what it wrote (standard error too). Raises
        CommandFailed when its status is not 0, unless check=False; TimeoutError after
        @timeout seconds, when it is killed."""
        job = self.start(command, stdin)
        try:
            return job.wait(timeout, check)
        except TimeoutError:
            job.kill(9)
            raise

    def status(self, command, timeout=60):
        """Run a shell command and return its status."""
        job = self.start(command)
        job.wait(timeout, check=False)
        return job.status

    def wait_until(self, command, timeout=60):
        """Wait until shell command @command succeeds; tried every 20 ms inside the guest."""
        self.run(f"until {command}; do usleep 20000; done >/dev/null 2>&1", timeout)

    def push(self, host_path, guest_path):
        """Copy a file into the guest; its executable bit goes with it."""
        with open(host_path, "rb") as f:
            data = f.read()
        mode = os.stat(host_path).st_mode & 0o777
        quoted = shlex.quote(guest_path)
        self.run(f"cat > {quoted} && chmod {mode:o} {quoted}", stdin=data)

    def fetch(self, guest_path):
        """The bytes of a file in the guest."""
        job = self.start(f"cat {shlex.quote(guest_path)}")
        job.wait()
        return job.bytes()

    # Kernel

    def dmesg(self, timeout=60):
        """The whole kernel log."""
        return self.run("dmesg", timeout)

    def load_repath(self, parameters=""):
        """Load the module that was built for this kernel."""
        self.run(f"insmod /lib/repath/ib_repath.ko {parameters}")

    def kernel_complaints(self, timeout=60):
        """Reports in the kernel log that the test did not declare; raises if the guest does not
        tell its log any more."""
        log = self.dmesg(timeout)
        if self.bed.kernel.debug:
            log += self._leaks()
        return kernel_log.unexpected(log, self.bed.expected_log_patterns)

    def _leaks(self):
        """What kmemleak reports: it looks only at what is some seconds old, and says it only when
        it has found it twice."""
        return self.run("""
            cd /sys/kernel/debug
            [ -e kmemleak ] || exit 0
            sleep 6
            echo scan > kmemleak
            echo scan > kmemleak
            cat kmemleak""", timeout=120)

    # NICs and RDMA devices

    def plug(self, network="rdma", ip=None, mac=None, model="virtio-net-pci"):
        """Hot-plug a NIC: it is up, with its address, when this returns. A new MAC each time
        unless @mac is given."""
        nic = self.bed.new_nic(self, network, ip, mac, model)
        self.qemu.add_backend(nic.netdev, network)
        self.qemu.qmp("device_add", **nic.device())
        self.nics.append(nic)
        self.configure(nic)
        return nic

    def configure(self, nic):
        """Wait for @nic in the guest, name it nic.ifname, give it its address. Where a guest has two
        NICs on one network each answers for its own address alone: whoever asks for the one's MAC
        must not get the other's, whose RDMA device does not know the packets."""
        self.run(f"""
            until found=$(grep -il '^{nic.mac}$' /sys/class/net/*/address); do usleep 10000; done
            dev=${{found%/address}}; dev=${{dev##*/}}
            ip link set "$dev" down
            [ "$dev" = {nic.ifname} ] || ip link set "$dev" name {nic.ifname}
            echo 1 > /proc/sys/net/ipv4/conf/{nic.ifname}/arp_ignore
            echo 2 > /proc/sys/net/ipv4/conf/{nic.ifname}/arp_announce
            ip address replace {nic.ip}/24 dev {nic.ifname}
            ip link set {nic.ifname} up""")

    def unplug(self, nic, timeout=60):
        """Unplug a NIC and wait until the guest has let it go."""
        self.qemu.qmp("device_del", id=nic.id)
        self.qemu.qmp.wait_event("DEVICE_DELETED", timeout, device=nic.id)
        self.nics.remove(nic)

    def free_port(self):
        """Number of a root port with no NIC in it."""
        taken = {nic.port for nic in self.nics}
        return next(port for port in range(PORTS) if port not in taken)

    def rxe_add(self, name="rxe0", nic=None, again=False):
        """Make an rxe device over @nic (default: the first) and wait until its port is ACTIVE
        and the GID of its IPv4 address is there. @again: it gives out the numbers of queue pairs that the
        guest's first one gave out, as each does; the HCAs of infiniband.py do so only then."""
        nic = nic or self.nics[0]
        self.run(f"rdma link add {name} type rxe netdev {nic.ifname}")
        quads = "%02x%02x:%02x%02x" % tuple(int(part) for part in nic.ip.split("."))
        port = f"/sys/class/infiniband/{name}/ports/1"
        self.wait_until(f"grep -q ACTIVE {port}/state")
        self.wait_until(f"cat {port}/gids/[0-7] | grep -q ffff:{quads}")

    def rxe_del(self, name="rxe0", timeout=60):
        """Delete an rxe device and wait until it is gone."""
        self.run(f"rdma link del {name}", timeout)
        self.wait_until(f"[ ! -e /sys/class/infiniband/{name} ]", timeout)

    def gid(self, name="rxe0", index=1):
        return self.run(f"cat /sys/class/infiniband/{name}/ports/1/gids/{index}").strip()

    # Migration

    @property
    def qmp_path(self):
        return self.qemu.qmp_path

    @property
    def agent_path(self):
        return self.qemu.agent_path

    def prepare_destination(self, with_nics=False, networks=("rdma",)):
        """Start the QEMU that this guest can be migrated to: a Qemu, whose qmp_path, agent_path
        and uri are what an external migration program needs.

        It has no hot-pluggable NIC, but a backend (QEMU id: network + port number, "rdma0") for
        each of @networks, ready for a device_add. With @with_nics it has the guest's present NICs
        instead, which a migration that does not unplug them needs.
        """
        dst = self._new_qemu(self.nics if with_nics else [], incoming=True)
        if not with_nics:
            for network in networks:
                dst.add_backend(f"{network}0", network)
        dst.shell = self._channel.prepare(dst.shell_path)
        return dst

    def migrate(self, dst=None, timeout=120, bandwidth=None):
        """Live-migrate to @dst (default: one made for the NICs plugged now) and go on there.
        Returns QEMU's figures: {"total_ms", "downtime_ms", "setup_ms", "bytes"}."""
        if dst is None:
            dst = self.prepare_destination(with_nics=bool(self.nics))
        self.start_migration(dst, bandwidth)
        end = time.monotonic() + timeout
        while True:
            info = self.qemu.qmp("query-migrate")
            state = info.get("status")
            if state == "completed":
                break
            if state in ("failed", "cancelled") or time.monotonic() > end:
                raise RuntimeError(f"{self}: migration {state}: {info.get('error-desc', '')}\n"
                                   f"{dst.why()}")
            time.sleep(0.01)
        self.adopt(dst)
        return {"total_ms": info["total-time"], "downtime_ms": info["downtime"],
                "setup_ms": info["setup-time"], "bytes": info["ram"]["transferred"]}

    def start_migration(self, dst, bandwidth=None):
        """Begin a migration to @dst and return; for tests that cancel it."""
        self.qemu.qmp("migrate-set-parameters", max_bandwidth=bandwidth or 1 << 40,
                      downtime_limit=300)
        self.qemu.qmp("migrate", uri=dst.uri)

    def migrate_cancel(self, dst, timeout=30):
        """Call a migration off; the guest stays, @dst ends."""
        self.qemu.qmp("migrate_cancel")
        end = time.monotonic() + timeout
        while self.qemu.qmp("query-migrate")["status"] not in ("cancelled", "completed"):
            if time.monotonic() > end:
                raise TimeoutError(f"{self}: the migration could not be cancelled")
            time.sleep(0.01)
        dst.shell.close()
        dst.quit()

    def adopt(self, dst, timeout=60):
        """Go on with @dst, which an external program has migrated this guest to; self.nics are
        then what that has left plugged there."""
        end = time.monotonic() + timeout
        while not dst.qmp("query-status")["running"]:
            if time.monotonic() > end:
                raise TimeoutError(f"{self}: {dst.label} does not run")
            time.sleep(0.005)
        old, self.qemu = self.qemu, dst
        self._channel.switch(dst.shell)
        old.quit()
        known = {nic.mac: nic for nic in self.nics}
        self.nics = [known.get(mac) or
                     Nic(network, port, address(network, self.number), mac, model, device)
                     for device, model, network, port, mac in dst.plugged()]

    # System suspend

    @contextlib.contextmanager
    def asleep(self, timeout=60):
        """The system is suspended to memory (ACPI S3), as by its own command, and woken at the end, as by its
        power button. In between no processor runs, and nothing that is sent to it is heard. For a bed
        with sleeps = True."""
        self.run("echo deep > /sys/power/mem_sleep")
        # The chipset's power management registers (PMBASE, ACPI_CNTL) are not where they were after a wake-up:
        # neither QEMU's firmware nor Linux puts them back, and the next sleep would end at once.
        chipset = "/sys/bus/pci/devices/0000:00:1f.0/config"
        self.run(f"dd if={chipset} of=/run/pm bs=1 skip=64 count=8")
        job = self.start("echo mem > /sys/power/state")
        self.qemu.qmp.wait_event("SUSPEND", timeout)
        try:
            yield
        finally:
            self.qemu.qmp("system_wakeup")
            self.qemu.qmp.wait_event("WAKEUP", timeout)
            job.wait(timeout)
            self.run(f"dd if=/run/pm of={chipset} bs=1 seek=64 conv=notrunc")

    # End

    def kill(self):
        """Pull the plug. What its kernel said until then is still checked, as far as it is told:
        a guest that is paused in a migration tells nothing."""
        try:
            self.bed.last_words[self.name] = self.kernel_complaints(timeout=10)
        except (TimeoutError, GuestGone):
            self.bed.last_words[self.name] = []
        self._channel.close("it was killed by the test")
        self.qemu.quit()

    @property
    def alive(self):
        return self._channel.gone is None and self.qemu.running

    def close(self):
        self._channel.close("the bed was closed")
