# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tables distributed in the ways of sm/plan.h, figures 2 to 4 of "Distributing InfiniBand Forwarding
Tables": every switch of random networks of 4-port switches is added and removed in turn while hosts send
a quarter of what saturates the network. tests/sm/distribute.c, virtual time; what an SMP takes there
(10 us of the SM, 20 us of the agent, 0.5 us a hop, four on their way) is ours, the paper does not say.

The paper's 1024 entries of each table are sent whole, and again as OpenSM does it, only the blocks that
differ. And by stock OpenSM with the plugin, for 8 and 16 switches, in the time of the wall, while all hosts send to
all others: every switch but OpenSM's own. DISTRIBUTE_SM="8 16 24 32" are more.

DISTRIBUTE_PARTS="tables detail deadlocks opensm" are all parts; tests/bench/plot draws "detail"."""

import json
import os
import statistics
import subprocess

import image
from fabric_clocks import managed

BED = False
SEED = "1"
LOAD = "25"
SIZES = (8, 16, 24, 32)
SM_SIZES = [int(n) for n in os.environ.get("DISTRIBUTE_SM", "8 16").split()]
PACKETS = 20000     # a second, between all hosts, while OpenSM distributes tables
WAIT_MS = 100       # of the plugin, for packets on their way
WAYS = ("static", "ports", "turns", "dynamic")
SEEDS = range(1, 13)
PROGRAM = os.path.join(image.TOP, "build", "tests", "sm", "distribute")


def run(*arguments):
    text = subprocess.run([PROGRAM, *map(str, arguments)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in text.splitlines()]


def detail(record):
    """Figure 4: a switch is added to 24; what is lost and carried while tables are distributed."""
    for how in WAYS:
        *samples, total = run(24, SEED, "add", 12, how, LOAD, 1024, 100)
        steady = statistics.mean(s["gbps"] for s in samples if s["us"] < 2000)
        lowest = min(s["gbps"] for s in samples if s["us"] > 2000)
        record(f"24 switches, one added, {how}: lowest throughput of 100 us, Gbit/s, beside before",
               lowest, steady, smps=total["smps"], us=total["us"], lost=total["lost"],
               how=how, curve=[[s["us"], s["gbps"], s["lost"]] for s in samples])


def deadlocks(record):
    """At full load: in how many changes packets wait for each other for good. Four switches of each network."""
    for size in (12, 16, 24):
        changes = [(seed, change, switch) for seed in SEEDS for change in ("add", "remove")
                   for switch in range(1, size, size // 4)]
        for how in WAYS:
            found = [change for change in changes if run(size, *change, how, 0)[-1]["deadlock"] > 0]
            record(f"{size} switches, full load, {how}: changes that deadlock for good", len(found),
                   len(changes), "none" if how != "dynamic" else None, 0.0 if how != "dynamic" else None,
                   found=found)


def talk(fabric, size):
    """All hosts to all others, in real time, Poisson: 256 bytes a packet."""
    rate = PACKETS * 256 * 8 / 1e9 / (size * (size - 1))
    for a in range(1, size + 1):
        for b in range(1, size + 1):
            if a != b:
                fabric.command(f'Flow "H{a}" "H{b}" message=226 rate={rate:.9f} poisson=1')


def lost(fabric, without):
    """Packets so far of those that hosts send to each other, but for one host: (lost, sent)."""
    flows = [flow for flow in json.loads(fabric.command("Results json"))["flows"]
             if f"H{without}" not in (flow["from"], flow["to"])]
    return sum(flow["lost"] for flow in flows), sum(flow["sent"] for flow in flows)


def by_opensm(size, how):
    """Each switch goes and comes back: by change, SMPs and microseconds of each distribution, and of packets between
    the other hosts how many are lost from the change on."""
    sm = managed()
    found = {"remove": [], "add": []}
    with sm.Managed(f"random:{size},degree=3,hosts=1,seed={SEED}", "-R updown,no_fallback -Q", distribute=how,
                    distribute_wait=WAIT_MS, vfabric=("-r",)) as fabric:
        fabric.judged = False
        sm.until(lambda: fabric.reached(size), "all are reached")
        talk(fabric, size)
        for switch in range(2, size + 1):
            for change, word, hosts in (("remove", "Down", size - 1), ("add", "Up", size)):
                before, (lost_before, sent_before) = fabric.status()["distribute"], lost(fabric, switch)
                fabric.command(f'{word} "S{switch}"')
                sm.until(lambda: fabric.status()["distribute"]["distributions"] > before["distributions"] and
                         fabric.reached(hosts), how, word, switch)
                after, (lost_after, sent_after) = fabric.status()["distribute"], lost(fabric, switch)
                if after["refused"]:
                    raise RuntimeError(f"{size} switches, {how}: {after}")
                found[change].append({"smps": after["smps"] - before["smps"], "us": after["last_us"],
                                      "waits": after["waits"] - before["waits"],
                                      "failed": after["failed"] - before["failed"],
                                      "lost": lost_after - lost_before, "sent": sent_after - sent_before,
                                      "distributions": after["distributions"] - before["distributions"]})
    return found


def opensm(record):
    for size in SM_SIZES:
        for how in reversed(WAYS):
            for change, rows in by_opensm(size, how).items():
                model = [run(size, SEED, change, switch, how, LOAD, 0)[-1] for switch in range(1, size)]
                mean = {key: round(statistics.mean(row[key] for row in rows), 2) for key in rows[0]}
                record(f"{size} switches, {change}, OpenSM, {how}: SMPs beside the model's", mean["smps"],
                       statistics.mean(row["smps"] for row in model), us=mean["us"], waits=mean["waits"],
                       failed=mean["failed"], distributions=mean["distributions"], lost=mean["lost"],
                       sent=mean["sent"], model_lost=statistics.mean(row["lost"] for row in model),
                       model_us=statistics.mean(row["us"] for row in model))


def tables(record):
    for entries, text in ((1024, "whole tables"), (0, "blocks that differ")):
        for size in SIZES:
            for change in ("add", "remove"):
                plain = None
                for how in reversed(WAYS):
                    rows = [run(size, SEED, change, switch, how, LOAD, entries)[-1]
                            for switch in range(size)]
                    mean = {key: statistics.mean(row.get(key, 0) for row in rows)
                            for key in ("smps", "us", "lost", "lost_before", "discard", "restore",
                                        "waits", "vl_mapping", "inactive_port", "no_route", "looping")}
                    plain = plain or mean
                    record(f"{size} switches, {change}, {text}, {how}: SMPs beside dynamic",
                           mean["smps"], plain["smps"],
                           deadlocks=sum(row["deadlock"] > 0 for row in rows),
                           **{key: round(value, 1) for key, value in mean.items()})


def bench(record):
    record.parts(tables, detail, deadlocks, opensm)
