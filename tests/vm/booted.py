# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""States of guests that have just booted, kept for as long as one run of many tests takes.

A boot is five seconds of a processor, the same ones in each test. The first guest of a kind boots,
its state is saved as a migration would send it, and it ends; that one and all later ones of its kind
begin there. A kind is all that a guest can see: kernel, files, memory, number, NICs and their MACs.
What must differ (name, time, random numbers) guestd is told, see Channel.wake(). The state of one
whose kernel complained while it booted is not kept: that is a matter of one test, not of all.
"""

import hashlib
import os
import shutil
import tempfile

import kernel_log
from channel import Channel, GuestGone
from network import Networks
from qemu import Qemu

DIRECTORY = "BED_BOOTED"        # the environment variable that says where a run has them
TIMEOUT = 120
ROOM = 2 << 30                  # of a state some 120 MB are needed, in memory


def of_run():
    """Those of the run that this test is part of, or None."""
    directory = os.environ.get(DIRECTORY)
    return Booted(directory) if directory else None


def _digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "blake2b").hexdigest()


class Booted:
    def __init__(self, directory):
        self.directory = directory

    def state(self, boot, memory, nics):
        """The file with the state of such a guest, or None: there is no room, or nothing that can be
        kept, and it has to boot. Two that make one at the same time do no harm to each other."""
        kind = [boot.vmlinux, _digest(boot.initrd), boot.number, memory, [nic.device() for nic in nics]]
        path = os.path.join(self.directory, hashlib.sha256(repr(kind).encode()).hexdigest()[:16])
        if not os.path.exists(path):
            if shutil.disk_usage(self.directory).free < ROOM:
                return None
            with tempfile.TemporaryDirectory(dir=self.directory) as work:
                made = os.path.join(work, "state")
                if not self._boot(work, made, boot, memory, nics):
                    return None
                os.rename(made, path)
        return path

    @staticmethod
    def _boot(work, made, boot, memory, nics):
        """On networks of its own: nobody else is there. Is its state worth keeping?"""
        networks = Networks()
        qemu = Qemu(work, "boot", boot, networks, nics, memory)
        try:
            channel = Channel("boot", qemu.shell_path)
            try:
                channel.wait_hello(TIMEOUT)
                if kernel_log.reports(channel.start("dmesg").wait(TIMEOUT)):
                    return False
                qemu.save(made, TIMEOUT)
                return True
            finally:
                channel.close("it has booted")
        except (TimeoutError, GuestGone) as error:
            raise type(error)(f"{error}\n{qemu.why()}") from error
        finally:
            qemu.quit()
            networks.close()
