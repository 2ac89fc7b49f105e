# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/repath-migrate with the bed's guests."""

import json
import os
import signal
import subprocess

import image

SCRIPT = os.path.join(image.TOP, "scripts/repath-migrate")


def settings(guest):
    """What a move changes of how the guest's QEMU migrates."""
    parameters = guest.qemu.qmp("query-migrate-parameters")
    return [parameters["max-bandwidth"], parameters["downtime-limit"],
            next(one["state"] for one in guest.qemu.qmp("query-migrate-capabilities")
                 if one["capability"] == "pause-before-switchover")]


class Migration:
    """One run of repath-migrate: to where, and how it ended.

    status, report (the JSON object), text (standard error) are there after wait().
    """

    def __init__(self, guest, mode="early", uri=None, new_nic=None, options=(), dev="rxe0"):
        nic = guest.nics[0]
        self.guest = guest
        self.settings = settings(guest)
        self.dst = guest.prepare_destination(with_nics=mode == "late")
        self.mac = guest.bed.new_mac()
        if new_nic is None:
            new_nic = (f"driver=virtio-net-pci,id=moved-{self.mac[-2:]},netdev={nic.netdev},"
                       f"mac={self.mac},bus=port{nic.port},romfile=")
        self.process = subprocess.Popen(
            [SCRIPT, "--mode", mode, "--src-agent", guest.agent_path,
             "--dst-agent", self.dst.agent_path, "--uri", uri or self.dst.uri, "--dev", dev,
             "--nic", nic.id, "--new-nic", new_nic, *options, guest.qmp_path, self.dst.qmp_path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # Also where the tests run under nohup.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def wait(self, timeout=180):
        """Wait for the end; the guest goes on where it is then."""
        output, self.text = self.process.communicate(timeout=timeout)
        print(self.text, end="", flush=True)
        self.status = self.process.returncode
        self.report = json.loads(output)
        return self.status

    def adopt(self):
        """The machine is at the destination."""
        self.guest.adopt(self.dst)

    def forget(self):
        """The machine has stayed."""
        self.dst.shell.close()
        self.dst.quit()

    def stages(self):
        return [stage["stage"] for stage in self.report["stages"]]
