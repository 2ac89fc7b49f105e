#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Packets that wait too long, with the lifetimes that OpenSM sets when nobody tells it any: dropped
when these are over and not before, by the port that should have sent them, and counted there.

What is waited for is virtual time. A host that has stopped reading blocks the port to it; a wire that has
stopped blocks a port between switches.
"""

import json
import re
import sys

from bed import Fabric, expect

PACKET_US = 1662.4                  # 2078 bytes at 10 Mbit/s: some packets come in each lifetime
SLACK = 5000                        # us: a few packets' time, to fill the buffers first
STOPPED = 1000000000                # percent: 5 s for a packet on 4x QDR


def life(value):
    """us; IBA 1.2.1 vol 1, 14.2.5.6 and 18.2.5.4"""
    return 4.096 * 2 ** value


def switch_lid(fabric, name):
    return re.search(rf'"{name}"\tnodeguid.*\n#\tlid (\d+)', fabric.command("Dump"))[1]


def asked(fabric, what, *words):
    """A field of what smpquery or perfquery prints."""
    return int(re.search(rf"^{what}:\.*(\d+)", fabric.run("H1", *words), re.M)[1])


def dropped(fabric):
    rows = (row.split(",") for row in fabric.command("Results drops").splitlines()[1:])
    return {cause: int(n) for cause, n in rows if int(n)}


def discards(fabric):
    """{(switch, port): PortXmitDiscards} as a program reads them, those that are not 0."""
    found = {}
    for name in ("S1", "S2"):
        lid = switch_lid(fabric, name)
        for port in range(1, 5):
            n = asked(fabric, "PortXmitDiscards", "perfquery", lid, str(port))
            if n:
                found[name, port] = n
    return found


def advance(fabric, us):
    fabric.command(f"Advance {us:.3f}")


def silent_host():
    """Between the switch and a host, where OpenSM has a shorter HOQLife: then the lane is stalled."""
    with Fabric("mesh:2,hosts=2", opensm="-R minhop") as fabric:
        lid = switch_lid(fabric, "S2")
        hoq = life(asked(fabric, "HoqLife", "smpquery", "portinfo", lid, "3"))
        count = asked(fabric, "VLStallCount", "smpquery", "portinfo", lid, "3")
        expect(hoq < 2000000 and count > 1, "OpenSM sets lifetimes:", hoq, count)
        fabric.command(f'Fault "H3"[1] drain={STOPPED}')
        fabric.command('Flow "H1" "H3" rate=0.01')
        advance(fabric, 7 * PACKET_US + hoq - SLACK)    # its buffer takes seven
        expect(dropped(fabric) == {}, "too early:", dropped(fabric))
        advance(fabric, 2 * SLACK)
        for n in range(1, count + 1):
            expect(dropped(fabric)["hoq_lifetime"] == n, "one in each HOQLife:", n, dropped(fabric))
            if n < count:
                advance(fabric, hoq)
        expect(discards(fabric)["S2", 3] == sum(dropped(fabric).values()), discards(fabric))
        advance(fabric, hoq)
        waiting = dropped(fabric)
        expect(waiting["hoq_lifetime"] == count, "who comes to a stalled lane does not wait:", waiting)
        expect(waiting["vl_stalled"] >= 0.9 * hoq / PACKET_US, "but is dropped at once:", waiting)
        sent = json.loads(fabric.command("Results json"))["flows"][0]["sent"]
        expect(sent - sum(waiting.values()) <= 8, "so that nothing waits there but with the host:", sent)
        advance(fabric, 6 * hoq)
        expect(dropped(fabric)["hoq_lifetime"] == count, "for eight HOQLives:", dropped(fabric))
        advance(fabric, 3 * hoq)
        expect(dropped(fabric)["hoq_lifetime"] > count, "then they wait again:", dropped(fabric))
        found = discards(fabric)
        expect(found == {("S2", 3): sum(dropped(fabric).values())}, "all at this port:", found)
        expect(set(dropped(fabric)) == {"hoq_lifetime", "vl_stalled"}, dropped(fabric))


def silent_wire():
    """Between switches: HOQLife for who comes first, then LifeTimeValue for those who came behind."""
    with Fabric("mesh:2,hosts=2", opensm="-R minhop") as fabric:
        lid = switch_lid(fabric, "S1")
        hoq = life(asked(fabric, "HoqLife", "smpquery", "portinfo", lid, "2"))
        whole = life(asked(fabric, "LifeTime", "smpquery", "switchinfo", lid))
        expect(hoq < whole < 5000000, "OpenSM sets lifetimes:", hoq, whole)
        fabric.command(f'Fault "S1"[2] slow={STOPPED}')
        fabric.command('Flow "H1" "H3" rate=0.01')      # its first packet is on the wire for 5 s
        advance(fabric, 100)
        fabric.command('Flow "H2" "H4" rate=0.01')
        advance(fabric, hoq - SLACK)
        expect(dropped(fabric) == {}, "too early:", dropped(fabric))
        advance(fabric, 2 * SLACK)
        expect(dropped(fabric) == {"hoq_lifetime": 1}, "the first of the second host:", dropped(fabric))
        advance(fabric, whole - hoq - 2 * SLACK)
        expect(dropped(fabric) == {"hoq_lifetime": 1}, "too early:", dropped(fabric))
        advance(fabric, 4 * SLACK)
        found = dropped(fabric)
        expect(found["hoq_lifetime"] == round(whole / hoq), "one in each HOQLife:", found)
        expect(found["switch_lifetime"] >= 4, "its buffer is as old as the switch lets it be:", found)
        expect(set(found) == {"hoq_lifetime", "switch_lifetime"}, found)
        expect(discards(fabric) == {("S1", 2): sum(found.values())}, discards(fabric), found)


def main():
    silent_host()
    silent_wire()
    return 0


if __name__ == "__main__":
    sys.exit(main())
