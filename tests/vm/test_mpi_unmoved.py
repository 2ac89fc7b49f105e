# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An MPI job computes the same under `repath run` as without it, over RC and over UD, and it really
is RDMA that carries it; also where nobody says by which transports, but `repath run`."""

import mpi
from move import LONG

ROUNDS = 12 if LONG else 6


def run(guests, transports, plain, rounds=ROUNDS):
    """Under `repath run` it goes on until its ranks have been looked at."""
    before = [mpi.packets(guest) for guest in guests]
    job = mpi.start(guests, 2, transports, f"-n {rounds}" if plain else "", plain=plain)
    if not plain:
        job.wait_rounds(1)
        for guest in guests:
            ranks = guest.run("repath qp").splitlines()
            assert sum("comm mpicheck shim" in line for line in ranks) >= 4, ranks
            said = guest.run("set -- $(pidof mpicheck); tr '\\0' '\\n' < /proc/$1/environ | grep ^UCX_TLS=").strip()
            assert said == f"UCX_TLS={transports or mpi.LEFT}", f"a rank in {guest} has {said}"
        if job.rounds < rounds:
            job.wait_rounds(rounds - job.rounds)
    last = job.wait() if plain else job.finish(also=None if transports else mpi.WARNS)
    assert last["rounds"] >= rounds and last["ranks"] == 4, last
    for guest, packets in zip(guests, before):
        packets = mpi.packets(guest) - packets
        # Half of each rank's neighbours are in the other guest; a packet has up to 1 KB.
        assert packets > last["mbytes"] * 1e6 / 2 / 1024, (last, packets)
    print(f"  {transports or 'as repath run has it'}{' plain' if plain else ''}: {last['seconds']} s, "
          f"{last['mbytes']} MB in rank 0", flush=True)
    return job.job.output()


def test(bed):
    mpi.bring(bed)
    guests = bed.guests("a", "b", memory=512)
    for transports in (mpi.RC, mpi.UD):
        run(guests, transports, True)
        for guest in guests:
            guest.run("insmod /lib/repath/ib_repath.ko 2>/dev/null || true")
        said = run(guests, transports, False)
        assert f"left as it is: UCX_TLS={transports}: was set already, by -x" in said, said
        assert "LD_PRELOAD=libibrepath.so: " in said and "mpirun gets -x" in said, said
    said = run(guests, None, False, rounds=4)
    assert f"UCX_TLS={mpi.LEFT}: UCX's mlx5 transports" in said, said
