# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests boot side by side, reach each other, take and give files, and their rxe devices carry
RDMA."""

import os
import re
import subprocess
import tempfile

import bed as beds
import kernel as kernels


def test(bed):
    bed.booted = None       # it is the boot that is looked at
    a, b = bed.guests("a", "b")
    assert a.run("hostname").strip() == "a"
    assert a.run("uname -r").strip() == bed.kernel.release
    for guest in (a, b):
        if kernels.accelerator() == "tcg":      # its clock is as fast as the host's
            mhz = re.findall(r"tsc: Detected ([0-9.]+) MHz", guest.dmesg())
            assert mhz and round(float(mhz[-1]) * 1000) == kernels.tsc_khz(), mhz
            assert guest.status("grep -qw cx16 /proc/cpuinfo") == 1     # qemu.py says why
    b.run("ping -c 2 -i 0.2 192.168.77.1")
    b.run("ping -c 2 -i 0.2 10.0.0.1")
    for guest in (a, b):
        assert "state ACTIVE" in guest.run("rdma link show rxe0/1")

    with tempfile.NamedTemporaryFile() as f:
        f.write(os.urandom(3 << 20))
        f.flush()
        os.chmod(f.name, 0o750)
        a.push(f.name, "/tmp/a file")
        f.seek(0)
        assert a.fetch("/tmp/a file") == f.read()
    assert a.run("stat -c %a '/tmp/a file'").strip() == "750"

    server = a.start("ibv_rc_pingpong -g 1 -e -n 100")
    a.wait_until("netstat -ltn | grep -q :18515")
    report = b.run("ibv_rc_pingpong -g 1 -e -n 100 192.168.77.1")
    assert "100 iters in" in report, report
    server.wait()
    sent = int(a.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"))
    assert sent >= 100, f"only {sent} packets went through rxe0"

    # A network that carries nothing is noticed.
    bed.check_network()
    tap = bed.networks.taps("rdma")[0]
    subprocess.run(["ip", "link", "set", tap, "down"], check=True)
    try:
        bed.check_network()
    except beds.NetworkStalled as stalled:
        assert "guest b hears nothing of 10.0.0.1" in str(stalled), stalled
        assert "queue 0 of guest a: {" in str(stalled), stalled
    else:
        raise AssertionError("a cut network was not noticed")
    subprocess.run(["ip", "link", "set", tap, "up"], check=True)
    bed.check_network()
