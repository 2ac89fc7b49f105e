# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads a guest's kernel log for anything that a sane kernel does not say."""

import re

_SUSPECT = re.compile(r"""
      \bWARNING:\s | \bBUG:\s | \bOops\b | \bKASAN\b | \bUBSAN\b | \bKCSAN\b | kernel\ BUG\ at
    | Kernel\ panic | Call\ Trace: | cut\ here | general\ protection\ fault
    | unable\ to\ handle | refcount_t: | possible\ .*(deadlock|lock|recursive|circular)
    | suspicious\ RCU | lockdep(?!\ checking\ is\ enabled) | inconsistent\ lock\ state | INFO:\ task\ .*\ blocked
    | blocked\ for\ more\ than | soft\ lockup | hard\ LOCKUP | (rcu|RCU).*\bstall
    | unregister_netdevice:\ waiting | sleeping\ function\ called | scheduling\ while\ atomic
    | memory\ leak(?!\ detector) | unreferenced\ object | \bODEBUG: | nobody\ cared | list_(add|del)\ corruption
""", re.X)
_CUT, _END = "[ cut here ]", "---[ end trace"
_TRACE = "Call Trace:"
_LEAK = "unreferenced object"       # kmemleak's own file: what belongs to it is indented
_REACH = 40     # lines between the headline of a report without a frame and its trace


def reports(log):
    """The kernel's complaints in @log, each as a list of lines.

    A framed report ("cut here" to "end trace") is one complaint; a call trace belongs to the
    headline before it.
    """
    found, open_frame, last_at = [], False, -_REACH
    for at, line in enumerate(log.splitlines()):
        if open_frame:
            found[-1].append(line)
            open_frame = _END not in line
            last_at = at
        elif _CUT in line:
            found.append([line])
            open_frame = True
        elif found and _LEAK in found[-1][0] and line.startswith("  "):
            found[-1].append(line)
        elif _TRACE in line and found and at - last_at < _REACH:
            found[-1].append(line)
        elif _SUSPECT.search(line):
            found.append([line])
            last_at = at
    return found


def unexpected(log, patterns):
    """The reports in @log that none of the regexes @patterns matches in any line."""
    return [report for report in reports(log)
            if not any(re.search(p, line) for p in patterns for line in report)]
