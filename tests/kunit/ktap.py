# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads what KUnit suites wrote to the kernel log, and believes nothing that is not there."""

import re

_STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\] ?")
_INDENT = "    "


class Malformed(Exception):
    """The log is not what a suite that ran to its end writes."""


def results(log, suites, cases):
    """[(suite, case, "ok" | "not ok" | "skip", details)] from the kernel log of one module.

    @suites: how many suites it must have, or None for at least one; @cases: how many cases in all.
    Raises Malformed if a header, plan, suite, case or suite result is missing or contradicts
    another.
    """
    lines = [_STAMP.sub("", line) for line in log.splitlines()]
    found, count, at = [], 0, 0
    while at < len(lines):
        if lines[at].startswith(f"{_INDENT}# Subtest: "):
            if at == 0 or lines[at - 1].strip() != "KTAP version 1":
                raise Malformed(f"no KTAP header before: {lines[at].strip()}")
            at, suite = _suite(lines, at)
            found += suite
            count += 1
        at += 1
    if not count:
        raise Malformed("no suite in the log")
    if suites is not None and count != suites:
        raise Malformed(f"{count} suites, expected {suites}")
    if len(found) != cases:
        raise Malformed(f"{len(found)} cases, expected {cases}")
    return found


def _suite(lines, at):
    """One suite from its "# Subtest:" line: (the index of its result line, its results)."""
    name = lines[at].split("# Subtest: ", 1)[1]
    if at + 1 < len(lines) and lines[at + 1].startswith(f"{_INDENT}# module: "):    # from 6.6 on
        at += 1
    plan = re.fullmatch(rf"{_INDENT}1\.\.(\d+)", lines[at + 1] if at + 1 < len(lines) else "")
    if not plan:
        raise Malformed(f"{name}: no plan")
    cases, details = [], []
    for end in range(at + 2, len(lines)):
        line = lines[end]
        case = re.fullmatch(rf"{_INDENT}(ok|not ok) (\d+) (?:- )?(\S+)(.*)", line)
        whole = re.fullmatch(r"(ok|not ok) \d+ (?:- )?(\S+)(.*)", line)
        if case:
            if int(case[2]) != len(cases) + 1:
                raise Malformed(f"{name}: case {case[2]} comes after {len(cases)} cases")
            verdict = "skip" if case[1] == "ok" and "# SKIP" in case[4] else case[1]
            cases.append((name, case[3], verdict, "\n".join(details)))
            details = []
        elif whole:
            _check_suite(name, int(plan[1]), cases, whole)
            return end, cases
        elif line.startswith(_INDENT) and "# Subtest: " in line and \
                not line.startswith(_INDENT * 2):
            raise Malformed(f"{name}: another suite begins before its result")
        else:
            details.append(line.strip())
    raise Malformed(f"{name}: ends without a result")


def _check_suite(name, planned, cases, whole):
    if whole[2] != name:
        raise Malformed(f"{name}: the result is that of {whole[2]}")
    if len(cases) != planned:
        raise Malformed(f"{name}: planned {planned} cases, {len(cases)} have results")
    if (whole[1] == "ok") != all(verdict != "not ok" for _, _, verdict, _ in cases):
        raise Malformed(f"{name}: its result contradicts its cases")
