# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest as the hypervisor of others: it has the sockets of their agents, at /run/NAME.agent.

::

    guest pf                                 this process                     guest vm1
    repath relay -- unixtcp /run/vm1.agent == TCP, mgmt == QEMU's socket == repath agent
"""

import select
import socket
import threading


def _talk(a, b):
    while True:
        ready, _, _ = select.select([a, b], [], [])
        for one, other in ((a, b), (b, a)):
            if one in ready:
                data = one.recv(4096)
                if not data:
                    return
                other.sendall(data)


def _serve(listener, path):
    """One at a time, as QEMU does it, until the listener is closed."""
    while True:
        try:
            host, _ = listener.accept()
        except OSError:
            return
        try:
            with host, socket.socket(socket.AF_UNIX) as guest:
                guest.connect(path)
                _talk(host, guest)
        except OSError:
            pass        # one of them has gone


def give_agent(hypervisor, guest):
    """Give @hypervisor the socket of @guest's agent: its path there."""
    bed = hypervisor.bed
    listener = socket.create_server((bed.networks.host_address("mgmt"), 0))

    def end():
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    bed.at_end.append(end)
    threading.Thread(target=_serve, args=(listener, guest.agent_path), daemon=True).start()
    path = f"/run/{guest.name}.agent"
    address, port = listener.getsockname()
    hypervisor.start(f"exec unixtcp {path} {address} {port}")
    hypervisor.wait_until(f"[ -S {path} ]", timeout=20)
    return path


def relay(hypervisor, dev, *guests):
    """Start `repath relay` on @hypervisor for @guests, (what give_agent() has returned, the VF): its
    job, that has begun with all."""
    to = " ".join(f"to {path} {vf}/1" for path, vf in guests)
    job = hypervisor.start(f"exec repath -j relay {dev}/1 {to}")
    for path, _ in guests:
        job.wait_for(rf'"begun","socket":"{path}"')
    return job
