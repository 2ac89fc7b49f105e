# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Both ends of the same connections are moved at the same moment, three guests in a ring all at once,
and one while the other is away: each HCA is exchanged, and the three are live-migrated. One of two keeps its address, or an administrator
tells one of them where the other one is now."""

import threading
import time

from datagrams import Words
from move import SHIM, moving, repath
from traffic import Pair

TIMEOUT = 600


def at_once(*actions):
    """All of them side by side; the first exception is raised. What each returned."""
    results, errors = {}, []

    def call(number, action):
        try:
            results[number] = action()
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=call, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(actions))]


def new_device(mover, guest, keep):
    """Another NIC and other numbers; the address goes along with @keep, as a vGUID or an IP does."""
    mover.moves += 1
    ip = guest.last_ip if keep else f"10.0.0.{guest.number + 10 * mover.moves}"
    nic = guest.plug("rdma", ip=ip)
    guest.rxe_add("rxe0", nic)
    mover.burn(guest)


def release(mover, guest):
    guest.last_ip = guest.nics[0].ip
    mover.release(guest)


def take_all(mover, guests):
    """All guests lose their HCAs, at once: the operations."""
    ops = at_once(*(lambda g=g: mover.suspend(g, timeout=60) for g in guests))
    mover.note_inflight(*ops)
    for guest in guests:
        mover.release(guest)
    return ops


def resume_all(mover, guests, ops, timeout=60):
    at_once(*(lambda g=g, op=op: mover.resume(g, op, timeout=timeout) for g, op in zip(guests, ops)))


def swap_all(mover, guests, keeping, migrate=False):
    """Every guest gets another HCA, and @migrate: another host; nobody begins to resume before all have lost theirs."""
    for guest in guests:
        guest.last_ip = guest.nics[0].ip
    ops = take_all(mover, guests)
    if migrate:
        at_once(*(guest.migrate for guest in guests))
    for guest in guests:
        new_device(mover, guest, guest in keeping)
    resume_all(mover, guests, ops)


def tell(guest, device, was, now):
    status, found, text = repath(guest, f"connection moved {device} dgid {was} to {now}")
    assert status == 0 and found["connections"] == 3, (status, text)
    return found["senders"]


def new_places(mover, guests, wrong=None, early=False):
    """Every guest gets another address, and each finds the next one when it is told where that is; @early: before it
    is resumed. @wrong: told at first, the place of a guest whose module knows no such connection."""
    was = [guest.nics[0].ip for guest in guests]
    ops = take_all(mover, guests)
    for guest in guests:
        mover.new_device(guest)
    now = [guest.nics[0].ip for guest in guests]
    resumes = [(guest, f"repath resume {op['op']} on {mover.device(guest)} timeout 60 nowait")
               for guest, op in zip(guests, ops)]
    if not early:
        for guest, command in resumes:
            guest.run(command)
    for number, guest in enumerate(guests if len(guests) > 2 else guests[:1]):
        device, peer = mover.device(guest), (number + 1) % len(guests)
        status, _, text = repath(guest, f"connection moved {device} dgid 10.0.0.250 to {now[peer]}")
        assert status == 1 and "has its peer there" in text, (status, text)
        at = was[peer]
        if wrong:
            tell(guest, device, at, wrong.nics[0].ip)
            time.sleep(1)       # it is said there, and refused
            at = wrong.nics[0].ip
        tell(guest, device, at, now[peer])
        tell(guest, device, at, now[peer])      # who is not sure says it again
    if early:
        for guest, command in resumes:
            guest.run(command)
    for guest, op in zip(guests, ops):
        guest.wait_until(f"repath -j status {op['op']} | grep -q resumed", 60)
    return was, now


def all_new(mover, guests):
    a, b, c = guests
    words = Words(a, b, 1)      # a's sends datagrams to b's, which has to be told where a's is
    words.first()
    was, now = new_places(mover, (a, b), wrong=c)
    assert tell(b, mover.device(b), was[0], now[0]) == 1
    words.reach_all()
    words.end()
    new_places(mover, guests, early=True)


def test(bed):
    guests = bed.guests("a", "b", "c")
    a, b, c = guests
    with moving(*guests) as mover:
        pairs = [Pair(server, client, "-q 3 -n 8 -b -k 4", env=SHIM, port=18800 + number)
                 for number, (server, client) in enumerate(((a, b), (b, c), (c, a)))]
        for pair in pairs:
            pair.wait_running()
        for movers, keeping in (((a, b), (a, b)), ((a, b), (b,)), (guests, guests)):
            swap_all(mover, movers, keeping, migrate=movers is guests)
            for pair in pairs:
                pair.wait_progress()

        if not bed.infiniband:      # there it is vhca_move_both
            all_new(mover, guests)
            for pair in pairs:
                pair.wait_progress()

        # One while the other is away; who left first comes back first, and last; the second time
        # the first one back waits longer than it would for a peer that is not on the move.
        for first_back in (a, b):
            op = {a: mover.suspend(a), b: mover.suspend(b)}
            for guest in (a, b):
                release(mover, guest)
            last_back = b if first_back is a else a
            new_device(mover, first_back, True)
            status, found, text = repath(first_back,
                                         f"resume {op[first_back]['op']} on rxe0 timeout 2")
            assert found["state"] == "parked", text
            if first_back is b:
                time.sleep(33)
            new_device(mover, last_back, True)
            mover.resume(last_back, op[last_back])
            first_back.wait_until(f"repath -j status {op[first_back]['op']} | grep -q resumed")
            for pair in pairs:
                pair.wait_progress()
        for pair in pairs:
            pair.finish()
