# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Soft RoCE by SQD: under traffic a queue pair drains, takes another address and goes on, nothing is lost, if
it is its owner that does it, and then posts. The module leaves it alone, and says so by name: RoCE has no
subnet manager, and rxe takes no lock when it modifies a queue pair. (RC. Of UC no owner can do it: to an
address uverbs adds the port, with which ib_core refuses it.)"""

import time

SQD = """
    open a rxe0 1
    open b rxe0 1
    connect a b timeout=14
    recv b 500
    send a 200 16384
    sqd a
    is a state sqd
    is a draining 0
    sl a 3
    send a 5 64
    rts a
    is a state rts
    is a sl 3
    send a 1 64
    done a send 206 success
    done b recv 206 success
    is b sl 0
"""

# Whether what was posted meanwhile goes by itself.
KICK = """
    open a rxe0 1
    open b rxe0 1
    connect a b timeout=14
    recv b 10
    sqd a
    is a draining 0
    send a 1 64
    quiet a 300
    rts a
    done a send 1 success 2000
"""

SET = "repath path set rxe0/1 dlid 1 sl 1"


def test(bed):
    guest, = bed.guests("a")
    guest.load_repath()

    def play(script):
        """What it said, if a line fails."""
        job = guest.start("exec qpscript", stdin=script.encode())
        end = time.monotonic() + 100
        while job.running:
            if time.monotonic() > end:
                raise TimeoutError(job.output())
            time.sleep(0.1)
        return job.output() if "FAIL" in job.output() else ""

    failed = play(SQD)
    assert not failed, failed
    failed = play(KICK)
    assert not failed or "FAIL:     done a send" in failed, failed
    print(f"  what is posted in SQD {'waits for the next one' if failed else 'goes by itself'}", flush=True)
    said = guest.run(f"{SET} 2>&1 && echo DONE", check=False)
    assert "not an InfiniBand port" in said and "DONE" not in said, said
