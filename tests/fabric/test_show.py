#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath fabric show, looked at in a browser: what its scripts have made of the page, and the picture
that it paints. A tree that loses a cable while hosts send to one of them, and a ring that can
deadlock."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from bed import TOP, Fabric, expect

BROWSERS = ("chromium-headless-shell", "chromium")
WIDTH, HEIGHT = 1000, 640
RED = (0xd0, 0, 0)


def repath(fabric, *words):
    subprocess.run([f"{TOP}/build/repath", "fabric", *words], env=fabric.environment("H2"),
                   cwd=fabric.dir, check=True, timeout=60, stdin=subprocess.DEVNULL)


def browse(fabric, page, *options):
    """The browser's standard output. It runs as root in tests, and without the preload. Its profile
    is in a place of its own: some of its processes may end, and write there, after the first."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    profile = tempfile.mkdtemp(prefix="browser-")
    try:
        return subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-breakpad", f"--user-data-dir={profile}",
             f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars", *options,
             f"file://{fabric.dir}/{page}"], cwd=fabric.dir, env=dict(os.environ, HOME=profile),
            check=True, timeout=150, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL).stdout
    finally:
        shutil.rmtree(profile, ignore_errors=True)


def pixels(path):
    """A PNG with 8 bits a channel: width, height, and how often it has each colour."""
    with open(path, "rb") as file:
        data = file.read()
    expect(data.startswith(b"\x89PNG\r\n\x1a\n"), path, "is a PNG")
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    expect(depth == 8 and kind in (2, 6) and not interlaced, "a plain PNG", depth, kind)
    size, packed, at = (3 if kind == 2 else 4), b"", 8
    while at < len(data):
        length, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    raw, row, colours = zlib.decompress(packed), bytearray(width * size), {}
    for y in range(height):
        start = y * (width * size + 1)
        row = unfiltered(raw[start], raw[start + 1:start + 1 + width * size], row, size)
        for x in range(0, width * size, size):
            colour = tuple(row[x:x + 3])
            colours[colour] = colours.get(colour, 0) + 1
    return width, height, colours


def unfiltered(kind, line, above, size):
    """PNG's five filters, by what is left, above, and both."""
    row = bytearray(line)
    for i, value in enumerate(line if kind else b""):
        left = row[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        guess = left + above[i] - corner
        nearest = min((abs(guess - left), 0, left), (abs(guess - above[i]), 1, above[i]),
                      (abs(guess - corner), 2, corner))[2]
        row[i] = (value + (0, left, above[i], (left + above[i]) // 2, nearest)[kind]) & 255
    return row


def painted(fabric, page):
    browse(fabric, page, f"--screenshot={fabric.dir}/page.png")
    width, height, colours = pixels(f"{fabric.dir}/page.png")
    expect((width, height) == (WIDTH, HEIGHT), width, height)
    return colours


def near(colours, wanted):
    """How many pixels are of a colour, or nearly."""
    return sum(n for colour, n in colours.items()
               if all(abs(a - b) < 24 for a, b in zip(colour, wanted)))


def table(dom, name):
    """Rows of a table of the page, as lists of texts."""
    body = re.search(f'<div id="{name}">(.*?)</table>', dom, re.S)
    expect(body, name, "is in the page", dom[-3000:])
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in
            re.findall("<tr>(.*?)</tr>", body[1], re.S)]


def tree():
    with Fabric("xgft:4,4/1,4", opensm="-R ftree -Q") as fabric:
        with open(f"{fabric.dir}/partitions", "w", encoding="utf-8") as file:
            file.write("Default=0x7fff : ALL=full ;\nred=0x1 : 0x100001=full, 0x100009=full ;\n")
        repath(fabric, "check", "save", "before")
        mark = fabric.sm_mark()
        fabric.command('Unlink "L1-1"[5]')
        fabric.wait_sm(mark)
        for host in ("H1", "H2", "H3"):
            fabric.command(f'Flow "{host}" "H16" sl=sa message=20000')
        fabric.command("Advance 1000")
        repath(fabric, "show", "html", "page.html", "since", "before", "partitions", "partitions")
        with open(f"{fabric.dir}/page.html", encoding="utf-8") as file:
            text = file.read()
        expect(not re.search(r"src=|href=|url\(|import", text), "the page needs nothing else")
        dom = browse(fabric, "page.html", "--dump-dom")
        expect('data-drawn="yes"' in dom, "the script came to its end", dom[-2000:])
        expect("Nothing is wrong" in re.search('<h1 id="verdict">(.*?)</h1>', dom)[1], dom)
        expect(dom.count('class="switch"') == 8 and dom.count('class="host"') == 16, "all nodes")
        expect(dom.count('class="link"') == 31, "all cables but one", dom.count('class="link"'))
        # Levels: four leaves on one line, four spines on another.
        expect(len(set(re.findall(r'class="switch" x="[\d.]*" y="([\d.]*)"', dom))) == 2, dom)
        changes = {row[0]: row[1:] for row in table(dom, "change")}
        expect(changes["cables"] == ["32", "31"], changes)
        expect(changes["cables gone, new"] == ["1", "0"], changes)
        rows = table(dom, "cables")
        expect(len(rows) == 2 and "L1-1 port 5" in rows[1][0] and rows[1][1] == "gone", rows)
        expect(dom.count('class="gone"') == 1 and "dotted: a cable that has gone" in dom, "it is drawn, too")
        expect(int(changes["paths that go another way"][1]) > 0, changes)
        expect("port 4 to H16" in " ".join(sum(table(dom, "busiest")[1:4], [])), "its load", dom)
        waiting = table(dom, "hotspots")[1:]
        expect({row[0].split()[0] for row in waiting[:3]} == {"H1", "H2", "H3"} and int(waiting[2][1]) > 0,
               "who waits for credits:", waiting)
        expect(["red 0x1", "2"] in table(dom, "partitions"), dom)
        expect(["Default 0x7fff", "all"] in table(dom, "partitions"), dom)
        for view in ("paths by link", "partition red", "paths more than before"):
            expect(f">{view}</option>" in dom, view, "can be chosen")
        colours = painted(fabric, "page.html")
        expect(len(colours) > 50, "a picture, not a plain page", len(colours))


def ring():
    with Fabric("torus:5", opensm="-R minhop") as fabric:
        repath(fabric, "show", "html", "page.html")
        dom = browse(fabric, "page.html", "--dump-dom")
        expect("Something is wrong" in re.search('<h1 id="verdict">(.*?)</h1>', dom)[1], dom)
        expect(dom.count('class="link loop"') == 5 and dom.count('class="link"') == 5, dom)
        expect(re.search('<li class="wrong">credit-loop: packets can wait', dom), dom)
        expect(near(painted(fabric, "page.html"), RED) > 300, "the loops are painted red")


def lanes():
    """DFSSSP's in a torus: each can be chosen, and all paths' hops are in one of them."""
    with Fabric("torus:4x4", opensm="-R dfsssp -Q") as fabric:
        found = json.loads(fabric.repath_fabric_check("H2").stdout)
        repath(fabric, "show", "html", "page.html")
        dom = browse(fabric, "page.html", "--dump-dom")
        shown = {int(row[0].removeprefix("VL ")): int(row[1]) for row in table(dom, "lanes")[1:]}
        expect(sorted(shown) == found["lanes"] and len(shown) > 1 and all(shown.values()), shown, found)
        hops = sum((int(switches) - 1) * paths for switches, paths in found["hops"].items())
        expect(sum(shown.values()) == hops, shown, found["hops"])
        for lane in shown:
            expect(f">lane {lane}</option>" in dom, lane, "can be chosen")


def main():
    if not any(map(shutil.which, BROWSERS)):
        print("needs the package chromium-headless-shell")
        return 77
    tree()
    ring()
    lanes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
