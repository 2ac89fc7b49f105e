# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Stages at which messages are said but in a plain move: LONG=1 disturbs them there, too."""

from cells import MOVING, Cells, give_up, push_key
from dialog import Dialog
from test_move_both_guests import at_once
from trouble import Case, start, wait_final

DRY, BOTH, BACK = "dry run", "both ends move", "given up"
BEFORE_GATE, LEFT, MOVER = ("given up before the peer's gate closes",
                            "given up when the peer has left RTS", "given up, the peer moves itself")
LOADED, ASKED = "the module is loaded anew", "a suspend asks again"
AWAY, JOINED, AHEAD = "the receiver is away", "connecting to one that has moved", "ahead of INFO"
RUNNING, DRAINING, RESUMING, PEER, DESTROYED = (
    "killed while running", "the peer killed while queues empty", "killed while resumed",
    "the peer killed suspended", "the peer's queue pairs destroyed suspended")
BETWEEN, SENDER, LEAVER = ("the one that is meant is away", "the sender moves",
                           "at an address that it has left")

STAGES = (
    ("HELLO", LOADED), ("HELLO", ASKED),
    ("PREPARE", DRY), ("PREPARED", DRY),
    *((kind, BOTH) for kind in (*MOVING, "DRAINED")),
    *((kind, BACK) for kind in ("GATE", "READY", "INFO", "CONNECTED", "DRAINED")),
    *((kind, stage) for stage in (BEFORE_GATE, LEFT, MOVER) for kind in ("ABORT", "ABORTED")),
    *((kind, stage) for stage in (AWAY, JOINED, AHEAD) for kind in ("KEYS", "KEYS_ACK")),
    *(("GONE", stage) for stage in (RUNNING, DRAINING, RESUMING, PEER, DESTROYED)),
    *(("RESOLVE", stage) for stage in (BETWEEN, SENDER, LEAVER)),
    ("MOVED", BOTH))
WORDS = 5           # queue pairs of each kind for one fault, see datagrams.Words
MANY_KEYS = 4200    # more than a message holds


# --- suspends and resumes ---

def dry_run(cells):
    assert cells.ask(cells.b, "dry-run")["state"] == "checked"
    return "checked"


def move_both(cells):
    guests = (cells.a, cells.b)
    ops = at_once(*(lambda g=guest: cells.suspend(g) for guest in guests))
    at_once(*(lambda g=guest, op=op: cells.mover.resume(g, op) for guest, op in zip(guests, ops)))
    return "moved"


def move_both_and_reach(cells):
    move_both(cells)
    cells.words.reach_all()
    return "told"


# --- given up ---

def give_up_before_gate(cells):
    return give_up(cells, "before msg GATE/READY")


def give_up_when_left(cells):
    """The peers have heard READY, and have left RTS; what they said of it is lost."""
    cells.dropped = "READY", cells.a
    count = "rdma resource show qp | grep -c 'state INIT'"
    before = cells.a.run(f"{count}; true").strip()
    op = start(cells.b, "suspend rxe0 timeout 30")
    cells.a.wait_until(f"[ $({count}) -gt {before} ]")
    cells.b.run(f"repath abort {op} nowait")
    state, text = wait_final(cells.b, op)
    assert state == "failed", text
    return "taken back"


def give_up_to_mover(cells):
    """Both move, one of them gives up, and waits for the other as its peer."""
    cells.holder.arm("stop")
    there, here = (start(guest, "suspend rxe0 timeout 30") for guest in (cells.a, cells.b))
    cells.holder.wait_hit()
    cells.b.run(f"repath abort {here} nowait")
    cells.holder.signal(18)
    state, text = wait_final(cells.a, there)
    assert state == "suspended", text
    cells.mover.resume(cells.a, {"op": there})
    state, text = wait_final(cells.b, here)
    assert state == "failed", text
    return "taken back"


def disturb_drained(cells, name):
    cells.run("DRAINED", BOTH, name, move_both)
    cells.run("DRAINED", BACK, name, lambda cells: give_up(cells, seen=True))


# --- HELLO ---

def load_anew(cells):
    """The module of the guest that does not move; how many connections must be READY then."""
    count = int(cells.a.run("repath connection | grep -c 'state ready'"))
    cells.a.run("rmmod ib_repath")
    cells.a.load_repath()
    return count


def all_ready(cells, count, before=""):
    for guest in (cells.a, cells.b):
        guest.wait_until(f"{before} [ $(repath connection | grep -c 'state ready') -ge {count} ]")


def hello_when_loaded(cells, name):
    count = load_anew(cells)
    if name in ("other version", "forged"):     # believed until somebody asks again
        all_ready(cells, count, "repath suspend rxe0 dry-run >/dev/null;")
        return "connected when a move asks again"
    all_ready(cells, count)
    return "connected"


def disturb_hello(cells, name):
    cells.run("HELLO", LOADED, name, lambda cells: hello_when_loaded(cells, name))
    counts = []

    def unheard():
        counts.append(load_anew(cells))
        cells.a.wait_until("repath connection | grep -q 'state no-answer'")
    cells.lose("HELLO", cells.a, unheard)
    cells.run("HELLO", ASKED, name, Cells.move)
    all_ready(cells, counts[0])
    cells.words.reach_all()


# --- KEYS ---

def key_to_one_away(cells):
    op = cells.suspend()
    verdict = push_key(cells, 0)
    cells.mover.resume(cells.b, op)
    return verdict


def connect_new(cells, name):
    """A process that knows no keys of the other yet connects to it, and uses one."""
    for kind in ("KEYS", "KEYS_ACK"):
        stranger = Dialog(cells.a, f"stranger{next(cells.words.count)}")
        cells.run(kind, JOINED, name, lambda cells, who=stranger: cells.words.connect(who))
        stranger.kill()


def disturb_keys(cells, name):
    cells.move(cells.a)     # from here on it tells keys, too
    for kind in ("KEYS", "KEYS_ACK"):
        cells.run(kind, AWAY, name, key_to_one_away)
    connect_new(cells, name)
    loaded = Dialog(cells.b, f"loaded{next(cells.words.count)}")
    loaded.ask(f"load {MANY_KEYS}")
    near = Dialog(cells.a, f"near{next(cells.words.count)}")
    qp, far_qp = near.qp(), loaded.qp()
    assert near.connect(qp, loaded.address, far_qp) == 0 == loaded.connect(far_qp, near.address, qp)
    for kind in ("KEYS", "KEYS_ACK"):
        cells.run(kind, AHEAD, name, Cells.move)
    # Both: a module that is loaded anew does not know why one of them does not answer, and refuses to move the other.
    near.kill()
    loaded.kill()


# --- GONE ---

def die_running(cells):
    """The other end's device can be moved all the same."""
    near, victim = cells.words.near, Dialog(cells.b, f"victim{next(cells.words.count)}")
    ready = "repath connection | grep -c 'state ready'"
    before = int(cells.a.run(f"{ready}; true"))
    qp, far_qp = near.qp(), victim.qp()
    assert near.connect(qp, victim.address, far_qp) == 0 == victim.connect(far_qp, near.address, qp)
    cells.a.wait_until(f"[ $({ready}) -gt {before} ]")
    victim.kill()
    return cells.move(cells.a)


def die(cells, case, ending, suspended_only):
    """@case comes to its @ending at its point, or once all are suspended."""
    if suspended_only:
        op = cells.suspend()
        case.ending = ending
        case.signal({"kill": 9, "exit": 3}[ending])
        case.victim.wait(30, check=False)
    else:
        case.arm(ending)
        op = cells.suspend()
    cells.mover.resume(cells.b, op)
    case.check_dead()
    return "error as the API says"


def disturb_gone(cells, name, number):
    cells.run("GONE", RUNNING, name, die_running)
    for i, (stage, who, point, ending, only) in enumerate((
            (DRAINING, "peer", "before msg READY", "kill", False),
            (RESUMING, "mover", "before reply recreate", "kill", False),
            (PEER, "peer", "before reply none", "kill", True),
            (DESTROYED, "peer", "before reply none", "exit", True))):
        case = Case(cells.a, cells.b, 200 + 10 * number + i, who, point)
        case.pair.wait_running()
        cells.run("GONE", stage, name, lambda cells: die(cells, case, ending, only))


# --- RESOLVE ---

def connect_to_one_away(cells):
    words = cells.words
    qp, far_qp = words.qps.pop(), words.unconnected.pop()
    op = cells.suspend()
    words.near.say(f"connect {qp[0]} {words.far.address} {far_qp[1]}")
    cells.mover.resume(cells.b, op)
    return words.finish_connect(words.near, qp, far_qp, int(words.near.answer("connect")[0]))


def ask_anew(cells):
    cells.move(cells.a)
    cells.words.reach_all()
    return "heard"


def move_to(cells, new):
    """To another address, @new."""
    nic = cells.b.nics[0]
    op = cells.suspend()
    cells.b.run(f"ip address del {nic.ip}/24 dev {nic.ifname}; ip address add {new}/24 dev {nic.ifname}")
    quads = "%02x%02x:%02x%02x" % tuple(int(part) for part in new.split("."))
    cells.b.wait_until(f"cat /sys/class/infiniband/rxe0/ports/1/gids/[0-7] | grep -q ffff:{quads}")
    nic.ip = new
    cells.mover.resume(cells.b, op)


def disturb_resolve(cells, name):
    cells.run("RESOLVE", BETWEEN, name, connect_to_one_away)
    cells.run("RESOLVE", SENDER, name, ask_anew)
    old = cells.b.nics[0].ip
    move_to(cells, "10.0.0.99")
    cells.words.reach_all()
    cells.run("RESOLVE", LEAVER, name, lambda cells: cells.words.connect())
    move_to(cells, old)
    cells.words.reach_all()


def disturb_one(cells, name, number):
    """Each kind at each of these stages, by one fault."""
    for kind in ("PREPARE", "PREPARED"):
        cells.run(kind, DRY, name, dry_run)
    for kind in MOVING:
        cells.run(kind, BOTH, name, move_both)
    cells.run("MOVED", BOTH, name, move_both_and_reach)
    for kind in ("GATE", "READY", "INFO", "CONNECTED"):
        cells.run(kind, BACK, name, give_up)
    for stage, action in ((BEFORE_GATE, give_up_before_gate), (LEFT, give_up_when_left),
                          (MOVER, give_up_to_mover)):
        for kind in ("ABORT", "ABORTED"):
            cells.run(kind, stage, name, action)
    disturb_resolve(cells, name)
    disturb_keys(cells, name)
    disturb_hello(cells, name)
    disturb_gone(cells, name, number)
    cells.pair.wait_progress(20)
