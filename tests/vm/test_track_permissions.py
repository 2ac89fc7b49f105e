# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who may not administrate the device's network namespace reads, and changes nothing by any command: not
even as root of a namespace that sees the device."""

import tracking
from move import LIBRARY, SHIM, repath

PROCESSORS = 1


# All that need CAP_NET_ADMIN.
CHANGING = ("suspend rxe0", "suspend rxe0 force nowait", "suspend rxe0 dry-run", "resume {op}", "resume rxe0",
            "resume {op} on rxe0", "abort {op}", "adopt", "adopt rxe0", "path set rxe0/1 dlid 5",
            "path prepare rxe0/1 dlid 5", "path hold rxe0/1 dlid 5", "path reroute rxe0 off",
            "path ask rxe0 dlid 5", "path listen rxe0 off", "connection moved rxe0 dgid 10.0.0.2 to 10.0.0.3")


NOT_ALLOWED, REFUSED, FAILED = 3, 4, 1      # what repath(8) says


def refused(guest, command, why, status=NOT_ALLOWED):
    text = guest.run(f"{command}; echo status $?", check=False)
    assert text.splitlines()[-1] == f"status {status}" and why in text, f"{command}: {text}"


# Their PIDs.
REPATHS = "grep -lx repath /proc/[0-9]*/comm 2>/dev/null | cut -d / -f 3"


def hears(a, who):
    """Whether a socket that listens is told of processes."""
    monitor = a.start(f"exec {who} stdbuf -oL repath monitor process")
    a.run("n=0; until [ $n = 10 ]; do holdqp -b >/dev/null; n=$((n + 1)); done")
    monitor.wait_for("process del")
    monitor.kill()
    monitor.wait(30, check=False)


def listeners(a):
    """Whoever makes a queue pair waits until all who listen have been told: anybody may, not as often as he likes."""
    crowd = a.start("n=0; until [ $n = 64 ]; do unshare -U repath monitor process >/tmp/hears.$n & n=$((n + 1)); done; wait")
    # All of them, before somebody else tries: he would take the place of one.
    a.wait_until("holdqp -b && [ $(grep -l del /tmp/hears.* | grep -c .) = 64 ]", 120)
    refused(a, "timeout 60 unshare -U repath monitor", "too many sockets listen", FAILED)
    assert len(a.run(REPATHS).split()) == 64
    hears(a, "")        # an administrator
    a.run(f"for pid in $({REPATHS}); do kill $pid; done")
    crowd.wait(30, check=False)
    hears(a, "unshare -U")      # nothing stays of them


def privileged(a):
    """A program with more rights than its user, where all get the shim, writes no log where that one wants it."""
    a.run(f"cp /usr/bin/holdqp /tmp/setuid && chmod 4755 /tmp/setuid && echo {LIBRARY} >/etc/ld.so.preload;"
          "for i in root:x:0 nobody:x:9; do echo $i:${i##*:}::/:/bin/sh; done >>/etc/passwd")
    for user, heeded in (("root", True), ("nobody", False)):
        a.run(f"rm -f /tmp/said; REPATH_LOG=info:/tmp/said start-stop-daemon -S -c {user} -x /tmp/setuid -- -b")
        assert (a.status("[ -s /tmp/said ]") == 0) == heeded, user
    a.run("rm /etc/ld.so.preload")


def test(bed):
    (a,) = bed.guests("a")
    a.load_repath()
    listeners(a)
    privileged(a)
    job, numbers = tracking.hold(a, "-q 2 -c")

    # In a user namespace of its own, but in the first network namespace.
    refused(a, "unshare -U repath suspend rxe0", "not permitted")
    refused(a, "unshare -U repath abort 1", "not permitted")
    # Root over its own network namespace, which sees the device as all do.
    refused(a, "unshare -U -r -n repath suspend rxe0", "CAP_NET_ADMIN over the device's")
    assert len(tracking.user_qps(a)) == 2 and job.running
    assert "rxe0" in a.run("unshare -U repath device")
    assert f"qpn {numbers['qpns'][0]} " in a.run("unshare -U repath qp")

    # With the right to it: what refuses is the process without the shim.
    refused(a, "repath suspend rxe0", str(numbers["pid"]), REFUSED)
    job.kill()
    job.wait(30, check=False)

    # Whatever they ask for, while there is an operation that they could resume or abort, which both see.
    a.start(f"exec env {SHIM} holdqp -q 2 -c").wait_for("qpns")
    status, op, text = repath(a, "suspend rxe0")
    assert status == 0, text
    device = tracking.device(a)
    for who, why in (("unshare -U", "not permitted"), ("unshare -U -r -n", "CAP_NET_ADMIN over ")):
        assert f"op {op['op']} " in a.run(f"{who} repath status"), who
        for command in CHANGING:
            refused(a, f"{who} repath {command.format(op=op['op'])}", why)
    assert tracking.device(a) == device
    status, op, text = repath(a, f"resume {op['op']}")
    assert status == 0 and op["state"] == "resumed", text
