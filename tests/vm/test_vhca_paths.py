# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Path migration and drained send queues on software HCAs with two ports, each in a plane of its
own: by command, by the peer's wish, and by the HCA itself when a cable is cut."""

import json

# The fabric is as busy as a guest: alone.
GUESTS = 2

# Plane 1 is S1 and S3, plane 2 is S2 and S4; S1-S2 makes them one subnet.
TOPOLOGY = """
Switch	3 "S1"
[1]	"H1"[1]
[2]	"S3"[2]
[3]	"S2"[3]

Switch	3 "S2"
[1]	"H1"[2]
[2]	"S4"[2]
[3]	"S1"[3]

Switch	3 "S3"
[1]	"H2"[1]
[2]	"S1"[2]

Switch	3 "S4"
[1]	"H2"[2]
[2]	"S2"[2]

Hca	2 "H1"
[1]	"S1"[1]
[2]	"S2"[1]

Hca	2 "H2"
[1]	"S3"[1]
[2]	"S4"[1]
"""

OPEN = """
    open a vhca1 1
    open b vhca2 1
"""

MIGRATE = OPEN + """
    connect a b alt=2 retry=2 timeout=16
    is a mig rearm 1000
    recv b 100
    send a 10 3000
    done a send 10 success
    done b recv 10 success
    is a mig armed
    is b mig armed
    # By command; the peer follows when it hears of it.
    mig a migrated
    event a path_mig
    is a mig migrated
    is a port 2
    noevent b 100
    send a 10 3000
    done a send 10 success
    event b path_mig
    is b port 2
    is b mig migrated
    # Back, and a cable is cut: the HCA does it, and loses nothing.
    alt a 1 0
    alt b 1 0
    send a 5 100
    done a send 5 success
    is a mig armed
    is b mig armed
    # What was posted before: the cable is so long that nothing of it has arrived by then.
    !vfabric -k /run/vfabric 'Fault "S2"[2] delay=100000000000'
    send a 20 30000
    quiet a 50
    is a mig armed 0
    !vfabric -k /run/vfabric 'Unlink "S2"[2]'
    done a send 20 success
    event a path_mig
    event b path_mig
    is a port 1
    done b recv 35 success
    # And what is posted after.
    send a 5 30000
    done a send 5 success
    done b recv 5 success
    !vfabric -k /run/vfabric 'Fault "S2"[2] delay=0'
    !vfabric -k /run/vfabric 'Relink "S2"[2]'
"""

# The lane is full of messages that do not move, as the cable's credits are on their way for 100 s; a waits
# for room. By command it takes the other path: neither the line that it stood in nor what it has in the
# lane holds it up.
HELD_UP = OPEN + """
    open c vhca1 1
    open d vhca2 1
    open e vhca1 1
    open f vhca2 1
    connect a b alt=2 timeout=16
    connect c d timeout=20
    connect e f timeout=20
    recv b 100
    recv d 20
    recv f 20
    send a 2 100
    done a send 2 success
    is a mig armed
    is b mig armed
    !vfabric -k /run/vfabric 'Fault "S1"[2] delay=100000000000'
    {first}
    send c 20 30000
    send e 20 30000
    !sleep 0.2
    send a 20 30000
    quiet a 100
    mig a migrated
    event a path_mig
    done a send {count} success
    event b path_mig
    done b recv {all} success
    quiet c 50
    quiet e 50
    fails done c send 1 success 1
    fails done e send 1 success 1
    !vfabric -k /run/vfabric 'Fault "S1"[2] delay=0'
    !vfabric -k /run/vfabric 'Unlink "S1"[2]'
    !vfabric -k /run/vfabric 'Relink "S1"[2]'
"""

# The same port, another service level; and the cable at the HCA itself.
OTHER = OPEN + """
    connect a b alt=1 altsl=3 retry=2 timeout=16
    recv b 100
    send a 2 100
    done a send 2 success
    is a mig armed
    mig b migrated
    is b sl 3
    event b path_mig
    recv a 1
    send b 1 100
    done a recv 1 success
    event a path_mig
    is a sl 3
    alt a 2 0
    alt b 2 0
    send a 2 100
    done a send 2 success
    is a mig armed
    !vfabric -k /run/vfabric 'Unlink "H1"[1]'
    event a port_err
    send a 10 10000
    done a send 10 success
    event a path_mig
    is a port 2
    # Neither path is there: the HCA says that it could not migrate, and gives up.
    alt a 1 3
    alt b 1 3
    send a 2 100
    done a send 2 success
    is a mig armed
    !vfabric -k /run/vfabric 'Unlink "S2"[2]'
    send a 1 100
    event a path_mig_err
    done a send 1 transport_retry_counter_exceeded
    is a state err
    !vfabric -k /run/vfabric 'Relink "S2"[2]'
    !vfabric -k /run/vfabric 'Relink "H1"[1]'
"""

RESENDS = "cat /sys/class/infiniband/vhca1/ports/1/vhca/rc_resends"

# b answers on its own service level, and says of what has come by which it came.
DRAIN = OPEN + """
    connect a b timeout=14
    # Idle: drained at once.
    sqd a notify
    event a sq_drained
    is a draining 0
    rts a
    # What was begun is finished, the rest waits: the link is slower than who posts.
    recv b 1000
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=100000'
    send a 200 32768
    sqd a notify
    event a sq_drained
    left a 100
    drained a 300
    is a draining 0
    send a 10 64
    drained a 200
    sl a 2
    is a sl 2
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=100'
    rts a
    done a send 210 success
    done b recv 210 success
    came b 2
    is b sl 0
"""

# What is lost while it drains is sent again, and the event waits for the last ACK.
AGAIN = f"""
    recv b 60
    !{RESENDS} >>/tmp/resends
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=100000'
    send a 60 32768
    sqd a notify
    event a sq_drained
    left a 1
    drained a 200
    !{RESENDS} >>/tmp/resends
    !vfabric -k /run/vfabric 'Fault "S1"[2] slow=100'
    rts a
    done a send 60 success
    done b recv 60 success
"""

LOSSY = """
    !vfabric -k /run/vfabric 'Fault "S1"[2] loss=0.05'
    !vfabric -k /run/vfabric 'Fault "S3"[2] loss=0.05'
""" + DRAIN + 5 * AGAIN + """
    !vfabric -k /run/vfabric 'Fault "S1"[2] loss=0'
    !vfabric -k /run/vfabric 'Fault "S3"[2] loss=0'
"""

# What repath says of them: before they are armed, when they are, and when a has migrated, and b by a's packets.
# Rates 3 and 2 are 10 and 2.5 Gbit/s. What the HCA does by itself is asked for ten times a second at most.
SHOWN = OPEN + """
    connect a b alt=2 sl=1 altsl=3 rate=3 altrate=2 retry=2 timeout=16
    !sleep 0.2; repath -j qp state RTS >/tmp/rearmed
    recv b 10
    send a 2 100
    done a send 2 success
    is a mig armed
    is b mig armed
    !sleep 0.2; repath -j qp state RTS >/tmp/armed; sh /tmp/by_lid armed
    mig a migrated
    event a path_mig
    send a 2 100
    done a send 2 success
    event b path_mig
    !sleep 0.2; repath -j qp state RTS >/tmp/migrated; sh /tmp/by_lid migrated
    sqd a notify
    event a sq_drained
    !sleep 0.2; repath -j qp state SQD >/tmp/drained
"""


# What `repath qp` finds by each LID, from any port and from port 1.
BY_LID = """
    for lid in {lids}; do
        repath -j qp dlid $lid >/tmp/$1.$lid
        repath -j qp port 1 dlid $lid >/tmp/$1.$lid.1
    done
"""


def found_by_lid(guest, lids):
    """A DLID finds who sends there now, and who would after a migration, by port if one is given; nobody else."""
    for when, ports in (("armed", (1, 2)), ("migrated", (2,))):
        for (host, port), lid in lids.items():
            sender = {"H1": "vhca2", "H2": "vhca1"}[host]
            for path, wanted in ((f"{lid}", port in ports), (f"{lid}.1", port == 1 and port in ports)):
                qps = json.loads(guest.run(f"cat /tmp/{when}.{path}"))
                found = [qp["dev"] for qp in qps if "pid" in qp]
                assert found == [sender] * wanted, f"{when}, {host}, {port}: LID {path} finds {qps}"


def shown(fabric):
    """The columns of paths: those of the queue pairs as they are, and of where they would go."""
    guest, lids = fabric.guest, {(host, port): fabric.lid(host, port) for host in ("H1", "H2") for port in (1, 2)}
    guest.load_repath()
    guest.run("cat >/tmp/by_lid", stdin=BY_LID.format(lids=" ".join(map(str, lids.values()))).encode())
    fabric.play(SHOWN)
    for name, device, host, peer in (("a", "vhca1", "H1", "H2"), ("b", "vhca2", "H2", "H1")):
        paths = [{"port": port, "slid": lids[host, port], "dlid": lids[peer, port], "sl": sl, "gbps": rate}
                 for port, sl, rate in ((1, 1, "10"), (2, 3, "2.5"))]
        alternates = [{f"alt-{key}": value for key, value in path.items() if key != "slid"} for path in paths]
        wanted = {"rearmed": paths[0] | alternates[1] | {"mig-state": "REARM"},
                  "armed": paths[0] | alternates[1] | {"mig-state": "ARMED"},
                  "migrated": paths[1] | {"mig-state": "MIGRATED"}}
        if name == "a":
            wanted["drained"] = paths[1] | {"mig-state": "MIGRATED", "state": "SQD"}
        for when, values in wanted.items():
            qps = json.loads(guest.run(f"cat /tmp/{when}"))
            qp, = [qp for qp in qps if qp["dev"] == device and "pid" in qp]
            found = {key: qp.get(key) for key in values}
            assert found == values, f"{name}, {when}: {found}, expected {values}: {qp}"
    found_by_lid(guest, lids)
    guest.run("rmmod ib_repath")


WITHOUT = OPEN + """
    fails connect a b alt=2
    open c vhca1 1
    open d vhca2 1
    connect c d
    fails sqd c
    recv d 1
    send c 1 5000
    done c send 1 success
"""


def test(bed):
    # With infinite lifetimes: what a slow cable holds up is not discarded.
    fabric = bed.fabric(TOPOLOGY, options="-i")
    shown(fabric)
    for script in (MIGRATE, OTHER, DRAIN, LOSSY,
                   # a waits for room; it has packets in the lane, and others wait behind them.
                   HELD_UP.format(first="", count=20, all=22),
                   HELD_UP.format(first="send a 20 30000", count=40, all=42)):
        fabric.play(script)
        fabric.wait_active()
        for port in (1, 2):
            fabric.guest.wait_until(f"smpquery -C vhca1 nodeinfo {fabric.lid('H2', port)}", timeout=60)
    counts = [int(n) for n in fabric.guest.run("cat /tmp/resends").split()]
    drains = list(zip(counts[::2], counts[1::2]))
    print(f"  resends while it drained: {[after - before for before, after in drains]}", flush=True)
    assert any(before < after for before, after in drains), "nothing was lost: it proves nothing"

    for host in list(fabric.hosts):
        fabric.remove(host)
    fabric.guest.run("rmmod ib_vhca")
    fabric.load("apm=0 sqd=0")
    for host in ("H1", "H2"):
        fabric.add(host, ports=2)
    fabric.start_opensm()
    fabric.wait_active()
    assert "AUTO_PATH_MIG" not in fabric.guest.run("ibv_devinfo -v -d vhca1")
    fabric.play(WITHOUT)
