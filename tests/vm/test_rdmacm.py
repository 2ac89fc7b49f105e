# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of librdmacm under the shim and the module: they run as without, a suspend names their IDs
and touches nothing, and when the IDs are gone the way is free."""

import re

from move import SHIM, repath
from rdma_cm import rdma_cm_ends

TIMEOUT = 120

PROGRAMS = [
    ("rping -s -a {ip} -C 20 -V -v", "rping -c -a {ip} -C 20 -V -v"),
    ("ucmatose -b {ip} -c 4 -C 50 -S 2000", "ucmatose -s {ip} -c 4 -C 50 -S 2000"),
    ("ucmatose -b {ip} -c 2 -C 20", "ucmatose -s {ip} -c 2 -C 20"),
    ("ib_send_bw -R -d rxe0 -n 100 -s 4096 -F", "ib_send_bw -R -d rxe0 -n 100 -s 4096 -F {ip}"),
    ("ib_write_bw -R -d rxe0 -n 100 -s 4096 -q 2 -F",
     "ib_write_bw -R -d rxe0 -n 100 -s 4096 -q 2 -F {ip}"),
]


def words(text):
    """What must be equal: not figures, numbers of queue pairs, or how wide they are."""
    text = re.sub(r"0x[0-9a-f]+|[-0-9.]+", "#", text)
    # Who of the two ends of rping sees the other leave is a matter of chance, and whether perftest finds
    # that the clock agrees with itself one of how busy the machine is.
    chance = ("DISCONNECT EVENT", "Correlation coefficient", "Conflicting CPU frequency")
    return sorted(" ".join(line.split()) for line in text.splitlines()
                  if line.split() and not any(part in line for part in chance))


def outputs(server_guest, client_guest, commands, env):
    server, client = (command.format(ip="10.0.0.1") for command in commands)
    return rdma_cm_ends(server_guest, client_guest, f"env {env} {server}", f"env {env} {client}")


def refusal(guest, program):
    """A suspend is refused and names the IDs of @program; everything is as before."""
    status, _, text = repath(guest, "suspend rxe0")
    assert status, text
    assert re.search(rf"PID \d+ \({program}\): \d+ IDs? of librdmacm", text), text
    assert "everything is as before" in text, text


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    for commands in PROGRAMS:
        plain, under = (outputs(a, b, commands, env) for env in ("", SHIM))
        for without, with_it in zip(plain, under):
            assert words(without) == words(with_it), \
                f"{commands}:\n{without}\n--- with the shim:\n{with_it}"

    # Listening, and connected at each end.
    server = a.start(f"exec env {SHIM} rping -s -a 10.0.0.1 -V")
    a.wait_until("repath process | grep -q rping || rdma res show cm_id | grep -q rping")
    a.wait_until("rdma res show cm_id | grep -q LISTEN")
    client = b.start(f"exec env {SHIM} rping -c -a 10.0.0.1 -V -v")
    client.wait_for("rdma-ping-5:")
    for guest in (a, b):
        refusal(guest, "rping")
    client.wait_for(f"rdma-ping-{client.output().count('ping data') + 20}:")
    client.kill(2)
    for job in (client, server):
        job.wait(60, check=False)

    # Nobody is left: the device can go.
    for guest in (a, b):
        status, op, text = repath(guest, "suspend rxe0")
        assert status == 0 and op["state"] == "suspended", text
        status, op, text = repath(guest, f"resume {op['op']}")
        assert status == 0 and op["state"] == "resumed", text
