# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Open MPI over UCX, a rank on each of the six HCAs of the papers' mesh, while a link goes down: the rings of
test_repath_mpi, fewer rounds. The ranks' queue pairs are moved to the lane that LASH takes, which is used,
and the program comes to its end with what it has received verified. Without repath it does not:
test_repath_mpi_without."""

from test_repath_mesh import explain
from test_repath_mpi import judged, prepare

# The fabric is as busy as a guest: alone.
GUESTS = 2

ROUNDS = 15


def test(bed):
    fabric = prepare(bed)
    try:
        judged(fabric, "rings", 1, ROUNDS)
    except Exception:
        explain(fabric)
        raise
