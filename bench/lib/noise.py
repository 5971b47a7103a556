"""How much other programs disturb a measurement.

Time of processors in user mode that is not this process's or its children's, and time that the host of a virtual
machine took away. Time in the kernel does not count: writing files out for the measured program is among it.
"""

import os
import pathlib
import resource
import time

NOISY = 0.08  # a share of all processors


class Others:
    """Measures from its creation on. Children count when they have been waited for."""

    def __init__(self):
        self.begin = self._now()

    @staticmethod
    def _now():
        user, nice, _, _, _, _, _, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
        used_s = (user + nice + steal) / os.sysconf("SC_CLK_TCK")
        own_s = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return time.monotonic(), used_s - own_s

    def share(self):
        now, others_s = self._now()
        return max(0.0, (others_s - self.begin[1]) / max(now - self.begin[0], 1e-3) / os.cpu_count())
