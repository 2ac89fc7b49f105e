# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs are moved to another service level, in place and under traffic: by SQD, by path migration,
by what the device can do, and not by what it can not; whatever the owner does meanwhile is obeyed."""

import json

# The fabric is as busy as a guest: alone.
GUESTS = 2

OPEN = """
    open a vhca1 1{kind}
    open b vhca2 1{kind}
    connect a b timeout=14
    recv b 1000
    recv a 10
    send a 3 64
    done a send 3 success
    done b recv 3 success
"""

# Busy and idle; the owner hears nothing of SQD.
SQD = OPEN + """
    send a 200 32768
    !repath path set vhca1/1 dlid {b} sl 3
    is a sl 3
    is a state rts
    done a send 200 success
    done b recv 200 success
    noevent a 100
    !repath path set vhca2/1 dlid {a} sl 3
    is b sl 3
    is b state rts
    send b 1 64
    done b send 1 success
    done a recv 1 success
    # Two at once: the last one counts.
    send a 100 8192
    !repath path set vhca1/1 dlid {b} sl 4; repath path set vhca1/1 dlid {b} sl 5
    is a sl 5
    is a state rts
    done a send 100 success
    !{check} vhca1 moved-by sqd
    !repath qp dev vhca1 | grep -q 'moved-by sqd moves [0-9]* on-path-s [0-9]'
"""

# The owner's own drained queue stays drained, with the new address.
OWN_SQD = OPEN + """
    sqd a
    is a draining 0
    !repath path set vhca1/1 dlid {b} sl 2
    is a sl 2
    is a state sqd
    send a 1 64
    quiet a 200
    rts a
    done a send 1 success
"""

# What is not known yet is waited for: nothing is sent; and not for ever.
HOLD = OPEN + """
    !repath path hold vhca1/1 dlid {b}
    is a state sqd
    send a 1 64
    quiet a 200
    !repath path set vhca1/1 dlid {b} sl 2
    is a sl 2
    is a state rts
    done a send 1 success
    !repath path hold vhca1/1 dlid {b}
    is a state sqd
    is a state rts
    is a sl 2
"""

# An alternate path that the owner has loaded is not written over.
OWN_APM = OPEN + """
    alt a 1 4
    !repath path set vhca1/1 dlid {b} sl 2
    is a sl 2
    is a state rts
    is a mig rearm
    alt b 1 0
    send a 3 64
    done a send 3 success
    is a mig armed
    !repath path set vhca1/1 dlid {b} sl 3
    is a sl 3
    is a state rts
    is a mig armed
    noevent a 200
    mig a migrated
    is a sl 4
"""

# Who goes over while his queue is drained for another path sends by that one: it is what is told of these two ports.
OWN_APM_DRAINED = OPEN + """
    alt a 1 4
    alt b 1 0
    send a 3 64
    done a send 3 success
    is a mig armed
    !repath path hold vhca1/1 dlid {b}
    is a state sqd
    mig a migrated
    is a sl 4
    is a state sqd
    !repath path set vhca1/1 dlid {b} sl 2
    is a sl 2
    is a state rts
    is a mig migrated
    send a 3 64
    done a send 3 success
"""

# Both ends are told; traffic arms the new path.
APM = OPEN + """
    !repath path prepare vhca1/1 dlid {b} sl 6; repath path prepare vhca2/1 dlid {a} sl 6
    is a mig rearm
    is b mig rearm
    send a 20 3000
    done a send 20 success
    is a mig armed
    is b mig armed
    is a sl 0
    !repath path set vhca1/1 dlid {b} sl 6
    is a sl 6
    is a mig {mig}
    !repath path set vhca2/1 dlid {a} sl 6
    is b sl 6
    {event} a {name}
    send a 20 3000
    done a send 20 success
    !{check} vhca1 moved-by apm
"""

# With the shim nobody hears of a migration that he has not asked for, and of one that he has.
ASKED = OPEN + """
    alt a 1 4
    alt b 1 4
    send a 3 64
    done a send 3 success
    is a mig armed
    mig a migrated
    event a path_mig
"""

# Nobody sends, and nothing arms it; it goes as soon as both ends were told and have something to send.
IDLE_APM = OPEN + """
    !repath path set vhca1/1 dlid {b} sl 1
    is a mig rearm
    !{check} vhca1 move-reason 'its peer has not armed'
    is a sl 0
    is a state rts
    !repath path set vhca2/1 dlid {a} sl 1
    is b mig rearm
    send a 3 64
    done a send 3 success
    is a sl 1
    is b sl 1
"""

# The path of one end only is another: it goes when the other end has been told of its own as it is. So again.
ONE_WAY_APM = OPEN + """
    send b 1 64
    done b send 1 success
    done a recv 1 success
    !repath path set vhca1/1 dlid {b} sl 1
    is a mig rearm
    send a 3 64
    done a send 3 success
    !{check} vhca1 move-reason 'its peer has not armed'
    is a sl 0
    !repath path set vhca2/1 dlid {a} sl 0
    is b mig rearm
    send a 3 64
    done a send 3 success
    is a sl 1
    is b sl 0
    !repath path set vhca1/1 dlid {b} sl 2; repath path set vhca2/1 dlid {a} sl 0
    send a 3 64
    done a send 3 success
    is a sl 2
    is b sl 0
"""

LOST = OPEN + """
    read a 1 64 badkey
    is a state err
    !repath path set vhca1/1 dlid {b} sl 1
    !{check} vhca1 move lost
"""

NEITHER = OPEN + """
    !repath path set vhca1/1 dlid {b} sl 1
    !{check} vhca1 move no-way
    is a sl 0
    is a state rts
    send a 1 64
    done a send 1 success
"""

# Waits until the queue pair says so.
CHECK = """i=0
while ! repath qp dev $1 | grep -q "type [RU]C .*\\b$2 \\"*$3"; do
    i=$((i + 1)); [ $i -lt 300 ] || { repath qp; repath stats; exit 1; }; sleep 0.1
done
"""


def stats(guest, dev):
    found = json.loads(guest.run(f"repath -j stats dev {dev} all"))
    return next(one["counts"] for one in found if one.get("dev") == dev)


def none_failed(guest):
    for dev in "vhca1", "vhca2":
        counts = stats(guest, dev)
        assert not counts["move-failed"] and not counts["move-no-way"], (dev, counts)


def load(fabric, parameters="", opensm="", hosts=("H1", "H2")):
    """The driver anew, with HCAs at these hosts, and OpenSM."""
    for host in list(fabric.hosts):
        fabric.remove(host)
    fabric.guest.run("rmmod ib_vhca")
    fabric.load(parameters)
    for host in hosts:
        fabric.add(host)
    fabric.start_opensm(opensm)
    fabric.wait_active()


def test(bed):
    fabric = bed.fabric("mesh:2")
    guest = fabric.guest
    guest.run(f"cat > /run/check <<'END'\n{CHECK}END\n")
    guest.load_repath("reroute_arm_ms=300 reroute_again_ms=100")

    # Where the device may have nothing but migration, it is made ready again for its peer.
    def play(script, kind="", program="qpscript", mig="migrated"):
        event, name = ("event", "path_mig") if program == "qpscript" else ("noevent", "100")
        try:
            fabric.play(script.format(kind=kind, mig=mig, a=fabric.lid("H1"), b=fabric.lid("H2"),
                                      check="sh /run/check", event=event, name=name), program)
        except Exception:
            print(guest.run("repath stats", check=False), flush=True)
            raise

    for kind in ("", " uc"):
        play(SQD, kind)
    for script in (OWN_SQD, HOLD, OWN_APM, OWN_APM_DRAINED, APM, LOST):
        play(script)
    for script in (SQD, APM, ASKED):
        play(script, program="repath run -q qpscript")
    none_failed(guest)

    # Switched off: refused, by name.
    guest.run("repath path reroute vhca1 off")
    assert "switched off" in guest.run("repath path set vhca1/1 dlid 3 sl 1 2>&1", check=False)
    guest.run("repath path reroute vhca1 on; repath device dev vhca1 | grep -q 'reroute on'")

    load(fabric, "sqd=0")
    play(APM, mig="rearm")
    none_failed(guest)
    play(IDLE_APM)
    play(ONE_WAY_APM)
    load(fabric, "apm=0")
    play(SQD)
    none_failed(guest)
    load(fabric, "apm=0 sqd=0")
    play(NEITHER)
    guest.run("rmmod ib_repath")
