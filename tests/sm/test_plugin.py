#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""OpenSM loads the plugin, or runs on without it and says why."""

import subprocess
import sys
import tempfile

from bed import TOP
from managed import NETS, Managed, expect

MESH = f"{NETS}/mesh3x2.net"


def loads():
    with Managed(MESH, "-R lash", method="hybrid", dry_run="on") as fabric:
        expect("loaded into OpenSM" in fabric.plugin_log()[0], *fabric.plugin_log())
        status = fabric.status()
        expect(status["method"] == "hybrid" and status["dry_run"], status)
        expect(status["signal"]["subscribers"] == 0, status)
        expect(fabric.status()["epoch"] == status["epoch"], "the epoch stays")
        said = subprocess.run([f"{TOP}/build/repath", "sm", "socket", fabric.socket], capture_output=True, text=True,
                              check=True).stdout
        expect(said.startswith("method hybrid dry_run epoch ") and " hot_spots off receipts off vms off\n" in said, said)
        fabric.sm_may_end = True
        fabric.sm.terminate()
        expect(fabric.sm.wait(20) == 0, "OpenSM ends well")


def refused(why, **options):
    with Managed(MESH, **options) as fabric:
        expect(any(why in line for line in fabric.plugin_log()), why, *fabric.plugin_log())
        expect(fabric.all_active(), "OpenSM runs without the plugin")


def cannot_start():
    """OpenSM, which then unloads it, has none of its engines left either."""
    with Managed(MESH, "-R updown", vswitch="dynamic", vswitch_socket="/dev/null/none") as fabric:
        expect(any("cannot start vms" in line for line in fabric.plugin_log()),
               *fabric.plugin_log())
        expect(fabric.all_active(), "OpenSM runs without the plugin")


def keeps_files():
    """A file that is no socket does not give way to one."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"precious")
        file.flush()
        with Managed(MESH, vswitch="dynamic", vswitch_socket=file.name) as fabric:
            expect(any("cannot start vms" in line for line in fabric.plugin_log()),
                   *fabric.plugin_log())
        with open(file.name, "rb") as again:
            expect(again.read() == b"precious", "the file is as it was")


def main():
    loads()
    cannot_start()
    keeps_files()
    refused("version mismatch", plugin=f"{TOP}/build/sm/wrong")
    refused("repath.conf:2: no such option: colour", colour="red")
    refused("repath.conf:2: no value for window: 0 (1 to 512)", window=0)
    refused("no value for method: fast (one of: wildcard repath-only hybrid affected auto)",
            method="fast")
    return 0


if __name__ == "__main__":
    sys.exit(main())
