# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""repath fabric check and show: time, memory and size of the page, for fat trees of 324 to 11664 hosts
whose tables vfabric has made. Live: asked from vfabric, without SLs; file: what that has saved. Painted: seconds of
headless Chromium from its start to a picture, and of an empty page. FABRIC_CHECK_HOSTS="324 648" are some of them."""

import json
import os
import subprocess
import tempfile
import time

from fabric_clocks import TOP, vfabric

BED = False
TREES = (("324", "xgft:18,18/1,18"), ("648", "xgft:18,36/1,18"),
         ("5832", "xgft:18,18,18/1,18,18"), ("11664", "xgft:18,18,36/1,18,18"))


def run(fabric, *words):
    """Seconds, seconds of processor, megabytes, and what it says."""
    start = time.monotonic()
    with subprocess.Popen([f"{TOP}/build/repath", "-j", "fabric", *words], cwd=fabric.dir,
                          env=fabric.environment("H1"), stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL) as process:
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise RuntimeError(f"{words}: {status}: {said[:500]}")
    return (time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024,
            json.loads(said) if said else None)


def paint(directory, page):
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        start = time.monotonic()
        subprocess.run(["chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                        f"--user-data-dir={profile}", f"--screenshot={directory}/page.png",
                        f"file://{directory}/{page}"], env=dict(os.environ, HOME=profile), check=True, timeout=300,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return round(time.monotonic() - start, 2)


def bench(record):
    some = os.environ.get("FABRIC_CHECK_HOSTS", "").split()
    for hosts, tree in (tree for tree in TREES if not some or tree[0] in some):
        with vfabric().Fabric(tree) as fabric:
            fabric.command("Tables minhop")
            wall, processor, _, found = run(fabric, "check", "sl", "0", "save", "state")
            if not found["ok"] or found["hosts"] != int(hosts):
                raise RuntimeError(f"{tree}: {found['faults']}")
            record(f"{hosts} hosts, live, s", round(wall, 2), processor=round(processor, 2))
            _, processor, memory, _ = run(fabric, "check", "from", "state")
            record(f"{hosts} hosts, from a file, processor s", round(processor, 2),
                   megabytes=round(memory), paths=found["paths"])
            _, processor, memory, _ = run(fabric, "show", "html", "page.html", "from", "state")
            record(f"{hosts} hosts, page, processor s", round(processor, 2), megabytes=round(memory),
                   page_megabytes=round(os.path.getsize(f"{fabric.dir}/page.html") / 1e6, 2))
            with open(f"{fabric.dir}/empty.html", "w", encoding="utf-8") as file:
                file.write("<p>")
            record(f"{hosts} hosts, page painted, s", paint(fabric.dir, "page.html"),
                   empty=paint(fabric.dir, "empty.html"))
