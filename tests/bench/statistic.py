# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the benches say about a series of numbers."""

import statistics


def median(values):
    return statistics.median(values)


def p99(values):
    """The value that 99 % are not above: of few values, the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
