# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a guest's module tracks, beside what the kernel's own tables say."""

import json
import re


def repath(guest, words):
    """The objects that `repath -j @words` shows."""
    return json.loads(guest.run(f"repath -j {words}"))


def qps(guest, words=""):
    """Tracked queue pairs, {(device, QPN): object}."""
    return {(qp["dev"], qp["qpn"]): qp for qp in repath(guest, "qp " + words)}


def user_qps(guest, words=""):
    """Those of processes."""
    return {key: qp for key, qp in qps(guest, words).items() if "pid" in qp}


def rdma_qps(guest):
    """The kernel's own table, as qps() would have it, with what both know."""
    rows = json.loads(guest.run("rdma -j res show qp"))
    return {(row["ifname"], row["lqpn"]): row for row in rows}


def device(guest, name="rxe0"):
    """One device as the module sees it."""
    found, = repath(guest, f"device dev {name}")
    return found


def compare_with_kernel(guest):
    """Both tables have the same queue pairs with the same owners, types, states and peers."""
    mine, kernels = qps(guest), rdma_qps(guest)
    assert set(mine) == set(kernels), (mine, kernels)
    for key, row in kernels.items():
        qp = mine[key]
        assert (qp["type"], qp["state"]) == (row["type"], row["state"]), (qp, row)
        assert qp.get("pid") == row.get("pid"), (qp, row)
        assert qp["comm"] == row["comm"].strip("[]"), (qp, row)
        if row.get("rqpn"):
            assert qp["dqpn"] == row["rqpn"], (qp, row)
    return mine


def ipv4_gid(address):
    """A GID of RoCE as the command writes it."""
    return "::ffff:" + address


def hold(guest, options):
    """Start holdqp; returns (job, its JSON)."""
    job = guest.start("exec holdqp " + options)
    job.wait_for(r"\}\n")
    return job, json.loads(job.output())


def wait_qps(guest, count, timeout=30):
    """Wait until that many queue pairs of processes are tracked."""
    guest.wait_until(f'repath -j qp >/run/qps.now && [ "$(grep -o \'"pid"\' /run/qps.now | wc -l)" = {count} ]', timeout)


def missed_probes(guest):
    """Calls that the module's hooks have not seen so far; its watch counts them once a second."""
    guest.run("sleep 1.5")
    return int(guest.run("cat /sys/module/ib_repath/parameters/missed_probes"))


def events(text, kind, action):
    """Lines of `repath monitor` of one kind."""
    return [line for line in text.splitlines() if re.match(f"{kind} {action} ", line)]
