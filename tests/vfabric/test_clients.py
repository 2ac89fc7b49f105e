#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs and their answers: one is answered once, however often the model has sent the request again; but a
program that asks anew with a transaction ID that it, or another before it, has used gets a new answer. What a
program has not waited for is not told to the next that has its number.
"""

import sys

from bed import PATIENCE, Client, Fabric, expect

NODE_INFO = 0x11
TO_H2 = (1, 2, 3)                   # from H1: its port, S1's, S2's
LATE, LOST, WELL = "reorder=1", "loss=1", "reorder=0 loss=0"


def fault(fabric, what):
    fabric.command(f'Fault "S1"[2] {what}')


def answered(client, tid, what):
    """Ask, and wait for the answer."""
    client.get(tid, NODE_INFO, *TO_H2)
    got = client.hear(PATIENCE)
    expect(got and got[:2] == (0, tid) and got[2][64 + 2] == 1, what, got)


def main():
    with Fabric("mesh:2") as fabric:
        first = Client(fabric, "H1", 77)
        fault(fabric, LATE)
        answered(first, 5, "a late one comes")
        expect("late 0" not in fabric.command("Smps"), "it was late")
        fault(fabric, WELL)
        answered(first, 5, "asked anew, with the same transaction ID")
        answered(first, 6, "with another")
        fault(fabric, LATE)
        answered(first, 7, "another late one")
        fault(fabric, LOST)
        first.get(8, NODE_INFO, *TO_H2)
        number = first.number
        first.close()

        # It asks with a transaction ID of the first, whose request is still sent again.
        second = Client(fabric, "H1", 78)
        expect(second.number == number, "the number of the first:", second.number, number)
        got = second.hear(1)
        expect(got is None, "it has asked nothing yet:", got)
        fault(fabric, WELL)
        answered(second, 7, "asked with a transaction ID of the program before")
        fault(fabric, LOST)
        second.get(9, NODE_INFO, *TO_H2)
        got = second.hear(PATIENCE)
        expect(got and got[0] and got[1] == 9, "told that no answer has come:", got)
        second.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
