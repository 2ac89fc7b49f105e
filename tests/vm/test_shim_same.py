# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Unmodified programs do the same under libibrepath.so as without it, on a stock kernel without the
module: old and new post calls, polling and events, every transport, SRQ, rdma_cm, and what is
not movable."""

import re

from move import LIBRARY
from rdma_cm import rdma_cm_ends

SHIM = f"LD_PRELOAD={LIBRARY}"
TIMEOUT = 900

PINGPONG = [
    "ibv_rc_pingpong -g 1 -n 50",
    "ibv_rc_pingpong -g 1 -n 50 -e",
    "ibv_rc_pingpong -g 1 -n 50 -N",
    "ibv_rc_pingpong -g 1 -n 50 -N -e -c",
    "ibv_uc_pingpong -g 1 -n 50 -e",
    "ibv_ud_pingpong -g 1 -n 50 -s 512 -e",
    "ibv_srq_pingpong -g 1 -n 50 -q 4 -e",
]

PERFTEST = [
    "ib_write_bw -n 100 -s 4096",
    "ib_write_bw -n 100 -s 4096 -q 4",
    "ib_write_bw -n 100 -s 64 --inline_size 64 --use_old_post_send",
    "ib_write_bw -n 100 -s 4096 -b -Q 4",
    "ib_send_bw -n 100 -s 4096",
    "ib_send_bw -n 100 -s 4096 -e",
    "ib_send_bw -n 100 -s 4096 --use_old_post_send -l 4",
    "ib_send_bw -n 100 -s 4096 --use-srq -q 2",
    "ib_send_bw -n 100 -s 1024 -c UD",
    "ib_send_bw -n 100 -s 4096 -c UC",
    "ib_send_bw -n 100 -s 4096 -R",
    "ib_read_bw -n 100 -s 4096",
    "ib_read_bw -n 100 -s 4096 -e",
    "ib_atomic_bw -n 100",
    "ib_atomic_bw -n 100 -A CMP_AND_SWAP -e",
    "ib_write_lat -n 100 -s 64",
    "ib_write_lat -n 100 -s 64 -I 64",
    # Both CQs tell of themselves by one channel, and it takes any event for one of the CQ that it
    # waits for. The completion of a send whose ACK comes after the answer stays in the CQ, which by
    # default has room for one: the next is lost, and it waits for ever.
    "ib_send_lat -n 100 -s 64 -e -t 100 -Q 1",
    "ib_read_lat -n 100 -s 64",
    "ib_read_lat -n 100 -s 64 -e",
    "ib_atomic_lat -n 100",
]


def shape(text):
    """What must be equal: the words of a report, not its figures."""
    text = re.sub(r"0x[0-9a-f]+|[0-9.]+", "#", text)
    lines = [re.sub(r"[ \t#-]+", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not re.search(
        r"local address|remote address|GID|CPU freq|Conflicting|Correlation",
        line)]


def ends(server, client, command, env, port_wait):
    jobs = [server.start(f"exec env {env} {command}")]
    server.wait_until(f"netstat -ltn | grep -q '{port_wait}' || ! pidof {command.split()[0]}", 20)
    assert jobs[0].running, f"{command} ended: {jobs[0].output()}"
    jobs.append(client.start(f"exec env {env} {command} {server.mgmt_ip}"))
    for job in reversed(jobs):
        job.wait(90)
    return [job.output() for job in jobs]


def test(bed):
    a, b = bed.guests("a", "b")
    plain = a.run("ibv_devinfo -v; ibv_devices")
    shim = a.run(f"export {SHIM}; ibv_devinfo -v; ibv_devices")
    assert plain == shim, f"{plain}\n--- with the shim:\n{shim}"
    for command in PINGPONG:
        compare(a, b, command, ":18515")
    for command in PERFTEST:
        cm = "" if " -R" in command else " -x 1"
        compare(a, b, f"{command} -d rxe0{cm} -F", ":18515")
    for env in ("", SHIM):
        server = a.start(f"exec env {env} rping -s -a 10.0.0.1 -C 20 -V")
        b.wait_until(f"env {env} rping -c -a 10.0.0.1 -C 20 -V", 30)
        server.wait(30)
    # Switched off it is not there.
    compare(a, b, PINGPONG[0], ":18515", SHIM + " REPATH_DISABLE=1")


def compare(server, client, command, port, env=SHIM):
    if " -R" in command:        # bound to the RDMA address, and no TCP socket to wait for
        plain, shim = (cm_ends(server, client, command, e) for e in ("", env))
    else:
        plain, shim = (ends(server, client, command, e, port) for e in ("", env))
    for without, under in zip(plain, shim):
        assert shape(without) == shape(under), \
            f"{command}:\n{without}\n--- with the shim:\n{under}"


def cm_ends(server, client, command, env):
    return rdma_cm_ends(server, client, f"env {env} {command}", f"env {env} {command} 10.0.0.1")
