"""A clock for time limits that hold on a busy machine too.

It stops while any process of the machine waits for a processor (the kernel's pressure stall information). So "within ten
seconds" means ten seconds in which only the job itself could cause a delay. Without that information it is an ordinary
clock.
"""

import time

PRESSURE = "/proc/pressure/cpu"


def starved_s():
    """The total time since boot in which some process waited for a processor."""
    try:
        with open(PRESSURE, encoding="ascii") as pressure:
            some = pressure.readline()
    except OSError:
        return 0.0
    return int(some.rsplit("total=", 1)[1]) / 1e6


class CalmClock:
    """Starts at construction."""

    def __init__(self):
        self.began_s, self.starved_before_s = time.monotonic(), starved_s()

    def elapsed_s(self):
        return max(0.0, self.wall_s() - (starved_s() - self.starved_before_s))

    def wall_s(self):
        return time.monotonic() - self.began_s

    def past(self, limit_s):
        """Whether that much time is over; on a machine that is always busy, ten times as much."""
        return self.elapsed_s() > limit_s or self.wall_s() > 10 * limit_s
