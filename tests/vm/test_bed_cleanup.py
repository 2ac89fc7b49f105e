# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""However a run ends, Ctrl-C and kill -9 included, no QEMU and no file of it stays."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bed as beds
import image

HANGS = '''"""Boots a guest and hangs."""
import time
def test(bed):
    bed.guest("g", memory=256, rdma=False)
    print("booted", flush=True)
    time.sleep(1000)
'''


def qemus():
    """Ids of all QEMU processes that can be seen, those of nested namespaces included."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().startswith("qemu-system"):
                    found.append(pid)
        except OSError:
            continue
    return found


def end_run(directory, how):
    """Start the runner on a copy of the bed whose only test hangs, end it by @how."""
    copy = os.path.join(directory, "tests", "vm")
    shutil.copytree(os.path.dirname(image.__file__), copy,
                    ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    with open(os.path.join(copy, "test_hang.py"), "w") as f:
        f.write(HANGS)
    build = os.path.join(directory, "build")        # what goes into guests; its logs are its own
    os.mkdir(build)
    for entry in os.scandir(os.path.join(image.TOP, "build")):
        if entry.name != "vm-logs":
            os.symlink(entry.path, os.path.join(build, entry.name))
    runner = subprocess.Popen([sys.executable, os.path.join(copy, "run"), "hang"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, start_new_session=True)
    said = []
    for line in runner.stdout:
        said.append(line)
        if line == "booted\n":
            break
    assert qemus(), f"the run has no QEMU: {''.join(said)}"
    how(runner)
    runner.wait(30)
    end = time.monotonic() + 10
    while qemus():
        assert time.monotonic() < end, f"left running: {qemus()}"
        time.sleep(0.05)
    assert runner.returncode != 0
    # The run had this directory to itself; what is there now is what it left behind.
    assert not os.listdir(beds.RUN_DIRECTORY), os.listdir(beds.RUN_DIRECTORY)


def test(bed):
    assert not qemus()
    for how in (subprocess.Popen.kill, subprocess.Popen.terminate,
                # What Ctrl-C in a terminal does: SIGINT to the whole foreground group.
                lambda runner: os.killpg(runner.pid, signal.SIGINT)):
        with tempfile.TemporaryDirectory() as directory:
            end_run(directory, how)
