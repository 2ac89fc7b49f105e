# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ports with several LIDs each (LMC): the one that a queue pair or an address handle names goes into its
packets, and a connected queue pair takes only what is between its own and its peer's. Paths that differ in
these LIDs alone are migrated between; who is asked to follow elsewhere says so."""

# The fabric is as busy as a guest: alone.
GUESTS = 2

LMC = 2

# Each pair of LIDs, at most one of which is a port's first.
CONNECTED = """
    open a vhca1 1 {type}
    open b vhca2 1 {type}
    connect a b bits={bits} rbits={rbits}
    recv b 20
    recv a 20
    send a 20 5000
    send b 20 5000
    done a send 20 success
    done b send 20 success
    done b recv 20 success
    done a recv 20 success
    came b 0 {bits}
    came a 0 {rbits}
"""

# Another LID than the one that the peer was told, at this end or at that one.
MISTAKEN = """
    open a vhca1 1
    open b vhca2 1
    connect a b bits=1 rbits=2 {mistake} timeout=10 retry=1
    recv b 1
    send a 1 64
    done a send 1 transport_retry_counter_exceeded
    fails done b recv 1 success 100
"""

DATAGRAMS = """
    open a vhca1 1 ud
    open b vhca2 1 ud
    connect a b bits=3 rbits=1
    recv a 1
    recv b 1
    send a 1 64
    done b recv 1 success
    came b 0 3
    send b 1 64
    done a recv 1 success
    came a 0 1
"""

ARMED = """
    open a vhca1 1
    open b vhca2 1
    connect a b timeout=10 retry=1
    recv a 20
    recv b 20
    alt a 1 0 1
    alt b 1 0 {other}
    send a 1 64
    done a send 1 success
    send b 1 64
    done b send 1 success
    is a mig armed
    is b mig armed
"""

MIGRATED = ARMED.format(other=1) + """
    mig a migrated
    event a path_mig
    send a 1 64
    done a send 1 success
    event b path_mig
    send b 1 64
    done b send 1 success
    done b recv 2 success
    came b 0 1
    done a recv 2 success
    came a 0 1
    noevent b 50
"""

# b's alternate path is not the one that a takes: told once, however often a tries.
NOT_FOLLOWED = ARMED.format(other=2) + """
    mig a migrated
    event a path_mig
    send a 3 64
    event b path_mig_err
    done a send 1 transport_retry_counter_exceeded
    noevent b 50
    is b mig armed
    is b state rts
"""


def test(bed):
    fabric = bed.fabric("mesh:2", opensm=f"-l {LMC}")
    for kind in ("rc", "uc"):
        for bits in range(1 << LMC):
            fabric.play(CONNECTED.format(type=kind, bits=bits, rbits=(bits + 1) % (1 << LMC)))
    for mistake in ("from=0", "to=0", "from=3", "to=3"):
        fabric.play(MISTAKEN.format(mistake=mistake))
    for script in (DATAGRAMS, MIGRATED, NOT_FOLLOWED):
        fabric.play(script)
