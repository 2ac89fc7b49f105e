# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that connect by librdmacm."""

TRIES = 6


def rdma_cm_ends(server_guest, client_guest, server, client):
    """What both say.

    perftest's server accepts one connection after the other, each time by a new listener: a connection
    of the client that comes in between is rejected, with the shim or without, and then both are of no
    use any more. It is done again, as often as is enough for a slow machine. The client, which tries
    again by itself with an id that it has destroyed, may crash in rdma_resolve_addr() at that.
    """
    for left in reversed(range(TRIES)):
        job = server_guest.start(f"exec {server}")
        # There is no socket to look at. Not by trying: some of a client's connections may come too
        # early, and others not.
        server_guest.wait_until("rdma res show cm_id | grep -q LISTEN")
        other = client_guest.start(f"exec {client} 2>&1")
        said = other.wait(60, check=False)
        if not left or "RDMA_CM_EVENT_REJECTED" not in said:
            break
        client_guest.bed.expect_kernel_log(r"traps: ib_\w+\[\d+\] general protection fault .*"
                                           r" in librdmacm")
        job.kill(9)
        job.wait(60, check=False)
    assert other.status == 0, said
    job.wait(60, check=False)
    return job.output(), said
