# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""RC over wires that lose, double, delay and disorder packets: every opcode, nothing wrong.

LOSS_SECONDS=n runs so long, with messages up to LOSS_SIZE=n bytes, and LOSS_SEED=n is vfabric's: for a
count of messages that is worth a table.
"""

import json
import os

# The fabric is as busy as a guest: alone.
GUESTS = 2

SECONDS = int(os.environ.get("LOSS_SECONDS") or 10)
SIZE = int(os.environ.get("LOSS_SIZE") or 16384)
SEED = int(os.environ.get("LOSS_SEED") or 1)
TIMEOUT = 290 + SECONDS

# In ns. Eight packets of the largest size take 8250: so far may one that is late fall behind.
FAULT = "loss=0.01 duplicate=0.01 reorder=0.01 window=8250 delay=20000 jitter=1000"
COUNTERS = "rc_resends rc_sequence_naks rc_duplicates rc_gaps".split()


def test(bed):
    fabric = bed.fabric("mesh:2", options=f"-s {SEED}")
    a = fabric.guest
    for port in ('"S1"[2]', '"S2"[1]'):
        fabric.command(f"Fault {port} {FAULT}")
    server = a.start(f"rcheck -d vhca1 -T {SECONDS + 50}")
    said = a.run(f"sleep 0.5; rcheck -d vhca2 -m all -q 8 -n 16 --vary -s {SIZE} -b -T {SECONDS} "
                 "--timeout 13 127.0.0.1", timeout=SECONDS + 80)
    assert '"ok":true' in said, said
    assert '"ok":true' in server.wait(60)
    ports = "/sys/class/infiniband/vhca*/ports/1/vhca"
    counted = {name: sum(int(n) for n in a.run(f"cat {ports}/{name}").split())
               for name in COUNTERS}
    print(f"  {json.loads(said.splitlines()[-1])['msgs']} messages, {counted}", flush=True)
    for name, count in counted.items():
        assert count, f"{name}: it did not happen, so it proves nothing"
