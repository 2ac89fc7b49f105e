# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Every kind of queue pair follows a reroute, idle and under checked traffic, where the process has the shim: RC, with a
shared receive queue, UC, UD; on devices that can only migrate, only drain, or neither. The messages come by
the new lane, and so do the packets."""

import json
import re

from move import SHIM
from test_move_objects import Vcheck
from test_reroute_lanes import CHECK, load, stats
from tracking import missed_probes
from traffic import Pair

# The fabric is as busy as a guest: alone.
GUESTS = 2

TIMEOUT = 600

# One of each kind; all idle when their paths change.
KINDS = """
    open rc vhca1 1
    open RC vhca2 1
    open srq vhca1 1 srq
    open SRQ vhca2 1 srq
    open uc vhca1 1 uc
    open UC vhca2 1 uc
    open ud vhca1 1 ud
    open UD vhca2 1 ud
    connect rc RC timeout=14
    connect srq SRQ timeout=14
    connect uc UC
    connect ud UD
"""

EACH = """
    recv {there} 4
    send {here} 4 1000
    done {here} send 4 success
    done {there} recv 4 success
    came {there} {sl}
"""

# Until those that are connected are on that service level at both ends.
WAIT = """
i=0
repath qp dev vhca1 type RC | grep -q . && repath qp dev vhca2 type RC | grep -q . || exit 1
while repath qp dev vhca1 | grep 'type [RU]C' | grep -qv ' sl {sl} ' ||
      repath qp dev vhca2 | grep 'type [RU]C' | grep -qv ' sl {sl} '; do
    i=$((i + 1)); [ $i -lt 300 ] || {{ repath qp; repath stats; exit 1; }}; sleep 0.1
done
"""

MOVE = """
repath path set vhca1/1 dlid {b} sl {sl}
repath path set vhca2/1 dlid {a} sl {sl}
"""


def each(sl):
    """A few messages of each kind by this service level, there and back."""
    return "".join(EACH.format(here=here, there=there, sl=sl) for kind in ("rc", "srq", "uc", "ud")
                   for here, there in ((kind, kind.upper()), (kind.upper(), kind)))


def lanes(fabric):
    """Packets that went out of switches by data VL."""
    count = {}
    for line in fabric.command("Sent").splitlines():
        for vl, packets in re.findall(r"VL(\d+) (\d+)", line) if line.startswith('"S') else ():
            count[int(vl)] = count.get(int(vl), 0) + int(packets)
    return count


def idle(fabric, lids):
    guest = fabric.guest
    script = KINDS + each(0)
    for sl in (3, 1):
        guest.run(f"cat > /run/move-{sl} <<'END'\n{MOVE.format(sl=sl, **lids)}"
                  f"{WAIT.format(sl=sl)}END\n")
        script += f"    !sh /run/move-{sl}\n" + each(sl)
    fabric.play(script, "repath run -q qpscript")


def busy(fabric, lids):
    """RC with all operations, and beside it RC with a shared receive queue, UC and UD both ways (vcheck): all is checked
    while their paths change three times. Of the lanes of before none is used any more."""
    guest = fabric.guest
    others = Vcheck(guest, guest, vhca=fabric.hosts.values())
    pair = Pair(guest, guest, "-q 4 -n 8 -b -k 4 -m send,send_imm,write,write_imm,read --vary -s 8000 "
                "-r 100 -d vhca2", server_options="-d vhca1", env=SHIM)
    pair.wait_running()
    others.more(20)
    for sl in (2, 6, 3):
        guest.run(MOVE.format(sl=sl, **lids))
        guest.run(WAIT.format(sl=sl), timeout=60)
        pair.wait_progress(20)
        others.more(20)
    before = lanes(fabric)
    pair.wait_progress(60)
    others.more(20)
    used = {vl: n - before.get(vl, 0) for vl, n in lanes(fabric).items() if n > before.get(vl, 0)}
    print(f"  packets by VL: {used}", flush=True)
    client, _ = pair.finish()
    others.finish()
    print(f"  rcheck: gap {client['max_gap_ms']} ms, {client['msgs']} messages", flush=True)
    assert max(used, key=used.get) == 3 and not {2, 6} & used.keys(), used


def test(bed):
    # As many lanes as service levels.
    fabric = bed.fabric("mesh:2", opensm="-Q", module="sqd=0")
    guest = fabric.guest
    guest.run(f"cat > /run/check <<'END'\n{CHECK}END\n")
    guest.load_repath("reroute_arm_ms=300 reroute_again_ms=100")
    # Idle ones that can only migrate are connected anew as well, and busy ones if it is quicker.
    for parameters, ways in (("sqd=0", ("moved-apm", "moved-cycle")), ("apm=0", ("moved-sqd",)),
                             ("apm=0 sqd=0", ("moved-cycle",))):
        if parameters != "sqd=0":
            load(fabric, parameters, "-Q")
        lids = {"a": fabric.lid("H1"), "b": fabric.lid("H2")}
        # Here the administrator says which path it is, and not, a moment later, OpenSM, which has just begun.
        for dev in fabric.hosts.values():
            guest.run(f"repath path listen {dev} off")
        try:
            idle(fabric, lids)
            busy(fabric, lids)
        except Exception:
            print(guest.run("repath qp; repath stats; tail -n 60 /tmp/shim.log; dmesg | tail",
                            check=False), flush=True)
            raise
        moves = 0
        for dev in fabric.hosts.values():
            counts = stats(guest, dev)
            moved = {name: n for name, n in counts.items() if name.startswith("move") and n}
            print(f"  {parameters}, {dev}: {json.dumps(moved)}, {counts['path-shim-told']} told",
                  flush=True)
            moves += sum(counts[way] for way in ways)
            assert counts["path-shim-told"], counts
            assert not counts["move-failed"] and not counts["move-lost"], counts
            assert not counts["move-no-way"], counts
        assert not missed_probes(guest)
        # Of idle ones three connections, twice, and of busy ones six, three times: an end that its peer has taken
        # along need not count.
        assert moves >= 24, moves
    guest.run("rmmod ib_repath")
