# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program that forks, with ibv_fork_init() and without. A child that execs is in nobody's way. One
that does nothing has the device open all the same: suspend names it, and touches nothing. When that one
has gone the parent moves, and all that it sends and receives is right."""

from move import SHIM, moving, repath
from traffic import Pair, json_lines

GUESTS = 2


def test(bed):
    a, b = bed.guests("a", "b")
    with moving(a, b) as mover:
        for number, init in enumerate(("", "--fork-init")):
            pair = Pair(a, b, f"-q 2 -n 8 -b -k 4 -m all --vary --fork {init}", env=SHIM,
                        port=18600 + number)
            pair.wait_running()
            idle, execs = json_lines(pair.client.output(), "children")[0]["children"]
            assert b.run(f"cat /proc/{execs}/comm").strip() == "sleep"
            status, op, text = repath(b, "suspend rxe0 timeout 30")
            assert status and f"its child PID {idle} has had the device open" in text, text
            pair.wait_progress()
            b.run(f"kill -9 {idle}")
            b.wait_until(f"[ ! -e /proc/{idle} ]")
            mover.swap(b)
            pair.wait_progress()
            assert b.run(f"cat /proc/{execs}/comm").strip() == "sleep"
            client, _ = pair.finish()
            print(f"  {init or 'without ibv_fork_init()'}: {client['msgs']} messages, "
                  f"gap {client['max_gap_ms']} ms")
