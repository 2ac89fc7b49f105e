# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a guest writes to its memory all the time while it is live-migrated is there at the destination."""


def goes_on(writer):
    """It has found in two rounds more what it has written; it ends when it does not."""
    writer.wait_for(rf"\A(\d+\n){{{len(writer.output().split()) + 2}}}")


def test(bed):
    guest = bed.guest("a", rxe=False)
    writer = guest.start("exec pagecount 8192")
    for _ in range(5):
        goes_on(writer)
        guest.migrate()
    goes_on(writer)
