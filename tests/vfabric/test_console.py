#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the console says is done: sources with a start and a stop, patterns, faults by hand and at a
time, and the tables that come out. Scripts in virtual time, without a subnet manager."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile

from bed import TOP, expect

LINK = 32.0                                     # Gbit/s of data on 4x QDR


def run(script, topology="mesh:3", *options, ok=True):
    """What a script has printed."""
    found = subprocess.run(
        [f"{TOP}/build/vfabric/vfabric", *options, "-f", "-", topology], text=True,
        input="Tables minhop\n" + script + "\n", capture_output=True, timeout=60)
    expect((found.returncode == 0) == ok, script, found.returncode, found.stdout, found.stderr)
    return found.stdout


def table(text):
    return list(csv.DictReader(text.splitlines()))


def series(text, column):
    return [float(row[column]) for row in table(text)]


def dropped(text):
    return {row["cause"]: int(row["packets"]) for row in table(text)}


def scripted():
    """A cable is pulled at 30 us and put back at 70."""
    cut = """Flow "H1" "H3"
        Measure 10
        At 30 Unlink "S1"[2]
        At 70 ReLink "S1"[2]
        At 70 Tables minhop
        Advance 120
        Results {}"""
    rates = series(run(cut.format("series")), "H1-H3")
    expect(len(rates) == 12 and min(rates[1:3]) > 0.9 * LINK, "before:", rates)
    expect(max(rates[4:7]) == 0, "while it is out:", rates)
    expect(min(rates[8:]) > 0.9 * LINK, "afterwards:", rates)
    lost = dropped(run(cut.format("drops")))
    expect(lost["inactive_port"] > 50 and sum(lost.values()) < 120, "what came meanwhile:", lost)


def sources():
    """Those with times, at a rate, in a permutation."""
    text = run("""Flow "H1" "H3" start=20 stop=50
        Permutation 1 hosts=4-5 rate=8
        Measure 10
        Advance 100
        Results series""", "mesh:3x2")
    flow, second = series(text, "H1-H3"), series(text, "H5-H6")
    expect(max(flow[:2] + flow[6:]) == 0 and min(flow[2:5]) > 0.9 * LINK, "its time:", flow)
    expect(7.6 < sum(second) / len(second) < 8.4, "its rate:", second)
    expect(text.splitlines()[0] == "time_us,total_gbps,H1-H3,H4-H5,H5-H6", "hosts 4 and 5 only", text)


def by_lid():
    """A source that sends to a LID: whoever has it takes that, H3 first, and then H2 in its place."""
    script = """Flow "H1" "H2" dlid=6 rate=8
        Measure 10
        Advance 30
        Baselid "H3"[1] 7
        Advance 30"""
    found = json.loads(run(f"{script}\nResults json"))
    lost = found["drops"]["not_my_lid"]
    found, = found["flows"]
    expect((found["at"], found["places"]) == ("H3", 1) and found["received"] > 5, found)
    expect(found["lost"] == lost > 5, "it is not H3's any more", found, lost)
    found = json.loads(run(f"""{script}
        Unlink "H2"[1]
        Unlink "H3"[1]
        Link "H2"[1] "S3"[3]
        Tables minhop
        Baselid "H2"[1] 6
        Advance 30
        Results json"""))["flows"][0]
    expect((found["at"], found["places"]) == ("H2", 2), "it is H2's", found)


def hot_spot():
    """A fifth of what each host sends goes to one, whose link is full; without it all is even."""
    def to_first(pattern):
        text = run(f"""{pattern} rate=8
            Advance 200
            Measure
            Advance 4000
            Results json""", "xgft:4,4/1,4")
        found = json.loads(text)
        latency = found["latency"]
        expect(0 < latency["p50_ns"] <= latency["p90_ns"] <= latency["p99_ns"] <= latency["max_ns"],
               "percentiles:", latency)
        return found["gbps"], latency
    even, calm = to_first("Uniform")
    hot, slow = to_first('Hotspot "H1" 40')
    expect(even > 0.95 * 16 * 8, "all arrives without it:", even)
    expect(hot < 0.9 * even, "not with it:", hot, even)
    expect(slow["p99_ns"] > 3 * calm["p99_ns"], "packets wait:", slow, calm)


def percentiles():
    """Of 201 packets 160 are not delayed, 30 by 20 us, 10 by 100 us and one by a millisecond."""
    delays = ((1, 0, 16), (3, 20000, 3), (5, 100000, 1), (7, 1000000, 0.1))
    script = "".join(f"""Fault "H{host}"[1] delay={ns}
        Flow "H{host}" "H{host + 1}" rate={gbps}
        """ for host, ns, gbps in delays)
    found = json.loads(run(f"""{script}Advance 2000
        Measure
        Advance 20000
        Results json""", "mesh:1,hosts=8"))
    own = [flow["latency"]["p50_ns"] for flow in found["flows"]]
    latency = found["latency"]
    # A bucket is a sixteenth of a power of two, and a packet takes its time.
    for what, got, (_, ns, _) in zip(
            ("p50", "p90", "p99", "max"), (latency[name + "_ns"] for name in ("p50", "p90", "p99", "max")), delays):
        expect(ns < got < 1.07 * ns + 1000, what, latency)
    for got, (_, ns, _) in zip(own, delays):
        expect(ns < got < ns + 1000, "each flow's own:", own)
    mean = sum(ns * gbps for _, ns, gbps in delays) / sum(gbps for _, _, gbps in delays)
    expect(0.95 * mean < latency["mean_ns"] < 1.05 * mean + 1000, latency, mean)


def tables():
    """CSV, JSON and a file say the same; what waits is seen by VL."""
    where = tempfile.mkdtemp(prefix="vfabric-")
    path = os.path.join(where, "flows.csv")
    script = f"""Flow "H2" "H1" sl=1
        Flow "H3" "H1" sl=1
        Measure 20
        Advance 200
        Results flows {path}
        Results """
    flows = table(run(script + "flows"))
    with open(path, encoding="ascii") as file:
        expect(table(file.read()) == flows, "the file:", flows)
    os.unlink(path)
    os.rmdir(where)
    script = script.replace(f"Results flows {path}\n", "")
    found = json.loads(run(script + "json"))
    for row, flow in zip(flows, found["flows"], strict=True):
        expect(row["from"] == flow["from"] and float(row["gbps"]) == flow["gbps"] and
               int(row["p99_ns"]) == int(flow["latency"]["p99_ns"]), row, flow)
    expect(0.95 * LINK < found["gbps"] < 1.05 * LINK, "the link to H1 is full:", found["gbps"])
    vls = table(run(script + "vls"))
    expect([list(map(int, list(row.values())[1:])) for row in vls] ==
           [sample["vl_blocks"] for sample in found["series"]], "by VL:", vls)
    expect(all(int(row["vl1_blocks"]) > 100 for row in vls), "VL 1 waits:", vls)
    expect(all(int(row["vl0_blocks"]) == 0 for row in vls), "VL 0 does not:", vls)


def faults():
    """A lossy wire, a slow one, one that is late; a switch without power; a reset port."""
    text = run("""Flow "H1" "H3"
        Error "S1"[2] 10
        Measure
        Advance 2000
        Results json""")
    found = json.loads(text)
    sent = found["flows"][0]["sent"]
    expect(0.07 * sent < found["drops"]["lost_on_wire"] < 0.13 * sent, "10 %:", found["drops"], sent)
    rates = {word: json.loads(run(f"""Flow "H1" "H3"
        Fault "S1"[2] {word}
        Advance 100
        Measure
        Advance 1000
        Results json""")) for word in ("slow=400", "delay=5000", "corrupt=0.5")}
    gbps = {word: found["gbps"] for word, found in rates.items()}
    expect(0.23 * LINK < gbps["slow=400"] < 0.27 * LINK, "a quarter:", gbps)
    expect(rates["delay=5000"]["latency"]["p50_ns"] > 6000, rates["delay=5000"]["latency"])
    expect(rates["corrupt=0.5"]["drops"]["corrupt"] > 500, rates["corrupt=0.5"]["drops"])

    text = run("""Flow "H1" "H3"
        Measure 50
        Advance 100
        Down "S2"
        Advance 100
        Up "S2"
        Tables minhop
        Advance 100
        Results series""")
    found = series(text, "H1-H3")
    expect(min(found[:2]) > 0.9 * LINK and max(found[2:4]) < 0.1 * LINK and found[5] > 0.9 * LINK,
           "without power:", found)
    text = run("""Flow "H1" "H3"
        Fault "S1"[2] loss=0.2
        Advance 100
        Dump "S1"
        Results faults
        Clear "S1"[2]
        Results faults
        ReLink "S1"[2]
        Dump "S1" """)
    before, after = text.split('"S1"\tnodeguid')[1:]
    expect(re.search(r"^\[2\].* xmit [1-9]", before, re.M), "it has sent:", text)
    expect(re.search(r"^\[2\].* xmit 0 discards 0$", after, re.M), "and has forgotten it:", text)
    expect(before.count("S1[2],") == 1, "lost there, and not any more:", text)
    text = run("""Clear "S1"[2]
        PerformanceSet "S2"[1] PortCounters.SymbolErrorCounter=5
        Dump "S1"
        ReLink "S1"[2]
        Dump "S1" """)
    before, after = text.split('"S1"\tnodeguid')[1:]
    expect('"S2"' not in before and '[2]\t"S2"[1]' in after, "pulled, then back:", text)


def seeds():
    """The same seed gives the same to the last digit, another one does not."""
    def found(seed):
        return run("""Uniform
            Fault "S1"[2] loss=0.01 jitter=100
            Measure 50
            Advance 300
            Results json""", "mesh:3x2", "-s", str(seed))
    expect(found(3) == found(3), "the same seed")
    expect(found(3) != found(4), "another seed")


def files():
    """Lines from files, also those that a topology brings along; one that runs itself ends."""
    with tempfile.TemporaryDirectory(prefix="vfabric-") as where:
        for name, text in (("cut", 'Unlink "S1"[2]\n'), ("both", f'!{where}/cut\nDump "S2"\n'),
                           ("again", f"Do {where}/again\n"), ("wrong", f"{'#' * 9}\nNonsense\n"),
                           ("net", f'do !{where}/cut\nSwitch 2 "S1"\n[2] "S2"[1]\n[1] "H1"[1]\n\n'
                                   'Switch 2 "S2"\n[2] "H2"[1]\n\nHca 1 "H1"\n\nHca 1 "H2"\n'),
                           ("bad", 'Switch 2 "S1"\n\ndo Nonsense\n')):
            with open(f"{where}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        said = run(f"Do {where}/both")
        expect('"S2"' in said and '"S1"' not in said, "a file in a file:", said)
        said = run('Dump "S2"', f"{where}/net")
        expect('"H2"' in said and '"S1"' not in said, "a topology's own lines:", said)
        said = run('ReLink "S1"[2]\nDump "S2"', f"{where}/net")
        expect('"S1"' in said, "and the cable was there:", said)
        for line, why in (("again", "run each other"), ("wrong", "wrong:2"), ("none", "No such")):
            said = run(f"Do {where}/{line}", ok=False)
            expect(why in said, line, said)
        run("", f"{where}/bad", ok=False)


def refused():
    """A script ends there; what is wrong with a number is said."""
    for line, why in (('Hotspot "H1"', "percent"), ('Hotspot "H1" x', "percent"),
                      ('Hotspot "H1" 101', "percent"), ("Permutation", "how many hosts"),
                      ("Permutation 1x", "how many hosts"), ("Measure x", "microseconds"),
                      ("Measure 10x", "microseconds"), ("Measure -1", "microseconds"),
                      ("Advance 5x", "microseconds"), ("At 5x Stop", "microseconds"),
                      ('Remove "S1"[2]', "one of its VLs"), ('Remove "S1"[2] 99', "one of its VLs"),
                      ('Flow "H1" "H3" sl=x', "sl=x"), ('Flow "H1" "H3" window=8x', "window=8x"),
                      ('Flow "H1" "H3" window=inf', "window=inf"), ("Measure 1e300", "microseconds")):
        said = run(line, ok=False)
        expect(why in said, line, said)
    for line in ("Nonsense", 'Flow "H1" "H9"', "Advance", "At", 'Unlink "S1"[9]',
                 'Flow "H1" "H3" message=16777216 messages=1048576',
                 'Flow "H1" "H3" dlid=6 window=8', 'Fault "S1"[2] loss=2', "Results nothing"):
        run(line, ok=False)


def main():
    for part in (scripted, sources, by_lid, hot_spot, percentiles, tables, faults, seeds, files, refused):
        part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
