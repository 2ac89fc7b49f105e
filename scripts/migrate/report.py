# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a move did and how long each stage took: lines while it runs, an object at the end."""

import contextlib
import os
import sys
import time


def write(stream, text):
    """Write @text; False if nobody takes it. A move goes on without its reader, and what could not
    be written must not become the exit status at the end either."""
    try:
        stream.write(text)
        stream.flush()
        return True
    except (AttributeError, OSError, ValueError):      # closed from the start: None
        with contextlib.suppress(AttributeError, OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False


def warn(text):
    """A line to standard error, if anybody is there."""
    write(sys.stderr, f"{text}\n")


class Report:
    def __init__(self, quiet, **facts):
        self._quiet = quiet
        self._start = time.monotonic()
        self.facts = {**facts, "started": round(time.time(), 3)}
        self.stages = []
        self.undone = []

    def now_ms(self):
        """Milliseconds since the move began."""
        return round((time.monotonic() - self._start) * 1e3, 3)

    def say(self, text):
        if not self._quiet:
            warn(text)

    @contextlib.contextmanager
    def stage(self, name):
        """Times what is done inside; the dictionary given takes parts and figures of it."""
        entry = {"stage": name, "start_ms": self.now_ms()}
        self.stages.append(entry)
        try:
            yield entry
        except Exception:
            entry["failed"] = True
            raise
        finally:
            entry["ms"] = round(self.now_ms() - entry["start_ms"], 3)
            self._say_stage(entry)

    def _say_stage(self, entry):
        notes = [f"{part} {ms:.1f}" for part, ms in entry.get("parts", {}).items()]
        notes += [str(note) for note in entry.get("notes", [])]
        failed = "  FAILED" if entry.get("failed") else ""
        self.say(f"{entry['start_ms'] / 1e3:8.3f} s  {entry['stage']:<12}{entry['ms']:9.1f} ms  "
                 f"{'  '.join(notes)}{failed}")

    def find(self, name):
        return next((entry for entry in self.stages if entry["stage"] == name), None)

    def result(self, **more):
        """The whole report as an object."""
        result = {**more, **self.facts, "total_ms": self.now_ms(), "stages": self.stages}
        suspend, resume = self.find("suspend"), self.find("resume")
        if suspend and resume and not resume.get("failed"):
            # Asking beforehand disturbs nobody: traffic stops when the gates close.
            closed = suspend["start_ms"] + suspend.get("parts", {}).get("check", 0)
            result["blackout_ms"] = round(resume["start_ms"] + resume["ms"] - closed, 3)
        if self.undone:
            result["rolled_back"] = self.undone
        return result
