#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each method's messages are those of paper II's equations; UnPath comes before RePath; what is
not answered is repeated, and given up in the end.

Fault one (S4-S5) changes no path record of the papers' mesh, fault two (S2-S5) needs a second lane.
The equations' n is the number of subscribers here, m the number of changed paths that begin at one.
"""

import collections
import sys
from signal import SIGHUP

from hosts import AHEAD, WAIT, WAY_BACK, Hosts
from managed import NETS, Managed, expect

MESH = f"{NETS}/mesh3x2.net"
FAULT_ONE, FAULT_TWO = 'Unlink "S4"[3]', 'Unlink "S2"[3]'
MAD = 256


def settled(fabric):
    status = fabric.status()
    return status["signal"], status["paths"]


def once(hosts, name):
    """What a host heard, without repetitions."""
    return list({notice.number: notice for notice in hosts.heard(name)}.values())


def paper(method, fault):
    """A fault under one of the paper's methods: how many reports, of how many routings, and who
    heard what."""
    with Managed(MESH, "-R lash", method=method) as fabric:
        with Hosts(fabric) as hosts:
            count = fabric.status()["signal"]["subscribers"]
            expect(count == len(hosts.listeners), "nothing was said yet, and it knows who listens", count)
            before = hosts.settle()
            hosts.fault(fault)
            signal, paths = settled(fabric)
            heard = {name: once(hosts, name) for name in hosts.listeners}
            expect(signal["repath"] == sum(len(h) for h in heard.values()), "counted", signal)
            expect(signal["unpath"] == 0, "the paper's methods have no UnPath", signal)
            expect(signal["bytes"] == MAD * signal["reports"], signal)
            expect(signal["given_up"] == 0, signal)
            return signal["repath"], paths["routings"] - before, paths, heard


def wildcard():
    """Equation 5: n reports for each sweep, whether anything has changed or not."""
    for fault in (FAULT_ONE, FAULT_TWO):
        reports, sweeps, _, heard = paper("wildcard", fault)
        expect(sweeps >= 1 and reports == sweeps * len(heard), fault, reports, sweeps)
        expect(all(n.mask == 0 for h in heard.values() for n in h), "about everything", heard)


def hybrid():
    """Equation 4: n reports if anything has changed, else none."""
    reports, _, paths, _ = paper("hybrid", FAULT_ONE)
    expect(reports == paths["changed"] == 0, "no path is another:", reports, paths)
    reports, _, paths, heard = paper("hybrid", FAULT_TWO)
    expect(paths["changed"] >= 1 and reports == paths["changed"] * len(heard), reports, paths)
    expect(all(n.mask == 0 for h in heard.values() for n in h), "about everything", heard)


def repath_only():
    """Equation 6: m reports, each with a path record."""
    reports, _, paths, _ = paper("repath-only", FAULT_ONE)
    expect(reports == paths["paths"] == 0, "no path is another:", reports, paths)
    reports, _, paths, heard = paper("repath-only", FAULT_TWO)
    expect(0 < reports <= paths["paths"], "but those from the SM's own host", reports, paths)
    expect(all(n.mask and n.slid and n.dlid for h in heard.values() for n in h), "records", heard)


def order():
    """UnPath has the record that RePath will have; both come once each, and in this order."""
    with Managed(MESH, "-R lash", method="auto") as fabric:
        with Hosts(fabric) as hosts:
            hosts.fault(FAULT_TWO)
            hosts.fault(FAULT_TWO.replace("Unlink", "ReLink"))
            seen = 0
            for name in hosts.listeners:
                heard = once(hosts, name)
                for notice in (n for n in heard if n.trap == 69):
                    before = [n for n in heard if n.trap == 68 and n.serial == notice.serial and
                              n.dlid == notice.dlid]
                    if before:
                        seen += 1
                        expect(len(before) == 1 and before[0].flags == WAIT | AHEAD, before)
                        expect(before[0].number < notice.number and before[0].sl == notice.sl,
                               "UnPath is first", before, notice)
            expect(seen > 10, "UnPath was heard:", seen)
            signal = fabric.status()["signal"]
            expect(signal["unpath"] >= seen, signal)


def affected():
    """One report about everything to each host at which a changed path begins."""
    with Managed(MESH, "-R lash", method="affected", unpath="off", coalesce="off") as fabric:
        with Hosts(fabric) as hosts:
            hosts.fault(FAULT_ONE)
            hosts.fault(FAULT_ONE.replace("Unlink", "ReLink"))
            expect(fabric.status()["signal"]["repath"] == 0, "nobody is affected")
    with Managed("random:8,degree=3,hosts=1,seed=2", "-R dfsssp", method="affected", unpath="off",
                 coalesce="off") as fabric:
        with Hosts(fabric) as hosts:
            before = hosts.records()
            hosts.fault('Unlink "S1"[2]')
            signal, paths = settled(fabric)
            now = hosts.records()
            concerned = {name for name, lid in hosts.lid.items()
                         if any(before[path] != now.get(path) for path in before if path[0] == lid)}
            expect(0 < signal["repath"] <= paths["changed"] * len(hosts.listeners), signal)
            for name in hosts.listeners:
                heard = once(hosts, name)
                serials = [n.serial for n in heard]
                expect(bool(heard) == (name in concerned), "told, and concerned:", name, heard, concerned)
                expect(len(serials) == len(set(serials)), "once for each routing", serials)
                expect(all(n.mask == 0 for n in heard), "about everything", heard)
            expect(concerned and concerned < set(hosts.listeners), "some, not all", concerned)


def auto():
    """The records to who has few changed paths; one report about everything to who has more."""
    for most in 1, 32:
        with Managed(MESH, "-R lash", method="auto", unpath="off", coalesce="off",
                     auto_records=most) as fabric:
            with Hosts(fabric) as hosts:
                hosts.fault(FAULT_TWO)
                told = [(name, notice.serial, notice.mask != 0) for name in hosts.listeners
                        for notice in once(hosts, name)]
        expect(told, "somebody is told")
        for name, serial, of_one in told:
            n = sum((name, serial) == other[:2] for other in told)
            expect(n == 1 if not of_one else n <= most, most, "records at most, or one report", told)
        expect(any(not of_one for *_, of_one in told) == (most == 1), "by the number", most, told)


def both_ends():
    """Levels differ by direction with DFSSSP, and many paths change of which the way back does not: who is at the other
    end hears of that as the SA has it, and of nothing twice. Without the option he does not."""
    for both in "on", "off":
        with Managed("torus:5x5,hosts=1", "-R dfsssp -Q", method="auto", unpath="off", coalesce="off",
                     both_ends=both) as fabric:
            with Hosts(fabric) as hosts:
                hosts.fault('Unlink "S1"[2]')
                alone, records, by_serial = 0, hosts.records(), {}
                lids = {hosts.lid[name] for name in hosts.listeners}
                heard = [(name, n) for name in hosts.listeners for n in once(hosts, name)]
                last = max(n.serial for _, n in heard)
                for name, n in heard:
                    paths, of_all = by_serial.setdefault(n.serial, (collections.Counter(), set()))
                    if n.mask:
                        paths[n.slid, n.dlid] += 1
                        expect(n.serial < last or records[n.slid, n.dlid][0] == n.sl, "as the SA has it", n)
                    else:
                        of_all.add(hosts.lid[name])
                    expect(not n.flags or (n.flags == WAY_BACK and both == "on"), n)
                for paths, of_all in by_serial.values():
                    expect(set(paths.values()) <= {1}, "once", paths)
                    alone += sum((b, a) not in paths and b not in of_all for a, b in paths if b in lids)
                expect(sum(len(paths) for paths, _ in by_serial.values()) > 50, by_serial)
                expect((alone == 0) == (both == "on"), both, alone, by_serial)


def repeated():
    """The same notice comes again, under the same number, until it is answered, or to the limit."""
    with Managed(MESH, "-R lash", method="hybrid", report_timeout=50) as fabric:
        with Hosts(fabric, mute=2) as hosts:
            hosts.fault(FAULT_TWO)
            for name in hosts.listeners:
                heard = hosts.heard(name)
                expect(len(set(heard)) == len(once(hosts, name)), "repeated as it was", heard)
                expect(len(heard) > len(set(heard)), "repeated", heard)
            signal = fabric.status()["signal"]
            expect(signal["repeated"] >= len(hosts.listeners) and not signal["given_up"], signal)
    with Managed(MESH, "-R lash", method="hybrid", report_timeout=20, report_limit=3) as fabric:
        with Hosts(fabric, mute=-1) as hosts:
            hosts.fault(FAULT_TWO)
            signal, paths = settled(fabric)
            expect(signal["answered"] == 0, signal)
            expect(signal["given_up"] + signal["outdated"] ==
                   paths["changed"] * len(hosts.listeners), signal, paths)
            expect(any("does not answer" in line for line in fabric.plugin_log()), "it is logged")


def steady():
    """A sweep that finds nothing new changes no path, though LASH balances two lanes at random."""
    with Managed(MESH, "-R lash", method="hybrid") as fabric:
        with Hosts(fabric) as hosts:
            hosts.fault(FAULT_TWO)
            before = fabric.status()["paths"]
            for _ in range(3):
                mark = fabric.sm_mark()
                fabric.sm.send_signal(SIGHUP)
                fabric.wait_sm(mark)
            hosts.settle()
            after = fabric.status()["paths"]
            expect(after["routings"] > before["routings"], "routed again", before, after)
            expect(after["changed"] == before["changed"] == 1, "nothing new", before, after)


def dry_run():
    with Managed(MESH, "-R lash", method="auto", dry_run="on") as fabric:
        with Hosts(fabric) as hosts:
            hosts.fault(FAULT_TWO)
            signal, paths = settled(fabric)
            expect(paths["changed"] >= 1 and signal["reports"] == 0, signal, paths)
            expect(not any(hosts.heard(name) for name in hosts.listeners), "nobody is told")
            expect(any("dry run: trap 69" in line for line in fabric.plugin_log()), "but logged")


def main():
    wildcard()
    hybrid()
    repath_only()
    order()
    affected()
    auto()
    both_ends()
    repeated()
    steady()
    dry_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
