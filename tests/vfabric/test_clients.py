#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs and their answers: one is answered once, however often the model has sent the request again; but a
program that asks anew with a transaction ID that it, or another before it, has used gets a new answer. What a
program has not waited for is not told to the next that has its number. Those that end without a word
leave their places, and who has asked them is told. Who has sent a trap hears that it is repressed. Who does not
read has a bounded number of answers, and does not hold up others.
"""

import errno
import os
import re
import resource
import socket
import sys
import time

from bed import PATIENCE, Client, Fabric, expect

NOTICE, NODE_INFO, PORT_INFO, SM_INFO = 0x02, 0x11, 0x15, 0x20
TRAP, REPRESS = 5, 7
TO_H2 = (1, 2, 3)                   # from H1: its port, S1's, S2's
TO_H1 = (1, 1, 3)                   # and back
IS_SM = 1 << 1                      # CapabilityMask
FILES = 256
QUEUE_MAX = 65536
CONSOLES = 20
LATE, LOST, WELL = "reorder=1", "loss=1", "reorder=0 loss=0"


def fault(fabric, what):
    fabric.command(f'Fault "S1"[2] {what}')


def answered(client, tid, what):
    """Ask, and wait for the answer."""
    client.get(tid, NODE_INFO, *TO_H2)
    got = client.hear(PATIENCE)
    expect(got and got[:2] == (0, tid) and got[2][64 + 2] == 1, what, got)


def open_files(fabric):
    return len(os.listdir(f"/proc/{fabric.server.pid}/fd"))


def attached(fabric):
    return [int(ident) for ident in re.findall(r"^Client \d+: pid (\d+)", fabric.command("Attached"), re.M)]


def h1_has_sm(client):
    client.get(99, PORT_INFO, *TO_H1)
    got = client.hear(PATIENCE)
    expect(got and got[:2] == (0, 99), "PortInfo of H1", got)
    return int.from_bytes(got[2][64 + 20:64 + 24], "big") & IS_SM


def until_so(condition, *what):
    until = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < until, *what)
        time.sleep(0.1)


def without_goodbye(fabric):
    """Far more than there are file descriptors, of whom none lives long, and none says that it ends."""
    living = Client(fabric, "H2", 1000)
    living.get(1, NODE_INFO)
    files = open_files(fabric)
    for i in range(400):
        client = Client(fabric, "H1", 1001 + i)
        if i % 10 == 0:
            answered(client, 5, f"{i} have come and gone")
        client.close(goodbye=False)
    expect(attached(fabric) == [1000], "one lives:", attached(fabric))
    expect(open_files(fabric) == files, "all others are closed:", open_files(fabric), files)
    got = living.hear(PATIENCE)
    expect(got and got[:2] == (0, 1), "what came for that one is not lost", got)

    # Nobody asks, and it is seen all the same.
    client = Client(fabric, "H1", 1001, is_sm=True)
    expect(h1_has_sm(living), "a subnet manager")
    client.close(goodbye=False)
    until_so(lambda: open_files(fabric) == files, "seen to be dead", open_files(fabric), files)
    expect(not h1_has_sm(living), "no subnet manager any more")

    # The name of a dead one is that of another: of a client, or of somebody else.
    Client(fabric, "H1", 1001).close(goodbye=False)
    client = Client(fabric, "H1", 1001)
    until_so(lambda: attached(fabric) in ([1000, 1001], [1001, 1000]), "one of the name", attached(fabric))
    answered(client, 5, "it has its own answers")
    expect(client.hear(0.1) is None, "and no others")
    client.close(goodbye=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"\0{fabric.name}:in1001\0")
        other.connect(f"\0{fabric.name}:ctl\0")
        expect(attached(fabric) == [1000], "no client:", attached(fabric))
    living.close()


def asked(fabric):
    """A program that others have asked ends, and has answered none: one that says so, and one that does not."""
    living = Client(fabric, "H2", 1000)
    for tid, goodbye in ((7, True), (8, False)):
        client = Client(fabric, "H1", 1001, is_sm=True)
        living.get(tid, SM_INFO, *TO_H1)
        expect(client.hear(PATIENCE), "it is asked")
        expect(living.hear(0.1) is None, "it may answer yet")
        client.close(goodbye)
        got = living.hear(PATIENCE)
        expect(got and got[:2] == (errno.ETIMEDOUT, tid), "it has not answered", got)
    living.close()


def trapped(fabric):
    """A program's trap is repressed, with a transaction ID in the middle of which libumad2sim has written; who has
    sent it is told so once, or that nobody has."""
    teller, manager = Client(fabric, "H2", 1000), Client(fabric, "H1", 1001, is_sm=True)
    other = Client(fabric, "H2", 1002)
    teller.send(TRAP, 9, NOTICE, bytes(64), TO_H1)
    got = manager.hear(PATIENCE)
    expect(got and got[2][3] == TRAP, "the trap has come", got)
    for _ in range(2):
        manager.send(REPRESS, int.from_bytes(got[2][8:16], "big") ^ 5 << 32, NOTICE, bytes(64), TO_H2)
    heard = teller.hear(PATIENCE)
    expect(heard and (heard[0], heard[1] & 0xffffffff, heard[2][3]) == (0, 9, REPRESS), "it is repressed", heard)
    teller.send(TRAP, 10, NOTICE, bytes(64), TO_H1)
    expect(manager.hear(PATIENCE), "another one has come")
    manager.close(False)
    heard = teller.hear(PATIENCE)
    expect(heard and heard[:2] == (errno.ETIMEDOUT, 10), "nobody has repressed it", heard)
    expect(other.hear(0.1) is None, "others there hear nothing")
    teller.close()
    other.close()


def full(fabric):
    """As many that live as have room: the next is refused, consoles are served, and a place that is left is
    taken."""
    clients = []
    try:
        while True:
            expect(len(clients) < FILES, "there is no room for more than there are file descriptors")
            clients.append(Client(fabric, "H1", 2000 + len(clients)))
    except SystemExit as why:
        expect("done: 1" in str(why), why)
    expect(len(clients) > FILES // 2, "most are for clients:", len(clients))
    consoles = [socket.socket(socket.AF_UNIX) for _ in range(CONSOLES)]
    for console in consoles:
        console.settimeout(PATIENCE)
        console.connect(f"{fabric.dir}/control")
    for _ in range(2):
        for console in consoles:
            console.sendall(b"Attached\n")
        for console in consoles:
            with console.makefile("r", encoding="utf-8") as reader:
                answer = "".join(iter(reader.readline, "ok\n"))
            expect(answer.count("Client") == len(clients), "a console is served:", answer)
    for console in consoles:
        console.close()
    clients.pop().close(goodbye=False)
    clients.append(Client(fabric, "H1", 3000))
    for client in (clients[0], clients[-1]):
        answered(client, 5, "those that are in are served")
    for client in clients:
        client.close()


def answers():
    with Fabric("mesh:2") as fabric:
        first = Client(fabric, "H1", 77)
        fault(fabric, LATE)
        answered(first, 5, "a late one comes")
        expect("late 0" not in fabric.command("Smps"), "it was late")
        fault(fabric, WELL)
        answered(first, 5, "asked anew, with the same transaction ID")
        answered(first, 6, "with another")
        fault(fabric, LATE)
        answered(first, 7, "another late one")
        fault(fabric, LOST)
        first.get(8, NODE_INFO, *TO_H2)
        number = first.number
        first.close()

        # It asks with a transaction ID of the first, whose request is still sent again.
        second = Client(fabric, "H1", 78)
        expect(second.number == number, "the number of the first:", second.number, number)
        got = second.hear(1)
        expect(got is None, "it has asked nothing yet:", got)
        fault(fabric, WELL)
        answered(second, 7, "asked with a transaction ID of the program before")
        fault(fabric, LOST)
        second.get(9, NODE_INFO, *TO_H2)
        got = second.hear(PATIENCE)
        expect(got and got[0] and got[1] == 9, "told that no answer has come:", got)
        second.close()


def unread(fabric):
    """Who asks and does not read: the first answers wait for it, what is too much is counted."""
    client, other = Client(fabric, "H1", 77), Client(fabric, "H1", 78)
    count = QUEUE_MAX + 5000

    def line():
        found = re.search(r"pid 77 at .*: (\d+) wait, most (\d+), (\d+) lost", fabric.command("Attached"))
        return tuple(map(int, found.groups()))

    for tid in range(1, count + 1):
        client.get(tid, NODE_INFO)
        if tid % 5000 == 0:
            answered(other, tid, "somebody else meanwhile")
    until_so(lambda: line()[2], "too many:", line)
    waiting, most, lost = line()
    expect(waiting == most == QUEUE_MAX, "bounded:", waiting, most, lost)
    for tid in range(1, count - lost + 1):
        got = client.hear(PATIENCE)
        expect(got and got[:2] == (0, tid), "in their order", tid, got)
        if tid % 5000 == 0:
            answered(other, tid, "somebody else meanwhile")
    expect(client.hear(0.2) is None and line() == (0, most, lost), "the others are lost:", line())
    answered(client, count, "and it is served again")
    # It dies with as many that wait.
    for tid in range(1, 1001):
        client.get(tid, NODE_INFO)
    client.close(goodbye=False)
    answered(other, 1, "the other is served")
    other.close()


def main():
    answers()
    with Fabric("mesh:2", binary="asan/vfabric") as fabric:
        unread(fabric)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    with Fabric("mesh:2") as fabric:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        without_goodbye(fabric)
        asked(fabric)
        trapped(fabric)
        full(fabric)
    return 0


if __name__ == "__main__":
    sys.exit(main())
