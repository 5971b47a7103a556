#!/usr/bin/env python3
"""Runs a command of Shima over two I/O nodes on loopback: with_iod_lib.py PATH-OF-SHIMA ARGUMENT...

The nodes end with it, and must have said nothing. Its exit code is the command's.
"""

import os
import subprocess
import sys

os.environ["SHIMA"] = sys.argv[1]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from iod_lib import nodes

with nodes("ab") as running:
    status = subprocess.run(sys.argv[1:], check=False).returncode
    for node in running:
        code, said = node.end()
        if code != 0 or said:
            sys.exit(f"I/O node {node.name}: exit status {code}: {said}")
sys.exit(status)
