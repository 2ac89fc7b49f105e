# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whatever a guest's kernel complains about makes the bed's check fail, unless it was declared;
a guest that dies by itself does so too."""

import bed as beds
from kernel_log import reports

SAYINGS = [
    "WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2",
    "BUG: unable to handle page fault for address: 00000000",
    "BUG: KASAN: use-after-free in f",
    "WARNING: possible circular locking dependency detected",
    "INFO: task x:1 blocked for more than 120 seconds.",
    "kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "Call Trace:",
]


def complaints(bed):
    """What bed.check() raises, as text; empty if it raises nothing."""
    try:
        bed.check()
    except (beds.KernelComplained, beds.GuestGone) as error:
        return str(error)
    return ""


def test(bed):
    # A framed report and the trace after a headline are one complaint each.
    framed = ["[ 1.0] ------------[ cut here ]------------", "[ 1.0] WARNING: CPU: 0", "[ 1.0] x",
              "[ 1.0] Call Trace:", "[ 1.0] ---[ end trace 0 ]---"]
    assert reports("\n".join(framed)) == [framed]
    assert len(reports("INFO: task x:1 blocked for more than 1 s\nx\nCall Trace:\n f")) == 1
    assert not reports("kmemleak: Kernel memory leak detector initialized (mem pool available: 1)")
    assert not reports("rdma_rxe: loaded\nib_repath: WARNINGS are off\nx: debug info")

    g, victim = bed.guests("g", "victim", memory=256, rdma=False)
    assert complaints(bed) == ""
    for saying in SAYINGS:
        g.run("dmesg -c > /dev/null")
        g.run(f"echo '{saying}' > /dev/kmsg")
        assert saying in complaints(bed), f"not seen: {saying}"
    g.run("dmesg -c > /dev/null; echo 'WARNING: CPU: this one is wanted' > /dev/kmsg")
    assert "wanted" in complaints(bed)
    bed.expect_kernel_log("one is wanted")
    assert complaints(bed) == ""
    g.run("echo 'WARNING: CPU: another' > /dev/kmsg")
    assert "another" in complaints(bed)
    g.run("dmesg -c > /dev/null")

    # A real crash: QEMU ends, the console's tail is in the message.
    victim.start("echo c > /proc/sysrq-trigger")
    try:
        victim.run("sleep 30")
    except beds.GuestGone:
        pass
    else:
        raise AssertionError("a crashed guest went on running commands")
    text = complaints(bed)
    assert "ended by itself" in text and "sysrq triggered crash" in text, text
    bed.all_guests.remove(victim)
