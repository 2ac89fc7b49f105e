# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs are moved from lane to lane again and again while they carry checked traffic, some of the
paths told beforehand or taken away first; nothing is lost, doubled or out of order, and each is on the
last lane at the end.

STRESS_ROUNDS=n plays 10 * n changes of the path both ways (60).
"""

import json
import os

from traffic import Pair

# The fabric is as busy as a guest: alone.
GUESTS = 2

TIMEOUT = 1500
ROUNDS = 5 * int(os.environ.get("STRESS_ROUNDS") or 6)
LAST = 5

# Lanes change at both ends, with no regard to whether the change before has come to an end.
LOOP = """
i=0
while [ $i -lt {rounds} ]; do
    i=$((i + 1))
    case $((i % 5)) in
    1) repath path prepare {one}/1 dlid {two_lid} sl $((i % 7)) ;;
    3) repath path hold {two}/1 dlid {one_lid} ;;
    esac
    repath path set {one}/1 dlid {two_lid} sl $((i % 7))
    repath path set {two}/1 dlid {one_lid} sl $(((i + {lag}) % 7))
    sleep 0.0$((i % 5))
done
repath path set {one}/1 dlid {two_lid} sl {last}
repath path set {two}/1 dlid {one_lid} sl {last}
"""


def counts(guest, dev):
    found = json.loads(guest.run(f"repath -j stats dev {dev} all"))
    return next(one["counts"] for one in found if one.get("dev") == dev)


def rounds(fabric, lag):
    one, two = fabric.hosts["H1"], fabric.hosts["H2"]
    guest = fabric.guest
    guest.run(LOOP.format(rounds=ROUNDS, one=one, two=two, one_lid=fabric.lid("H1"),
                          two_lid=fabric.lid("H2"), lag=lag, last=LAST), timeout=600)
    # All that are connected: the programs' own.
    try:
        for dev in one, two:
            guest.wait_until(f"repath qp dev {dev} | grep -q 'type [RU]C .* moved-by' && "
                             f"! repath qp dev {dev} | grep 'type [RU]C' | grep -v ' sl {LAST} '",
                             timeout=60)
    except TimeoutError:
        print(guest.run("repath qp; repath stats", check=False), flush=True)
        raise


def load(fabric):
    """Paths are set here alone: who subscribes anew asks the subnet manager, which has only lane 0."""
    fabric.guest.load_repath()
    for dev in fabric.hosts.values():
        fabric.guest.run(f"repath path listen {dev} off")


def checked(fabric, lag):
    guest = fabric.guest
    pair = Pair(guest, guest, "-q 4 -n 8 -b -k 4 -m all --vary -s 8000 -r 100 -d " + fabric.hosts["H2"],
                server_options="-d " + fabric.hosts["H1"])
    pair.wait_running()
    rounds(fabric, lag)
    pair.wait_progress(50)
    client, _ = pair.finish()
    print(f"  rcheck: gap {client['max_gap_ms']} ms, {client['msgs']} messages", flush=True)


def test(bed):
    fabric = bed.fabric("mesh:2")
    guest = fabric.guest
    load(fabric)
    checked(fabric, 0)
    checked(fabric, 3)
    for dev in fabric.hosts.values():
        found = counts(guest, dev)
        print(f"  {dev}: {found['move']} to be moved, {found['moved-sqd']} by SQD, "
              f"{found['move-again']} tried again", flush=True)
        assert found["moved-sqd"] + found["moved-apm"] > 40, found
        assert not found["move-failed"] and not found["move-lost"], found
        assert not found["move-no-way"] and not found["probe-missed"], found
    guest.run("rmmod ib_repath")
