# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which tests that failed are run again.

Two emulated processors that others use as well stand still now and then for longer than a test can
wait. Of one run at most six tests that fail are run a second time. One that was too late both times
is run once more if the machine was not there for it in the second: more than 5 % of its processors
were stolen, or nothing ran for more than a second.

What a machine that stands still does not cause is never tried again: a kernel's complaint, whatever
else failed; what a checker says of data, order and completions; a crash of a program under the shim; a
standstill of both ends, or of one queue pair among others that go on.
"""

import glob
import os
import re
import threading
import time

import kernel_log

SECOND_TRIES = 6
STOLEN, STILL = 0.05, 1.0
PRODUCT = 2             # exit status of a test's process: see product_failed()
LATE = re.compile(r"^FAIL [\d.]+s \w+: (TimeoutError|NetworkStalled):", re.M)
# (Of what is parked, as by a resume that was too late, `repath` says that nothing is lost.)
CHECKED = re.compile(r"\bdamage\b|(?<!\bnothing )\bis lost\b|\bis doubled|doubled completion"
                     r"|in wrong order|wrong immediate|never posted|missing completion"
                     r"|not what was written|was executed \d+ times|\bstood still\b"
                     r"|Sanitizer|(LD_PRELOAD=[^\n]*: (status |ended \()|rcheck failed \()1(34|39)\b")


def complaints(bed, logs):
    """What kernels of the guests of a test, whose @logs are saved, say that sane ones do not: reports."""
    found = [report for reports in bed.last_words.values() for report in reports]
    for path in glob.glob(os.path.join(logs, "*.dmesg")) + glob.glob(os.path.join(logs, "*.console")):
        with open(path, errors="replace") as f:
            found += kernel_log.unexpected(f.read(), bed.expected_log_patterns)
    return found


def product_failed(reason, reports):
    """Is a failure for this @reason, with these complaints() of kernels, nothing that the machine causes?"""
    return bool(reports or CHECKED.search(reason))


class Machine:
    """What this machine did while a test ran."""

    def __init__(self):
        self._naps = []         # (when it ended, seconds that it was too long)
        threading.Thread(target=self._nap, daemon=True).start()

    def _nap(self):
        while True:
            before = time.monotonic()
            time.sleep(0.1)
            now = time.monotonic()
            if now - before > 0.3:
                self._naps.append((now, now - before - 0.1))

    @staticmethod
    def now():
        """When it is, and the ticks of its processors: those stolen, and all."""
        with open("/proc/stat") as f:
            ticks = [int(word) for word in f.readline().split()[1:9]]
        return time.monotonic(), ticks[7], sum(ticks)

    def since(self, start):
        """(the share that was stolen, the longest time that nothing ran) since now() was @start."""
        _, stolen, ticks = self.now()
        return ((stolen - start[1]) / max(ticks - start[2], 1),
                max((late for when, late in self._naps if when > start[0]), default=0.0))


class Tries:
    """Of one run. failed: {test: for each of its failures so far, was it too late?}"""

    def __init__(self):
        self.failed = {}

    def next(self, name, status, text, stolen, still):
        """@name ended with @status other than 0 and wrote @text: what to call this try of it (.first,
        .second) if there is to be another, else None."""
        late = bool(LATE.search(text))
        before = self.failed.get(name, [])
        if status == PRODUCT:
            return None
        if not before:
            if len(self.failed) >= SECOND_TRIES:
                return None
        elif len(before) > 1 or not (before[0] and late and (stolen > STOLEN or still > STILL)):
            return None
        self.failed[name] = before + [late]
        return ".second" if before else ".first"
