#!/usr/bin/env python3
# FLAVOURS: none
"""Recordings of `shima top` of format 1 stay readable forever, with every number."""
import json
import os
import pathlib
import subprocess
import sys

recording = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]) / "tests/golden/top_recording_v1.jsonl"
last = json.loads(recording.read_text().splitlines()[-1])
text = subprocess.run([os.environ["SHIMA"], "top", "--replay", recording, "--once", "--json"], check=True, capture_output=True).stdout
read = json.loads(text)
if read != last:
    sys.exit(f"FAIL: read as {read}\ninstead of {last}")
print("all as expected")
