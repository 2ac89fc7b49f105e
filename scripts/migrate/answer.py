# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What was answered, looked at before it is used: the guest may be anybody's, and its words come to a
terminal."""

import math

DEEPEST = 32        # objects within objects
LONGEST = 1000      # characters of an error that are shown


class Garbled(Exception):
    """An answer is not as it should be."""


def clean(value, depth=DEEPEST):
    """The same without anything that a terminal would obey or JSON can not say."""
    if not depth:
        raise Garbled("an answer is nested too deeply")
    if isinstance(value, str):
        return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in value)
    if isinstance(value, dict):
        return {clean(key, depth): clean(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def error_of(answer):
    """Why something was refused."""
    return str(answer.get("error") or "no reason given")[:LONGEST]


def member(answer, key, kind):
    value = answer.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Garbled(f"the agent's answer has no proper \"{key}\"")
    return value


def op_number(op):
    """The number of an operation, from an object that tells it as "op"."""
    number = member(op, "op", int)
    if not 0 < number < 1 << 32:
        raise Garbled("the agent's answer has no proper \"op\"")
    return number


def operations(answer):
    """All operations, of an answer to a status without a number."""
    ops = member(answer, "ops", list)
    for op in ops:
        if not isinstance(op, dict):
            raise Garbled("the agent's answer has no proper \"ops\"")
        op_number(op)
    return ops


def stages(op):
    """The milliseconds of each stage of an operation."""
    found = op.get("stages")
    if not isinstance(found, dict):
        return {}
    return {name: ms for name, ms in found.items()
            if isinstance(ms, (int, float)) and not isinstance(ms, bool) and 0 <= ms < 1e12}


def processes(op, keys):
    """Members @keys of each of an operation's processes."""
    found = op.get("processes")
    if not isinstance(found, list):
        return []
    return [{key: process[key] for key in keys if key in process}
            for process in found if isinstance(process, dict)]
