# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Armed alternate paths survive a move: HCAs with two ports, each in a plane of its own. The one end is moved
to another HCA and place, then the other end. Each time both are armed again without their program; then the
plane of their path is cut, and the new HCA migrates by itself: nothing is lost."""

from move import LOG, repath

# Guests and fabric mostly wait.
PROCESSORS = 1

# Plane 1 is S1 and S3, plane 2 is S2 and S4; S1-S2 makes them one subnet. OpenSM is at H4.
TOPOLOGY = """
Switch	5 "S1"
[1]	"H1"[1]
[2]	"S3"[3]
[3]	"S2"[3]
[4]	"H4"[1]
[5]	"H5"[1]

Switch	4 "S2"
[1]	"H1"[2]
[2]	"S4"[3]
[3]	"S1"[3]
[4]	"H5"[2]

Switch	3 "S3"
[1]	"H2"[1]
[2]	"H3"[1]
[3]	"S1"[2]

Switch	3 "S4"
[1]	"H2"[2]
[2]	"H3"[2]
[3]	"S2"[2]

Hca	2 "H1"
[1]	"S1"[1]
[2]	"S2"[1]

Hca	2 "H2"
[1]	"S3"[1]
[2]	"S4"[1]

Hca	2 "H3"
[1]	"S3"[2]
[2]	"S4"[2]

Hca	1 "H4"
[1]	"S1"[4]

Hca	2 "H5"
[1]	"S1"[5]
[2]	"S2"[4]
"""

# Between two moves: the script stops where the test goes on, and the other way round.
STOP = "    !touch /run/at-{n}; until [ -e /run/go-{n} ]; do sleep 0.05; done\n"

ARMED = """
    recv a 5
    recv b 5
    send a 5 3000
    send b 5 3000
    done a send 5 success
    done b send 5 success
    done a recv 5 success
    done b recv 5 success
    is a mig armed
    is b mig armed
    is a port {port}
    is b port {port}
"""

# What is posted before the cut is on its way, and what is posted after it.
CUT = """
    recv b 40
    recv a 5
    !vfabric -k /run/vfabric 'Fault {cable} delay=100000000000'
    send a 20 30000
    quiet a 50
    !vfabric -k /run/vfabric 'Unlink {cable}'
    send a 20 30000
    done a send 40 success
    done b recv 40 success
    among a path_mig
    among b path_mig
    send b 5 3000
    done b send 5 success
    done a recv 5 success
    is a mig migrated
    is b mig migrated
    is a port {to}
    is b port {to}
    !vfabric -k /run/vfabric 'Fault {cable} delay=0'
    !vfabric -k /run/vfabric 'Relink {cable}'
"""

START = """
    open a vhca1 1
    open b vhca2 1
    connect a b alt=2 retry=2 timeout=17
"""

AGAIN = """
    alt a 1 0
    alt b 1 0
"""


def move(fabric, name, host, to):
    """The process leaves the HCA of that name for another one elsewhere; how it is now."""
    guest = fabric.guest
    lids = [fabric.lid(host, port) for port in (1, 2)]
    status, op, text = repath(guest, f"suspend {name} timeout 30", 60)
    assert status == 0 and op["state"] == "suspended", text
    fabric.remove(host)
    fabric.add(to, ports=2, name=name)
    fabric.wait_active([to])
    now = [fabric.lid(to, port) for port in (1, 2)]
    assert not set(lids) & set(now), f"{lids}, {now}: it proves nothing"
    status, op, text = repath(guest, f"resume {op['op']} on {name} timeout 30", 60)
    assert status == 0 and op["state"] == "resumed", text


def wait_paths(fabric, a, b):
    """Until both planes lead from the one host to the other, and back: OpenSM has had to set them."""
    for here, there in ((a, b), (b, a)):
        for port in (1, 2):
            fabric.guest.wait_until(f"smpquery -C {fabric.hosts[here]} -P {port} nodeinfo "
                                    f"{fabric.lid(there, port)}", timeout=60)


def run(fabric):
    guest = fabric.guest
    script = (START + ARMED.format(port=1) + STOP.format(n=1) +
              ARMED.format(port=1) + CUT.format(cable='"S1"[2]', to=2) +
              AGAIN + ARMED.format(port=2) + STOP.format(n=2) +
              ARMED.format(port=2) + CUT.format(cable='"S2"[2]', to=1))
    slowness = guest.bed.kernel.slowness
    job = guest.start(f"exec repath run -q env REPATH_LOG=info:{LOG} qpscript -w {slowness}",
                      stdin=script.encode())
    try:
        guest.wait_until("[ -e /run/at-1 ] || ! pidof qpscript >/dev/null", timeout=120)
        assert job.running
        move(fabric, "vhca2", "H2", "H3")
        wait_paths(fabric, "H1", "H3")
        guest.run("touch /run/go-1")
        guest.wait_until("[ -e /run/at-2 ] || ! pidof qpscript >/dev/null", timeout=120)
        assert job.running
        move(fabric, "vhca1", "H1", "H5")
        wait_paths(fabric, "H5", "H3")
        guest.run("touch /run/go-2")
        job.wait(120)
    except Exception:
        print(job.output(), guest.run(f"repath qp; tail -n 40 {LOG}; dmesg | tail -n 20", check=False),
              flush=True)
        raise
    log = guest.run(f"cat {LOG}")
    assert "without its alternate path" not in log, log


def test(bed):
    # With infinite lifetimes: what a slow cable holds up is not discarded.
    fabric = bed.fabric(TOPOLOGY, options="-i", opensm=None, hosts=["H1", "H2", "H4"])
    fabric.start_opensm(host="H4")
    fabric.wait_active()
    fabric.guest.load_repath()
    run(fabric)
    fabric.guest.run("rmmod ib_repath")
