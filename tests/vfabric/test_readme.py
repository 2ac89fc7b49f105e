#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What README.md tells people to type, typed: its two commands to a running subnet, the programs that it
names then, and its lines for the console.

In a network namespace of its own: the names of libumad2sim's sockets, which are the defaults here, are one
namespace's.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

from bed import PATIENCE, TOP, expect, umad2sim

APART = "VFABRIC_APART"
END = "nothing"
PROGRAMS = {"ibnetdiscover": ('"S-', 6), "iblinkinfo": ("LinkUp", 26), "smpquery nodeinfo 1": ("NodeType", 1),
            "perfquery": ("PortXmitWait", 1), "saquery --src-to-dst 1:4": ("dlid", 1)}


def blocks():
    """The indented blocks of the README, each as its lines."""
    with open(f"{TOP}/tests/vfabric/README.md", encoding="utf-8") as file:
        found = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
    return [[line[4:] for line in block.splitlines()] for block in found]


def shell(command, directory, **more):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.Popen(["sh", "-c", command], cwd=TOP, text=True, **more, env={
        **environment, "OSM_CACHE_DIR": directory, "OSM_TMP_DIR": directory})


def wait_for(path, what):
    until = time.monotonic() + PATIENCE
    while True:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if what in text:
            return text
        expect(time.monotonic() < until, f"{path} never has {what}:", text[-2000:])
        time.sleep(0.1)


def ask(console, path, line):
    """What the console answers to a line, up to what it answers to one that nobody knows."""
    before = os.path.getsize(path)
    console.write(f"{line}\n{END}\n")
    console.flush()
    until = time.monotonic() + PATIENCE
    while True:
        with open(path, encoding="utf-8", errors="replace") as file:
            file.seek(before)
            text = file.read()
        if f'"{END}"' in text:
            return text[:text.index(f'"{END}"')].removesuffix("# what is ")
        expect(time.monotonic() < until, f"no answer to {line}:", text)
        time.sleep(0.02)


def main():
    umad2sim()
    if APART not in os.environ:
        os.environ[APART] = "1"
        os.execvp("unshare", ["unshare", "-n" if os.geteuid() == 0 else "-rn", sys.executable, *sys.argv])
    (start, manage), _, script = blocks()[:3]
    preload = re.match(r"LD_PRELOAD=\S+", manage)[0]
    with tempfile.TemporaryDirectory() as directory:
        said, log = f"{directory}/vfabric", f"{directory}/opensm.log"
        open(log, "w", encoding="utf-8").close()
        with open(said, "w", encoding="utf-8") as output:
            fabric = shell(start, directory, stdin=subprocess.PIPE, stdout=output, stderr=output)
        manager = None
        try:
            ask(fabric.stdin, said, "")
            manager = shell(f"exec env {manage} -f {log}", directory, stdout=subprocess.DEVNULL)
            wait_for(log, "SUBNET UP")
            for program, (what, times) in PROGRAMS.items():
                asked = shell(f"{preload} SIM_HOST=H2 {program}", directory, stdout=subprocess.PIPE)
                text, _ = asked.communicate(timeout=PATIENCE)
                expect(asked.returncode == 0 and text.count(what) >= times, program, text)
            for line in script:
                words, _, _ = line.partition("   ")
                answer = ask(fabric.stdin, said, words)
                expect(not re.search("^# ", answer, re.M), words, answer)
        finally:
            if manager:
                manager.terminate()
                manager.wait(PATIENCE)
            fabric.stdin.close()
            fabric.wait(PATIENCE)


if __name__ == "__main__":
    main()
