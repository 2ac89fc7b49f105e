# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""More than the wire can carry: three pairs of HCAs, each with eight queue pairs of 64 KiB messages both
ways, over one slow cable. Credits hold them back: nothing is lost, sent again or timed out, neither
in the HCAs nor between them and vfabric."""

import re

from fabric import LANE_DEPTH

# The fabric is as busy as a guest: alone.
GUESTS = 2

SECONDS = 10
# Of a wire that an emulated processor fills: 32 Mbit/s.
SLOW = 100000
TRANSPORT = "rc_resends rc_timeouts rc_implied_naks rc_sequence_naks rc_duplicates rc_gaps dropped wire_lost"
PORT = "port_xmit_discards port_rcv_errors"


def counted(a, names, where):
    return {name: sum(map(int, a.run(f"cat /sys/class/infiniband/*/ports/1/{where}/{name}").split()))
            for name in names.split()}


def losses(a, fabric):
    """What is to be 0: {name: of all ports}."""
    found = counted(a, TRANSPORT, "vhca") | counted(a, PORT, "counters")
    lines = fabric.command("Results drops").splitlines()[1:]
    found.update((name, int(n)) for name, n in (line.split(",") for line in lines))
    return found


def test(bed):
    fabric = bed.fabric("mesh:2,hosts=3", memory=768)
    a = fabric.guest
    for port in ('"S1"[2]', '"S2"[1]'):
        fabric.command(f"Fault {port} slow={SLOW}")
    # Before there is a load OpenSM may look for what is not there.
    before = losses(a, fabric)
    waited = counted(a, "port_xmit_wait", "counters")["port_xmit_wait"]
    servers = [a.start(f"rcheck -d vhca{n + 3} --timeout 22 -T {SECONDS + 60} -p {18600 + n}") for n in (1, 2, 3)]
    clients = [a.start(f"sleep 1; rcheck -d vhca{n} -m send,write,read -q 8 -n 4 -s 65536 -b --timeout 22 "
                       f"-T {SECONDS} -p {18600 + n} 127.0.0.1") for n in (1, 2, 3)]
    ends = [job.wait(SECONDS + 100) for job in clients] + [job.wait(100) for job in servers]
    for said in ends:
        assert '"ok":true' in said, said
    messages = sum(int(n) for said in ends for n in re.findall(r'"msgs":(\d+)', said.splitlines()[-1]))
    after = losses(a, fabric)
    waited = counted(a, "port_xmit_wait", "counters")["port_xmit_wait"] - waited
    lost = {name: n - before[name] for name, n in after.items() if n != before[name]}
    most = max(map(int, a.run("cat /sys/class/infiniband/*/ports/1/vhca/lane_most").split()))
    print(f"  {messages} messages, {waited} ticks without credits, {most} packets in a lane", flush=True)
    assert waited, "nobody had to wait, so it proves nothing"
    assert not lost, lost
    assert 0 < most <= LANE_DEPTH, f"packets in a lane: {most}"
    # Since they were loaded, too.
    assert not after["wire_lost"] and not after["datagrams_from_hca"], after
