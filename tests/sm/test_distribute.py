#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tables that are distributed in any order deadlock a loaded fabric for good; in the plan's they do
not. In virtual time; seeds, and switches that come or go, are those where it happens."""

import json
import subprocess
import sys

from bed import TOP, expect

DEADLOCKS = (("16", "1", "add", "1"), ("16", "2", "remove", "4"), ("24", "7", "add", "9"),
             ("12", "10", "add", "1"))


def distribute(*arguments):
    text = subprocess.run([f"{TOP}/build/tests/sm/distribute", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


def main():
    for change in DEADLOCKS:
        got = distribute(*change, "dynamic", "0")
        expect(got["deadlock"] > 1, change, got)
        for how in ("static", "ports", "turns"):
            got = distribute(*change, how, "0")
            expect(not got["deadlock"] and got["smps"] > got["lft"] > 0, change, got)
    return 0


if __name__ == "__main__":
    sys.exit(main())
