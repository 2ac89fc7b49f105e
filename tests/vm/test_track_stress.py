# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A hundred rounds of create, destroy, kill -9 and rmmod at once: afterwards the module tracks
what the kernel has, no more and no less, and no memory has gone."""

import tracking

TIMEOUT = 400

ROUNDS = """
set -e
n=0
while [ $n -lt 100 ]; do
    n=$((n + 1))
    holdqp -q 8 -c >/dev/null & one=$!
    holdqp -q 4 -t ud >/dev/null & two=$!
    holdqp -q 16 -c -b >/dev/null & three=$!
    case $((n % 4)) in
    0) rmmod ib_repath; insmod /lib/repath/ib_repath.ko ;;
    1) repath qp >/dev/null; repath process >/dev/null ;;
    2) usleep $((n * 700)) ;;
    esac
    kill -9 $one
    [ $((n % 3)) != 0 ] || { rmmod ib_repath; insmod /lib/repath/ib_repath.ko; }
    kill $two 2>/dev/null || true
    wait $three
    wait $one $two || true
done
"""


def slab_kilobytes(guest):
    guest.run("echo 2 > /proc/sys/vm/drop_caches; sleep 1")
    return int(guest.run("awk '/^SUnreclaim/ {print $2}' /proc/meminfo"))


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    stayer, numbers = tracking.hold(a, "-q 3 -c")
    a.run("holdqp -q 16 -b >/dev/null")
    before = slab_kilobytes(a)
    a.run(ROUNDS, timeout=360)

    tracking.wait_qps(a, 3)
    found = tracking.compare_with_kernel(a)
    assert set(numbers["qpns"]) == {qpn for (_, qpn), qp in found.items() if "pid" in qp}, found
    device = tracking.device(a)
    assert (device["contexts"], device["processes"]) == (1, 1), device
    # 2800 queue pairs came and went: a leak of each would be above a megabyte.
    assert slab_kilobytes(a) - before < 1024, (before, slab_kilobytes(a))

    stayer.kill(9)
    tracking.wait_qps(a, 0)
    a.run("rmmod ib_repath")
