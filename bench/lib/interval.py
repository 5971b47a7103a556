"""The mean of ratios that were measured in pairs, and how well it is known."""

import math
import statistics

# Student's t for 95 %, by degrees of freedom.
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


def interval(ratios):
    """The geometric mean and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    t = T_95[min(len(logs) - 1, len(T_95)) - 1]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return tuple(math.exp(value) for value in (mean, mean - half, mean + half))
