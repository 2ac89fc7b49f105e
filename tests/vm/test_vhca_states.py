# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ends of connections: a request that is refused ends one when what was asked before it has been
answered; after RESET nothing is left of it, and the queue pair can be used anew."""

from fabric import LANE_DEPTH

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

# Requests that each ask for an ACK are answered together when there was no room for the ACKs.
ACKS = f"""
    open a vhca1 1
    open b vhca2 1
    connect a b timeout=18
    recv b 40
    {HELD_UP}
    send a 40 64
    done b recv 40 success
    !vfabric -k /run/vfabric 'Fault "S2"[1] slow=100'
    done a send 40 success
"""

# No receive is there (without a shared queue the sender would know): it is told so until one is.
NOT_READY = """
    open a vhca1 1
    open b vhca2 1 srq
    connect a b
    send a 3 3000
    quiet a 100
    recv b 3
    done a send 3 success
    done b recv 3 success
"""

# Or until it has had enough: told once more than it retries.
NEVER_READY = """
    open a vhca1 1
    open b vhca2 1 srq
    connect a b rnr=3 timeout=20
    send a 1 64
    done a send 1 rnr_retry_counter_exceeded
    is a state err
"""

# Three queue pairs share a lane that is full. The link goes down, and with it what is there: each of them
# comes to its end, datagrams that can not be sent being discarded.
LINK_DOWN = """
    open a vhca1 1 ud
    open b vhca2 1 ud
    open c vhca1 1 ud
    open d vhca2 1 ud
    open e vhca1 1 ud
    open f vhca2 1 ud
    connect a b
    connect c d
    connect e f
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=1000000'
    send a 1000 2000
    send c 1000 2000
    send e 1000 2000
    !sleep 0.1
    !vfabric -k /run/vfabric 'Unlink "H1"[1]'
    done a send 1000 success
    done c send 1000 success
    done e send 1000 success
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=100'
    !vfabric -k /run/vfabric 'Relink "H1"[1]'
"""

# An unreliable connection: of a message that has lost a packet nothing is told, its receive is there for the
# next one; what comes then comes whole.
UNRELIABLE = """
    open a vhca1 1 uc
    open b vhca2 1 uc
    connect a b
    recv b 300
    !vfabric -k /run/vfabric 'Fault "S1"[2] loss=0.1'
    send a 200 5000
    done a send 200 success
    some b 50 199 500
    !vfabric -k /run/vfabric 'Fault "S1"[2] loss=0'
    send a 20 5000
    done b recv 20 success
    some b 0 0 100
"""


def counter(fabric, hca, name):
    return int(fabric.guest.run(f"cat /sys/class/infiniband/{hca}/ports/1/vhca/{name}"))


def counted(fabric, script, *counters):
    """By how much (HCA, name) have grown when it has run."""
    before = [counter(fabric, *which) for which in counters]
    fabric.play(script)
    return [counter(fabric, *which) - was for which, was in zip(counters, before)]


def acknowledgements(fabric):
    wanted, acks = counted(fabric, ACKS, ("vhca2", "rc_ack_requests"), ("vhca2", "rc_acks"))
    print(f"  {wanted} requests, {acks} ACKs", flush=True)
    assert wanted >= 40, wanted
    assert 1 <= acks <= wanted / 4, f"{acks} ACKs for {wanted} packets"

    naks = ("vhca1", "rc_rnr_naks"), ("vhca2", "rc_rnr_naks_sent")
    heard, sent = counted(fabric, NOT_READY, *naks)
    assert 1 <= heard <= sent, f"not ready: told {sent} times, heard {heard}"
    heard, sent = counted(fabric, NEVER_READY, *naks)
    assert heard == sent == 4, f"not ready, three retries: told {sent} times, heard {heard}"


def lanes(fabric):
    return [counter(fabric, hca, "lane_most") for hca in fabric.hosts.values()]


def test(bed):
    fabric = bed.fabric("mesh:2", options="-i")
    for _ in range(5):
        for script in (REFUSED, BOTH, RESET, UNRELIABLE):
            fabric.play(script)
    acknowledgements(fabric)
    fabric.play(LINK_DOWN)
    fabric.wait_active()
    # It was full, and never more than that, but for the last words of who went then.
    assert max(lanes(fabric)) == LANE_DEPTH, lanes(fabric)
    for script in (GONE, GONE_NAK):
        fabric.play(script)
    assert max(lanes(fabric)) <= LANE_DEPTH + 2, lanes(fabric)
