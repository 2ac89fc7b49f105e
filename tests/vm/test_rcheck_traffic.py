# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The checker itself is right about good traffic: every operation, every way to post, to wait
and to poll, without repath."""

import time

from traffic import Pair

# Never more under way than the receive buffer of the bed's network holds (about 90 packets): rxe of
# Linux 6.1 completes an atomic or READ without its data when the response was lost and a plain
# acknowledgement of a repeated request comes instead.
WAYS = [
    # options told to the client, options of both ends, options of the server only
    ("-T 6 -q 4 -n 8 -b --vary -k 4", "", ""),
    ("-T 3 -q 16 -n 3 -s 512 -b -l 2 -k 8 --sges 2", "--epoll --new-post", "--poll"),
    ("-T 3 -q 3 -I 256 -s 256 --vary", "--select --ex-cq --split-cq", "--nonblock"),
    ("-T 3 -q 2 -s 8192 -n 3 -m write,read,fetch_add", "--nonblock --cqs 2 --new-post", "--epoll"),
    ("-T 3 -s 64 -n 64 -m send -I 64 -k 16", "--sig-all", "--poll"),
    ("-T 3 -m write -k 5 -s 200", "--poll", "--select"),
    ("-T 3 -m cmp_swp,fetch_add -b", "", "--ex-cq"),
    ("-T 3 -m read -k 3", "", ""),
    ("-T 3 -q 2 -r 50 --vary", "--busy", "--busy"),
]


def test(bed):
    a, b = bed.guests("a", "b")
    for number, (options, each, server) in enumerate(WAYS):
        pair = Pair(a, b, options, f"--numbers -i 1 {each}", port=18600 + number,
                    server_options=server)
        client, _ = pair.wait(60)
        assert client["msgs"] > 20, client
        print(f"  {options} {each}: {client['msgs']} messages, gap {client['max_gap_ms']} ms")

    # Receives held back: a stall, nothing else.
    pair = Pair(a, b, "-b -q 2 -n 8", server_options="--no-recv-ms 1500")
    pair.wait_running()
    pair.server.kill(10)
    time.sleep(2)   # what is counted meanwhile may be from before the signal
    pair.wait_progress()
    client, _ = pair.finish()
    assert client["max_gap_ms"] > 1000, client
    # A pause of one end.
    pair = Pair(a, b, "-b -q 2 -n 8 --pause-ms 1500", port=18610)
    pair.wait_running()
    pair.client.kill(12)
    time.sleep(2)
    pair.wait_progress()
    client, _ = pair.finish()
    assert client["max_gap_ms"] > 1000, client
