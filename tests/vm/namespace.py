# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Puts this process into namespaces of its own, so that nothing of a test run can leak.

Network: guests of two beds cannot meet and no packet leaves. Process ids: when the first process
in there ends, for whatever reason, the kernel ends all others. Mounts: files made while running
(sockets, consoles, images) lie in a tmpfs that goes with the namespace.
"""

import ctypes
import os
import select
import signal
import subprocess

_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *arguments):
    if function(*arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function.__name__}: {os.strerror(error)}")


def _mount(source, target, kind, flags=0):
    _call(_libc.mount, source, target.encode(), kind, ctypes.c_ulong(flags), None)


def enter(run_directory):
    """Return in a child inside fresh namespaces, with an empty tmpfs on @run_directory.

    The caller's own process stays outside, hands SIGINT and SIGTERM on and exits as the child
    does. If it is killed, the child is, and with it everything in there.
    """
    uid, gid = os.getuid(), os.getgid()
    _call(_libc.unshare, _NEWNS | _NEWPID | _NEWNET | (_NEWUSER if uid else 0))
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
    alive, hold = os.pipe()
    child = os.fork()
    if child:
        os.close(alive)
        _watch(child)
    os.close(hold)
    _call(_libc.prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([alive], [], [], 0)[0]:
        os._exit(1)     # the parent died before the line above took effect
    os.set_inheritable(alive, False)
    _mount(b"none", "/", None, _MS_REC_PRIVATE)
    _mount(b"proc", "/proc", b"proc")
    os.makedirs(run_directory, exist_ok=True)
    _mount(b"bed", run_directory, b"tmpfs")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def interrupted(number, _frame):
    """A signal handler for whoever is in there: everything ends at once."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _watch(child):
    def forward(number, _frame):
        os.kill(child, number)
    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    _, status = os.waitpid(child, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
