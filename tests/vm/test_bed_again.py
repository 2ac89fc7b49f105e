# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A test that the machine may have failed is tried again, one that the product has failed is not."""

import os
import tempfile

from again import PRODUCT, SECOND_TRIES, Machine, Tries, complaints, product_failed

GUESTS = 1
LATE = "--- guest a\nFAIL 60.1s x: TimeoutError: no 12 rounds more:\n    logs: build/vm-logs/x"
WRONG = "FAIL 6.1s x: AssertionError: suspend: 4\n    logs: build/vm-logs/x"
REASONS = {
    "TimeoutError: not done after 60 s": False,
    "AssertionError: DRAINED doubled: no such message was seen": False,
    "AssertionError: resume: 4\nrepath: operation 7 on rxe0 parked: no answer; the processes wait, "
    "nothing is lost: 'repath resume 7 on DEV' when there is a device": False,
    "TimeoutError: no 200 messages more:": False,
    "Standstill: both ends stood still for 60 s:": True,
    "TimeoutError: both ends stood still for 60 s:": True,
    'AssertionError: rcheck failed (1):\n{"error":"QP 1 (0x2f): stood still for 91 s, ..."}': True,
    "CommandFailed: <b: env  ib_write_bw -R>: status 139:": False,
    "CommandFailed: <b: env LD_PRELOAD=/x/libibrepath.so ib_write_bw -R>: status 139:": True,
    "AssertionError: <b: exec env LD_PRELOAD=/x/libibrepath.so rcheck>: ended (139):": True,
    "CommandFailed: <b: exec env LD_PRELOAD=/x/libibrepath.so rcheck>: ended (134) without 'rate'": True,
    "CommandFailed: <b: exec env LD_PRELOAD=/x/libibrepath.so rcheck>: ended (1) without 'rate'": False,
    "AssertionError: rcheck failed (139):": True,
    'AssertionError: rcheck failed (1):\n{"error":"QP 0 (0x2f): message 12 is lost: later ones came"}': True,
    'AssertionError: rcheck failed (1):\n{"error":"QP 0 (0x2f): write 3: damage: byte 7"}': True,
}


def tries():
    away = (0.0, 1.5)
    for machine, third in ((away, ".second"), ((0.06, 0.0), ".second"), ((0.01, 0.5), None)):
        one = Tries()
        assert one.next("x", 1, LATE, 0.0, 0.0) == ".first"
        assert one.next("x", 1, LATE, *machine) == third
        assert one.next("x", 1, LATE, *away) is None or third is None
    for first, second in ((LATE, WRONG), (WRONG, LATE)):
        one = Tries()
        assert one.next("x", 1, first, *away) == ".first"
        assert one.next("x", 1, second, *away) is None
    one = Tries()
    assert one.next("x", PRODUCT, LATE, *away) is None
    for number in range(SECOND_TRIES):
        assert one.next(f"x{number}", 1, WRONG, 0.0, 0.0) == ".first"
    assert one.next("y", 1, LATE, *away) is None


def test(bed):
    tries()
    with tempfile.TemporaryDirectory() as logs:
        for reason, product in REASONS.items():
            assert product_failed(reason, complaints(bed, logs)) == product, reason
        path = os.path.join(logs, "a.dmesg")
        with open(path, "w") as f:
            f.write("[ 1.0] rdma_rxe: loaded\n")
        assert not product_failed("TimeoutError: x", complaints(bed, logs))
        with open(path, "a") as f:
            f.write("[ 2.0] BUG: KASAN: use-after-free in f\n")
        assert product_failed("TimeoutError: x", complaints(bed, logs))
        bed.expect_kernel_log("use-after-free in f")
        assert not product_failed("TimeoutError: x", complaints(bed, logs))
    machine = Machine()
    stolen, still = machine.since(machine.now())
    assert 0 <= stolen <= 1 and still >= 0, (stolen, still)
