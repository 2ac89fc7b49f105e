# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The queue pairs of ibv_rc_pingpong are tracked with PID and path, found by every filter, and
gone with the process."""

import tracking


def test(bed):
    a, b = bed.guests("a", "b")
    a.load_repath()
    b.load_repath()
    # Sleeping on events, and for so many rounds that it does not end by itself.
    server = a.start("exec stdbuf -oL ibv_rc_pingpong -e -g 1 -n 10000000")
    server.wait_for("local address")
    client = b.start("exec stdbuf -oL ibv_rc_pingpong -e -g 1 -n 10000000 10.0.0.1")
    client.wait_for("remote address")
    for guest in (a, b):
        guest.wait_until("repath qp state RTS | grep -q 'type RC'", 20)

    (at_a,) = tracking.user_qps(a).values()
    (at_b,) = tracking.user_qps(b).values()
    for mine, others, guest, peer in ((at_a, at_b, a, "10.0.0.2"), (at_b, at_a, b, "10.0.0.1")):
        assert mine["comm"] == "ibv_rc_pingpong" and mine["type"] == "RC", mine
        assert mine["state"] == "RTS" and mine["port"] == 1, mine
        assert mine["dqpn"] == others["qpn"], (mine, others)
        assert mine["dgid"] == tracking.ipv4_gid(peer) and mine["sgid-index"] == 1, mine
        assert mine["mtu"] == 1024 and mine["dlid"] == 0, mine
        assert int(guest.run("pidof ibv_rc_pingpong")) == mine["pid"]
        tracking.compare_with_kernel(guest)

    key = ("rxe0", at_a["qpn"])
    for words in (f"pid {at_a['pid']}", f"qpn {at_a['qpn']}", "dgid 10.0.0.2", "state RTS port 1",
                  f"dev rxe0 pid {at_a['pid']} dgid 10.0.0.2 state RTS"):
        assert key in tracking.qps(a, words), words
    for words in (f"pid {at_a['pid'] + 1}", "pid 1", f"qpn {at_a['qpn'] + 1}", "dgid 10.0.0.9",
                  "state INIT", "port 2", f"pid {at_a['pid']} state ERR", "dlid 5"):
        assert key not in tracking.qps(a, words), words
    text = a.run("repath qp dev rxe9", check=False)
    assert "no RDMA device of this name" in text, text
    assert a.status("repath qp dev rxe9") != 0

    (process,) = tracking.repath(a, "process")
    assert (process["pid"], process["qps"], process["contexts"]) == (at_a["pid"], 1, 1), process
    assert tracking.device(a)["contexts"] == 1

    client.kill(9)
    server.kill(9)
    for guest in (a, b):
        tracking.wait_qps(guest, 0)
        guest.wait_until("! repath process | grep -q pid")
        tracking.compare_with_kernel(guest)
        assert tracking.device(guest)["contexts"] == 0
