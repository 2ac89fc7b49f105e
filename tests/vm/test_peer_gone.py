# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A connection whose other end has died without a word is known to be gone, to the module and to the
process that has the other end: it does not stand in the way of a later suspend. Nor does one whose end nobody has
told of, since its module was not loaded when it died: its host is asked, and has no such queue pair."""

from dialog import Dialog

TIMEOUT = 180


def pair(a, b, name):
    near, far = Dialog(a, f"near-{name}"), Dialog(b, f"far-{name}")
    qp, far_qp = near.qp(), far.qp()
    assert near.connect(qp, far.address, far_qp) == 0 == far.connect(far_qp, near.address, qp)
    return near, far, qp


def loaded_anew(guest, meanwhile=lambda: None):
    guest.run("rmmod ib_repath")
    meanwhile()
    guest.load_repath()


def unheard(a, b):
    """One dies while its host has no module; and a module that is loaded anew has never known one of another."""
    kept, lost, reloaded = (pair(a, b, name) for name in ("kept", "lost", "reloaded"))
    a.wait_until("[ $(repath connection | grep -c 'state ready') = 3 ]")
    loaded_anew(b, lost[1].kill)
    # The process there has another number since: both ends have to be READY before it is moved.
    a.wait_until("repath suspend rxe0 dry-run && repath connection | grep -q 'state no-peer'")
    b.wait_until("[ $(repath connection | grep -c 'state ready') = 2 ]")
    b.run("rmmod ib_repath")
    reloaded[1].kill()
    loaded_anew(a)
    b.load_repath()
    a.wait_until("repath suspend rxe0 dry-run && [ $(repath connection | grep -c 'state no-peer') = 2 ]")
    a.run("repath suspend rxe0 && repath resume rxe0")
    assert kept[0].write(kept[2], kept[1].ask("key"), "kept") == 0
    for near, _, qp in (lost, reloaded):
        assert near.write(qp, (0, 1, 4096), "lost") != 0
    for near, far, _ in (kept, lost, reloaded):
        near.kill()
    kept[1].kill()


def test(bed):
    a, b = bed.guests("a", "b")
    for guest in (a, b):
        guest.load_repath()
    server = a.start("fakeshim -q 100")
    client = b.start(f"fakeshim -q 100 {a.mgmt_ip}")
    for job in (server, client):
        job.wait_for("ready 100", 60)
    assert "gone" not in a.run("repath connection")
    client.kill(9)
    client.wait(30, check=False)
    a.wait_until("[ $(repath connection | grep -c gone) = 100 ]", 30)
    assert server.running
    server.wait_for("gone", 10)
    server.kill(9)
    server.wait(30, check=False)
    unheard(a, b)
