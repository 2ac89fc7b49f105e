# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Soft RoCE by SQD: under traffic a queue pair drains, takes another address and goes on, nothing is lost, if
it is its owner that does it, and then posts. The module leaves it alone, as rxe takes no lock when it modifies a queue
pair, and says so by name; with the shims it goes (test_roce_path). What is no path of RoCE is refused. (RC. Of UC no
owner can do it: to an address uverbs adds the port, with which ib_core refuses it.)"""

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

ALONE = """
    open a rxe0 1
    open b rxe0 1
    connect a b timeout=14
    recv b 10
    !repath path set rxe0/1 dgid $(repath -j qp state rts | grep -o '::ffff:[0-9.]*' | head -1) tclass 96
    !sleep 1
    !repath qp state rts | grep "type RC" > /run/qps
    send a 5 64
    done a send 5 success
"""

# (what is told, why it is refused)
REFUSED = (
    ("set rxe0/1 dlid 1 sl 1", "a path of a RoCE port is told by its DGID"),
    ("set rxe0/1 dgid ::ffff:10.0.0.1 to 3 sl 1", "without LIDs and PKEY"),
    ("prepare rxe0/1 dgid ::ffff:10.0.0.1 sl 1", "RoCE has no alternate path"),
    ("hold rxe0/1 dlid 1", "a path of a RoCE port is told by its DGID"),
)


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
        return "" if job.status == 0 else job.output() or f"status {job.status}"

    failed = play(SQD)
    assert not failed, failed
    failed = play(KICK)
    assert not failed or "FAIL:     done a send" in failed, failed
    print(f"  what is posted in SQD {'waits for the next one' if failed else 'goes by itself'}", flush=True)
    failed = play(ALONE)
    assert not failed, failed
    rows = guest.run("cat /run/qps").splitlines()
    assert len(rows) == 2, rows
    for row in rows:
        assert "move no-way" in row and "tclass 0" in row and "the device's driver takes no lock" in row, row
    for words, why in REFUSED:
        said = guest.run(f"repath path {words} 2>&1 && echo DONE", check=False)
        assert why in said and "DONE" not in said, said
