#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Engine pftree in OpenSM: partitions out of OpenSM's own file, figures 5 and 6 of the paper, lanes that
path records and SLtoVL tables tell of, policies that can not be kept, or read, and weights that are
learnt.

        R1    R2
         | \\ / |
       L1   L2   L3        H1..H3 at L1 are the paper's A, B and C, and so on
"""

import contextlib
import re
import sys
import time

from managed import Managed, expect, until

TREE = "xgft:3,3/1,2"
PATIENCE = 60
TENANTS = {"one": ("H1", "H5"), "two": ("H2", "H6", "H9"), "three": ("H3", "H4", "H7", "H8")}
KEYS = {"one": 0x101, "two": 0x102, "three": 0x103}


def lid_of(fabric, host):
    return int(re.search(r"\blid (\d+)", fabric.command(f'Dump "{host}"')).group(1))


class Governed(Managed):
    def write_policy(self, text):
        self.options_of_plugin["pftree_policy"] = f"{self.dir}/policy"
        with open(f"{self.dir}/policy", "w", encoding="utf-8") as file:
            file.write(text)


class Tenants(Governed):
    """OpenSM is started when the files are there, which need the fabric."""

    def __init__(self, policy, engine="pftree", apart=True, **options):
        self.policy, self.apart = policy, apart
        super().__init__(TREE, f"-R {engine},no_fallback -Q", **options)

    def start_opensm(self, options):
        self.write_policy(self.policy)
        self.write_partitions(((name, KEYS[name], map(self.port_guid, hosts)) for name, hosts in TENANTS.items()),
                              "ALL=limited, SELF=full")
        return super().start_opensm(options)

    def wrong(self, *words):
        """Nor have two partitions packets in a lane of a link: there are enough for all."""
        apart = ("partitions", f"{self.dir}/partitions", "require", "lanes") if self.apart else ()
        return super().wrong(*words, *apart)

    def links(self, tenant):
        """Cables in one direction that its packets take, those of the hosts left out."""
        lids = [lid_of(self, host) for host in TENANTS[tenant]]
        links = set()
        for a in lids:
            for b in lids:
                way = self.command(f"Route {a} {b}")
                expect(a == b or f'To "H' in way, way)
                # "[4] -> "L2-1"[1]": the port that is entered names the cable.
                links |= set(re.findall(r'-> ("L\d-\d"\[\d+\])', way)[1:])
        return links

    def levels(self, tenant):
        """The service levels that path records of its pairs have."""
        lids = [lid_of(self, host) for host in TENANTS[tenant]]
        found = set()
        for a in lids:
            for b in lids:
                records = self.run("H1", "saquery", "-p", "--src-to-dst", f"{a}:{b}")
                if a != b:
                    found.add(int(re.search(r"\bsl\.+0x(\w+)", records).group(1), 16))
        return found

    def lane(self, tenant):
        """They must have one."""
        found = self.levels(tenant)
        expect(len(found) == 1, tenant, found)
        return found.pop()


@contextlib.contextmanager
def broken_file(fabric):
    """OpenSM can not read it: it has no partitions then, and the policy nothing to go by."""
    fabric.apart = False
    with open(f"{fabric.dir}/partitions", "r+", encoding="utf-8") as file:
        good = file.read()
        file.seek(0)
        file.write("one=0x101 : 0xzz=full;\n")
        file.truncate()
    yield
    with open(f"{fabric.dir}/partitions", "w", encoding="utf-8") as file:
        file.write(good)
    fabric.apart = True


def unread_partitions(fabric, before):
    """Whatever the policy does not insist on: what a partition has is not taken from it."""
    for effort in ("strict", "best-effort"):
        fabric.write_policy(f"{effort}\npartition one phy\n")
        with broken_file(fabric):
            said = fabric.sweep()
            expect("PARSE ERROR: line 1" in said and "cannot route: there is no partition one any more" in said and
                   "stays in force" in said, effort, said)
            expect(fabric.tables() == before, effort, "tables stay")
        expect("cannot route" not in fabric.sweep(), "as before")


def never_there(fabric):
    """One that never was is said once, and the others have what they want."""
    fabric.write_policy("partition nobody phy\npartition one phy\npartition 0x777 vlane\n")
    said = fabric.sweep()
    expect("pftree: there is no partition nobody; there is no partition 0x0777\n" in said, said)
    one, two, three = (fabric.links(name) for name in TENANTS)
    expect(one and not one & two and not one & three, "figure 6", one, two, three)
    said = fabric.sweep()
    expect("there is no partition" not in said, "once", said)


def power(fabric, what):
    mark = fabric.sm_mark()
    for host in TENANTS["two"]:
        fabric.command(f'{what} "{host}"')
    fabric.wait_sm(mark)
    return fabric.sm_log()[mark:] + fabric.sweep()


def hosts_gone():
    """OpenSM has no partition without a host: the others are routed when the last has gone. It is the same one when
    they are back; until it can be read they have nothing that could be taken from them."""
    for effort in ("strict", "best-effort"):
        with Tenants(f"{effort}\npartition two phy\n") as fabric:
            two = fabric.links("two")
            said = power(fabric, "Down")
            expect("pftree:" not in said, said)
            if effort == "best-effort":
                with broken_file(fabric):
                    said = power(fabric, "Up")
                    expect("pftree: there is no partition two\n" in said, said)
                    until(fabric.all_active, "routed", fabric.command("Dump"))
                said = fabric.sweep()
            else:
                said = power(fabric, "Up")
            until(fabric.all_active, "all are back", fabric.command("Dump"))
            expect("cannot route" not in said and fabric.links("two") == two, said)


def figures(**options):
    with Tenants("strict\npartition one phy\n", **options) as fabric:
        expect(not any("pftree:" in line for line in fabric.plugin_log()), *fabric.plugin_log())
        one, two, three = (fabric.links(name) for name in TENANTS)
        expect(one and not one & two and not one & three, "figure 6", one, two, three)
        fabric.check("minimal", "symmetric", "lanes", host="H1", partitions=f"{fabric.dir}/partitions")
        # Two more that want to be alone are more than two spines carry.
        before = fabric.tables()
        fabric.write_policy("strict\npartition one phy\npartition 0x102 phy\n")
        said = fabric.sweep("cannot route")
        expect("2 links for 3 partitions" in said and "stays in force" in said, said)
        expect(fabric.tables() == before, "tables stay")
        fabric.write_policy("partition one some\n")
        expect("policy:1: not understood" in fabric.sweep("cannot route"), "said why")
        expect(fabric.tables() == before, "tables stay")
        unread_partitions(fabric, before)
        never_there(fabric)
        # The first that is named is kept.
        fabric.write_policy("partition three phy\npartition one phy\n")
        said = fabric.sweep("is not phy: it shares")
        expect("partition one (0x0101) is not phy" in said, said)
        one, two, three = (fabric.links(name) for name in TENANTS)
        expect(three and not three & one and not three & two, "alone", one, two, three)


def lanes():
    with Tenants("strict\npartition one vlane\npartition two vlane\n") as fabric:
        fabric.check("minimal", "symmetric", "lanes", host="H1", partitions=f"{fabric.dir}/partitions")
        one, two, three = (fabric.lane(name) for name in TENANTS)
        expect(one != three and two != three, "lanes", one, two, three)
        expect(one != two or not fabric.links("one") & fabric.links("two"), "lanes", one, two)
        for lid in (lid_of(fabric, "H1"), lid_of(fabric, "L2-1")):
            table = fabric.run("H1", "smpquery", "-L", "sl2vl", str(lid), "1")
            row = re.search(r"in +\d+, out +\d+:((?: *\|? *\d+)+)", table).group(1)
            lanes_of_sl = [int(vl) for vl in re.findall(r"\d+", row)]
            expect(lanes_of_sl[:3] == [0, 1, 2], table)
            fabric.lanes_weigh_the_same(lid)
        fewer_lanes(fabric, (one, two, three))


def fewer_lanes(fabric, before):
    """The administrator takes all lanes but one from OpenSM while they are in use, and gives them back."""
    def levels():
        return tuple(fabric.lane(name) for name in TENANTS)

    tables = fabric.tables()
    for most, refused in ((1, True), (5, False)):
        fabric.apart = most > 1
        said = fabric.let_use(most)
        expect(("can not be vlane: 1 lanes are too few; the routing before it stays in force" in said) == refused,
               most, said)
        expect(("cannot route" in said) == refused, most, said)
        expect(fabric.tables() == tables and levels() == before, most, "tables and service levels stay")
        fabric.lanes_weigh_the_same(lid_of(fabric, "L2-1"), 1 if refused else 8)


def queues_over():
    """VOQsw over its tables: each partition has service levels and lanes of its own, several now. What pftree knows of
    the routing before is as without."""
    with Tenants("strict\npartition one vlane\npartition two vlane\n", "voqsw", voqsw_engine="pftree",
                 voqsw_sls=16) as fabric:
        fabric.check("minimal", "lanes", host="H1", partitions=f"{fabric.dir}/partitions")
        levels = {name: fabric.levels(name) for name in TENANTS}
        one, two, three = ({level // 8 for level in found} for found in levels.values())
        expect(len(one) == len(two) == len(three) == 1 and not three & (one | two), levels)
        expect(one != two or not fabric.links("one") & fabric.links("two"), "they share no link", levels)
        expect(all(len(found) > 1 for found in levels.values()), levels)
        before = fabric.tables()
        with broken_file(fabric):
            said = fabric.sweep("cannot route")
            expect("voqsw: cannot route: there is no partition one any more" in said, said)
            expect(fabric.tables() == before, "tables stay")
        expect("cannot route" not in fabric.sweep(), "as before")
        fabric.write_policy("partition nobody phy\npartition three phy\n")
        said = fabric.sweep("voqsw:")
        expect("voqsw: there is no partition nobody" in said, said)
        one, two, three = (fabric.links(name) for name in TENANTS)
        expect(three and not three & one and not three & two, "alone", one, two, three)
    # Partitions that want nothing have no more lanes than there are levels for.
    for levels in 1, 2:
        with Tenants("", "voqsw", False, voqsw_engine="pftree", voqsw_sls=levels) as fabric:
            found = set.union(*(fabric.levels(name) for name in TENANTS))
            expect(found == set(range(levels)), levels, found)
    with Managed(TREE, "-R voqsw -Q", voqsw_engine="pftree", vswitch="dynamic", vswitch_socket="") as fabric:
        expect("voqsw: cannot route: voqsw_engine pftree: not together with vswitch" in fabric.sm_log() and
               "minhop tables configured" in fabric.sm_log(), fabric.sm_log()[-2000:])


def no_tree():
    """It is one no more: two leaves have no spine in common. Or never was one."""
    def entries():
        return re.findall(r'Switch \d+ "([^"]+)".*\n.*\n(.*)\n', fabric.command("Dump"))

    with Tenants("strict\npartition one vlane\n") as fabric:
        fabric.judged = False
        for cable in ('"L1-1"[4]', '"L1-2"[5]'):
            mark = fabric.sm_mark()
            before = entries()
            fabric.command(f"Unlink {cable}")
            fabric.wait_sm(mark)
        until(lambda: "pftree: cannot route: no tree: no way leads up and then down from L1-" in fabric.sm_log() and
              "the routing before it stays in force" in fabric.sm_log(), fabric.sm_log()[-2000:])
        expect("minhop" not in fabric.sm_log() and entries() == before, "tables stay")
    with Managed("mesh:3x2", "-R pftree -Q") as fabric:
        expect("pftree: cannot route: no tree: S1 and S2 are neighbours on the same level" in fabric.sm_log() and
               "minhop tables configured" in fabric.sm_log(), fabric.sm_log()[-2000:])


class Learning(Governed):
    """Two spines, four hosts at each of two leaves, in real time."""

    def __init__(self, **options):
        super().__init__("xgft:4,2/1,2", "-R pftree,no_fallback -Q", vfabric=("-r",),
                         pftree_isolation=0, **options)

    def start_opensm(self, options):
        self.write_policy("")
        return super().start_opensm(options)

    def spine(self, host):
        return re.findall(r'-> "(L2-\d)"', self.command(
            f"Route {lid_of(self, 'H5')} {lid_of(self, host)}"))[0]


def weights():
    """Two hosts of one spine receive; when that is known each has a spine of its own."""
    with Learning() as fabric:
        busy = [host for host in ("H1", "H2", "H3", "H4")
                if fabric.spine(host) == fabric.spine("H1")]
        expect(len(busy) == 2, "two hosts each", busy)
        expect(fabric.status()["receipts"] is None, fabric.status())
        # Named by the administrator, one weighs as much as all others: it has a spine of its own.
        fabric.write_policy(f'weight "{busy[0]}" 100\n')
        said = fabric.sweep()
        alone = fabric.spine(busy[0])
        others = {fabric.spine(host) for host in ("H1", "H2", "H3", "H4") if host != busy[0]}
        expect(alone not in others and "pftree:" not in said, alone, others, said)
        fabric.write_policy("")
        fabric.sweep()
        expect(fabric.spine(busy[0]) == fabric.spine(busy[1]), "as before")
    with Learning(conf="perfmgr TRUE\nperfmgr_sweep_time_s 1", pftree_learn="on") as fabric:
        for host in busy:
            fabric.command(f'Flow "H{4 + int(host[1])}" "{host}" message=20000 rate=0.05')
        until = time.monotonic() + PATIENCE
        while fabric.spine(busy[0]) == fabric.spine(busy[1]):
            expect(time.monotonic() < until, "the routes change", fabric.status()["receipts"])
            time.sleep(1)
            fabric.sweep()
        expect(fabric.status()["receipts"]["readings"] > 0, fabric.status())


def main():
    figures()
    figures(vswitch="dynamic", vswitch_socket="")
    hosts_gone()
    lanes()
    queues_over()
    no_tree()
    weights()
    return 0


if __name__ == "__main__":
    sys.exit(main())
