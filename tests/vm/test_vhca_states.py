# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ends of connections: a request that is refused ends one when what was asked before it has been
answered; after RESET nothing is left of it, and the queue pair can be used anew."""

# The fabric is as busy as a guest: alone.
GUESTS = 2

# The write with a wrong key arrives while the answers to the reads, 100 packets, are on their way.
REFUSED = """
    open a vhca1 1
    open b vhca2 1
    connect a b
    read a 3 65536
    write a 1 64 badkey
    read a 2 64
    done a send 3 success
    done a send 1 remote_access_error
    done a send 2 work_request_flushed_error
    is a state err
    event b qp_access_err
    is b state err
"""

# The receive that is under way ends, too; the other way requests go on as long as there is a way.
BOTH = """
    open a vhca1 1
    open b vhca2 1
    connect a b
    recv b 2
    read a 2 65536
    send a 1 5000
    write a 1 64 badkey
    done a send 3 success
    done a send 1 remote_access_error
    done b recv 1 success
    done b recv 1 work_request_flushed_error
"""

# Of 1024 receives that there is room for 1000 are there: gone, or these would not fit.
RESET = """
    open a vhca1 1
    open b vhca2 1
    connect a b
    recv b 1000
    send a 10 64
    done b recv 10 success
    done a send 10 success
    reset a
    reset b
    connect a b
    recv b 1024
    send a 1024 64
    done a send 1024 success
    done b recv 1024 success
    # Not one more: the sender waits.
    send a 1 64
    quiet b 300
    recv b 1
    done b recv 1 success
    done a send 1 success
"""

# b's lane, room for 64 packets, is full of its messages and of another's, which a slow link holds up.
HELD_UP = """
    open c vhca1 1
    open d vhca2 1
    connect c d timeout=18
    recv a 3
    recv c 3
    !vfabric -k /run/vfabric 'Fault "S2"[1] slow=1000000'
    send b 3 500000
    send d 3 500000
    !sleep 0.02
"""

# What has come is acknowledged, even if its receiver goes at once: here while there is no room for the ACK.
GONE = f"""
    open a vhca1 1
    open b vhca2 1
    connect a b timeout=18 retry=1
    recv b 1
    {HELD_UP}
    send a 1 64
    done b recv 1 success
    reset b
    done a send 1 success
    !vfabric -k /run/vfabric 'Fault "S2"[1] slow=100'
"""

# And if the last word is a NAK, as there was no receive for what came next. (Without a shared receive queue
# the sender would have waited until it had heard of one.)
GONE_NAK = f"""
    open a vhca1 1
    open b vhca2 1 srq
    connect a b timeout=18 retry=1
    recv b 2
    send a 1 64
    done a send 1 success
    done b recv 1 success
    {HELD_UP}
    send a 2 64
    done b recv 1 success
    !sleep 0.02
    reset b
    done a send 1 success
    done a send 1 transport_retry_counter_exceeded
    !vfabric -k /run/vfabric 'Fault "S2"[1] slow=100'
"""


def test(bed):
    fabric = bed.fabric("mesh:2")
    for _ in range(5):
        for script in (REFUSED, BOTH, RESET):
            fabric.play(script)
    for script in (GONE, GONE_NAK):
        fabric.play(script)
