# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs of devices that do not drain are moved from lane to lane by path migration while they carry
checked traffic, both ends at once."""

from test_reroute_traffic import LAST, ROUNDS, checked, counts, load

# The fabric is as busy as a guest: alone.
GUESTS = 2

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


def by_command(fabric, lag):
    """As an administrator would; it has not been tried with pathloop, which is faster."""
    fabric.guest.run(LOOP.format(
        rounds=ROUNDS, one=fabric.hosts["H1"], two=fabric.hosts["H2"], one_lid=fabric.lid("H1"),
        two_lid=fabric.lid("H2"), lag=lag, last=LAST), timeout=600)


def test(bed):
    fabric = bed.fabric("mesh:2", module="sqd=0")
    guest = fabric.guest
    load(fabric)
    checked(fabric, 0, by_command, "-i 0.5 --numbers")
    for dev in fabric.hosts.values():
        found = counts(guest, dev)
        print(f"  {dev}: {found['moved-apm']} by migration, {found['move-again']} tried again",
              flush=True)
        assert found["moved-apm"] > 8, found
    guest.run("rmmod ib_repath")
