# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Queue pairs of devices that do not drain are moved from lane to lane by path migration while they carry
checked traffic, both ends at once."""

from test_reroute_traffic import checked, counts, load

# The fabric is as busy as a guest: alone.
GUESTS = 2


def test(bed):
    fabric = bed.fabric("mesh:2", module="sqd=0")
    guest = fabric.guest
    load(fabric)
    checked(fabric, 0)
    for dev in fabric.hosts.values():
        found = counts(guest, dev)
        print(f"  {dev}: {found['moved-apm']} by migration, {found['move-again']} tried again",
              flush=True)
        assert found["moved-apm"] > 8, found
    guest.run("rmmod ib_repath")
