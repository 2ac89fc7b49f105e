# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The agent in a guest, and the host's end of its port, for tests."""

import os
import sys
import time

import image

SCRIPTS = os.path.join(image.TOP, "scripts")
sys.path.append(os.path.join(SCRIPTS, "migrate"))     # behind: it has a move.py, too
HOOKS = "/etc/repath/hooks"

from talk import Agent, Interrupt, Late, Refused        # noqa: E402,F401  offered to tests


def start(guest):
    """Start `repath agent` with the hooks for rxe in @guest: its job."""
    job = serve(guest)
    for name in ("device-gone", "device-new"):
        guest.push(os.path.join(SCRIPTS, "hooks/rxe", name), f"{HOOKS}/{name}")
    return job


def serve(guest):
    """The same without any; it looks for them when it is asked."""
    guest.run(f"mkdir -p {HOOKS}")
    return guest.start(f"repath agent --hook {HOOKS}")


def set_hook(guest, name, script):
    """Make hook @name of a shell script."""
    path = f"{HOOKS}/{name}"
    guest.run(f"cat > {path} && chmod 755 {path}", stdin=f"#!/bin/sh\nset -e\n{script}\n".encode())


def connect(path):
    """Connect to a guest's port and wait until the agent answers."""
    agent = Agent(path, Interrupt())
    agent.wait_for_it(10)
    return agent


def raw(agent, data, wait=0.3):
    """Send @data as it is; what comes back within @wait seconds, as objects."""
    agent._lines.send(data)
    end, found = time.monotonic() + wait, []
    while True:
        message = agent._lines.receive(end)
        if message is None:
            return found
        found.append(message)
