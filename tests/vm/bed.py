# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The test bed: guests with stock kernels in QEMU, and what can be done to them.

::

              one network namespace and one process-id namespace per run
   .------------------------------------------------------------------------.
   |   guest a (number 1)          guest b (number 2)      b.2: where b is   |
   |  .-----------------.        .-----------------.        migrated to      |
   |  | mgmt            |        | mgmt            |      .-----------------.|
   |  |  192.168.77.1   |        |  192.168.77.2   |      | the same guest  ||
   |  | rdma0 [rxe0]    |        | rdma0 [rxe0]    |      | (rdma0 comes by ||
   |  |  10.0.0.1       |        |  10.0.0.2       |      |  plug())        ||
   |  '--+---+----------'        '--+---+----------'      '--+---+----------'|
   |     |   |                      |   |                    |   |           |
   |     |   `== network rdma ======|===+====================|===+           |
   |     `------ network mgmt ------+------------------------+               |
   '------------------------------------------------------------------------'

A guest has a NIC on `mgmt`, which stays with it through a migration, and by default one on `rdma`,
hot-pluggable, with rxe0 on it. Two virtio-serial ports: bed.0 carries this library's commands,
repath.0 is the agent's (a unix socket here: g.agent_path). Each NIC sits in its own root port
(QEMU ids: port0, port1), its backend is called after network and port (rdma0), its device
rdma0-nic.

A test:

    def test(bed):
        a, b = bed.guests("a", "b")             # booted side by side, rxe0 ACTIVE
        server = a.start("ibv_rc_pingpong -g 1")
        b.run("sleep 1; ibv_rc_pingpong -g 1 10.0.0.1", timeout=60)     # raises if it fails
        server.wait()

        b.rxe_del("rxe0")
        b.unplug(b.nics[0])
        figures = b.migrate()                   # figures["downtime_ms"]
        nic = b.plug("rdma", ip="10.0.0.12")    # new MAC
        b.rxe_add("rxe0", nic)

Verbs of a Guest: run, start, status, wait_until, push, fetch, dmesg, load_repath, plug, unplug,
rxe_add, rxe_del, gid, migrate, prepare_destination, adopt, start_migration, migrate_cancel, asleep, kill;
of a Job (what start returns): wait, wait_for, output, running, status, kill. Each says what it
does where it is defined, in guest.py and channel.py.

With a program that migrates by itself:

        dst = b.prepare_destination()
        subprocess.run(["scripts/repath-migrate", b.qmp_path, dst.qmp_path, ...], check=True)
        b.adopt(dst)                            # run nothing in b between these two

When a test ends, every guest's kernel log is read; a report in it fails the test, unless the test
said `bed.expect_kernel_log(r"regex")`. A QEMU that ends by itself fails it too.

Environment: KERNEL, KERNEL_ROOT (kernel.py), REPATH_CACHE (image.py); INFINIBAND=1 puts software HCAs in
the place of soft RoCE (infiniband.py).
"""

import os
import shutil
import threading

import booted
import image
from channel import CommandFailed, GuestGone, Job          # noqa: F401  offered to tests
from guest import Guest
from kernel import Kernel
from network import Networks, Nic, address

# Where a run keeps sockets, consoles, initramfs: a tmpfs of its own mount namespace, see run.
RUN_DIRECTORY = os.path.join(image.CACHE, "run")


class KernelComplained(Exception):
    """A guest's kernel log has what a sane kernel does not say."""


class Skip(Exception):
    """Raised by a test which cannot run here; its text says why."""


class NetworkStalled(Exception):
    """A network of the bed carries nothing any more: nothing is proved about what was tested on it."""


class _Boot:
    """What one guest is started with."""

    def __init__(self, vmlinux, initrd, name, number):
        self.vmlinux = vmlinux
        self.initrd = initrd
        self.mgmt_mac = f"52:54:00:4d:00:{number:02x}"
        self.number = number
        self.append = (f"bed.host={name} bed.mgmt={address('mgmt', number)} "
                       f"bed.mgmt_mac={self.mgmt_mac}")


class Bed:
    """Guests and networks of one test, also as a context manager.

    kernel: the Kernel that its guests boot; files: {path in the guests: path here}, put there
    beyond what the build made, to be filled before the first guest boots; booted: where guests'
    states are kept, None: all boot; icount: its guests' clocks count instructions; sleeps: its guests
    can sleep, which takes a slower boot.
    """

    def __init__(self):
        self.directory = RUN_DIRECTORY
        self.kernel = Kernel()
        self.networks = Networks()
        self.all_guests = []
        self.qemus = []
        self.last_words = {}            # of killed guests: name -> complaints
        self.expected_log_patterns = []
        self.files = {}
        self.booted = None if self.kernel.debug else booted.of_run()
        self.icount = False
        self.sleeps = False
        self.infiniband = bool(os.environ.get("INFINIBAND"))
        self.kind = Guest
        self.at_end = []                # what a test has running outside of guests: called
        self.judges = []                # called when a test has passed: what it leaves is right
        self._macs = 0
        self._vmlinux = self._initrd = None

    def guests(self, *names, memory=384, rdma=True, rxe=True):
        """Boot guests side by side and return them in the order of @names. With @rdma each has a
        NIC there, with @rxe an rxe0 on it."""
        if self.infiniband and rdma and rxe:
            import infiniband       # imports what only its tests need
            return infiniband.guests(self, names, memory)
        self._prepare_image()
        if self.kernel.debug:       # its shadow, and what it keeps of what was freed
            memory *= 3
        planned = []
        for number, name in enumerate(names, len(self.all_guests) + 1):
            boot = _Boot(self._vmlinux, self._initrd, name, number)
            nics = [Nic("rdma", 0, address("rdma", number), self.new_mac())] if rdma else []
            planned.append((name, number, boot, memory, nics))
        states = {}
        if self.booted and not self.icount:
            self._each(planned, lambda plan: states.update({plan[0]: self.booted.state(*plan[2:])}))
        started = []
        for plan in planned:
            started.append(self.kind(self, *plan, state=states.get(plan[0])))
            self.all_guests.append(started[-1])
        for guest in started:
            guest.wait_boot()
        self._each(started, lambda guest: [guest.configure(nic) for nic in guest.nics])
        if rdma and rxe:
            self._each(started, lambda guest: guest.rxe_add())
        return started

    def guest(self, name, **options):
        """Boot one guest."""
        return self.guests(name, **options)[0]

    def fabric(self, topology, **options):
        """One guest with an InfiniBand fabric of that shape inside: see fabric.py."""
        import fabric       # imports what only its tests need
        return fabric.Fabric(self, topology, **options)

    @staticmethod
    def _each(items, action):
        """action(item) for all, at once; the first exception is raised."""
        errors = []

        def call(item):
            try:
                action(item)
            except Exception as error:
                errors.append(error)
        threads = [threading.Thread(target=call, args=(item,)) for item in items]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _prepare_image(self):
        if self._initrd:
            return
        # What QEMU has loaded by PVH it loads again when the machine wakes, over what runs there.
        self._vmlinux = self.kernel.image if self.sleeps else image.vmlinux(self.kernel)
        self._initrd = os.path.join(self.directory, "initrd")
        os.makedirs(self.directory, exist_ok=True)
        with open(self._initrd, "wb") as out:
            with open(image.base(self.kernel), "rb") as base:
                shutil.copyfileobj(base, out)
            out.write(image.overlay(self.kernel, self.files))

    def new_mac(self):
        self._macs += 1
        return f"52:54:00:52:00:{self._macs:02x}"

    def new_nic(self, guest, network, ip, mac, model):
        return Nic(network, guest.free_port(), ip or address(network, guest.number),
                   mac or self.new_mac(), model)

    def expect_kernel_log(self, pattern):
        """Declare that kernel reports with a line matching regex @pattern are part of the test."""
        self.expected_log_patterns.append(pattern)

    def check(self):
        """Raise if a guest died by itself or a kernel complained."""
        for guest in self.all_guests:
            if guest.name not in self.last_words and not guest.alive:
                raise GuestGone(f"{guest} ended by itself\n{guest.qemu.why()}")
        complaints = dict(self.last_words)
        for guest in self.all_guests:
            if guest.alive:
                complaints[guest.name] = guest.kernel_complaints()
        text = "".join(f"--- kernel log of {name}\n" + "\n".join(report) + "\n"
                       for name, found in complaints.items() for report in found)
        if text:
            raise KernelComplained("a guest's kernel complained\n" + text)

    def check_network(self, network="rdma"):
        """Raise NetworkStalled if a guest on @network gets no answer from another one, which is QEMU's
        or the host's doing: plain pings, of addresses that are up."""
        nics = [(guest, nic) for guest in self.all_guests if guest.alive
                for nic in guest.nics if nic.network == network]
        silent = [f"{guest} hears nothing of {nic.ip} of {other}"
                  for guest, own in nics for other, nic in nics
                  if other is not guest and
                  guest.status(f"for try in 1 2 3 4 5; do"
                               f" ping -c 1 -W 1 -I {own.ifname} {nic.ip} && exit; done;"
                               f" exit 1") != 0]
        if silent:
            counts = [f"--- {guest}\n" + guest.run("ip -s link; cat /proc/net/arp", check=False)
                      for guest in self.all_guests if guest.alive]
            queues = [f"{nic}, queue {number} of {guest}: {guest.qemu.queue(nic, number)}"
                      for guest, nic in nics for number in (0, 1)]
            raise NetworkStalled("\n".join(silent + queues + counts))

    def save_logs(self, directory):
        """Keep consoles, QEMU's output and kernel logs of all guests in @directory."""
        os.makedirs(directory, exist_ok=True)
        for qemu in self.qemus:
            for path in (qemu.console_path, qemu.log_path):
                shutil.copy(path, directory)
        for guest in self.all_guests:
            if guest.alive:
                with open(os.path.join(directory, guest.name + ".dmesg"), "w") as f:
                    f.write(guest.dmesg(timeout=20))

    def close(self):
        """End all guests, whatever state they are in."""
        for guest in self.all_guests:
            guest.close()
        for qemu in self.qemus:
            qemu.quit()
        for end in self.at_end:
            end()
        self.networks.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def judge(self):
        """When a test has passed."""
        for judge in self.judges:
            judge()

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.judge()
                self.check()
        finally:
            self.close()
