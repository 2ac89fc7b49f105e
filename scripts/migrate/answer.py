# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the agent in a guest has answered, looked at before it is used."""


class Garbled(Exception):
    """An answer is not as it should be."""


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
