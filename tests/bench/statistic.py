# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the benches say about a series of numbers."""

import math
import statistics

ENOUGH = 6      # values of which median_between() can say something


def median(values):
    return statistics.median(values)


def p99(values):
    """The value that 99 % are not above: of few values, the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def median_between(values):
    """(low, high): with 95 % the median of what these are drawn from lies between, whatever its shape
    is; of fewer than ENOUGH values nobody can say that of any two, and it is all of them."""
    ordered = sorted(values)
    n = len(ordered)
    outside = 0
    at = 0
    # Below the at-th of n lie as many as heads of n coins.
    while at < n // 2 and outside + math.comb(n, at) / 2 ** n <= 0.025:
        outside += math.comb(n, at) / 2 ** n
        at += 1
    at = max(at - 1, 0)
    return ordered[at], ordered[n - 1 - at]
