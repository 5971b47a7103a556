#!/usr/bin/env python3
# FLAVOURS: none
"""The screen of `shima top`, on a pseudo-terminal: keys do what the list of keys says, sizes change, the terminal is left as it was."""
import os
import pathlib
import signal
import subprocess
import sys

from pty_lib import OnTerminal

SHIMA = os.environ["SHIMA"]
RECORDING = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]) / "tests/golden/top_recording_v1.jsonl"
ENTER, UP, DOWN, ESCAPE = "\r", "\x1b[A", "\x1b[B", "\x1b"
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def rows(text):
    """The first words of the rows of tasks."""
    return [line.split()[0] for line in text.split("\n")[3:-1] if line.strip()]


def replay():
    top = OnTerminal([SHIMA, "top", "--replay", str(RECORDING)])
    top.press(" ")
    top.until(lambda text: "PAUSED" in text and "replay" in text, "pauses")
    return top


def step_to(top, position):
    top.until(lambda text: "/7" in text, "shows its place")
    for _ in range(7):
        top.press(",")
    top.until(lambda text: "replay 1/7" in text, "steps back to the first sample")
    for _ in range(position - 1):
        top.press(".")
    top.until(lambda text: f"replay {position}/7" in text, f"steps to sample {position}")


def check_replay():
    top = replay()
    step_to(top, 1)
    top.until(lambda text: rows(text) == ["0", "1", "2", "node"], "has a row for each task, nodes last")
    top.until(lambda text: text.count("waits for rank 2, which has not called") == 2, "says for whom ranks wait")
    top.until(lambda text: "2 clients, 1 requests at work" in text, "shows the node")
    step_to(top, 5)
    top.press("+")
    top.until(lambda text: "x2" in text, "is faster")
    top.press("--")
    top.until(lambda text: "x0.5" in text, "is slower")
    top.press(" ")
    top.until(lambda text: "replay 7/7" in text and "PAUSED" not in text, "goes on to the end")
    top.press("q")
    check(top.end() == 0, "q ends it")
    check("\x1b[?1049h" in top.output, "begins with the alternate screen")
    check(top.output.rstrip().endswith("\x1b[?1049l") and "\x1b[?25h" in top.output, "leaves it, and shows the cursor")


def check_keys():
    top = replay()
    step_to(top, 5)
    top.press("r")
    top.until(lambda text: "sorted by read" in text and rows(text) == ["0", "2", "1", "node"], "r sorts by bytes read")
    top.press("r")
    top.until(lambda text: rows(text) == ["1", "2", "0", "node"], "r again reverses")
    top.press("n")
    top.until(lambda text: rows(text) == ["0", "1", "2", "node"], "n sorts by number")
    top.press("/read_at" + ENTER)
    top.until(lambda text: "filter: read_at" in text and rows(text) == ["0", "1", "2"], "a filter")
    top.press(ESCAPE)
    top.until(lambda text: "filter" not in text.split("\n")[1] and len(rows(text)) == 4, "escape removes it")
    top.press("?")
    top.until(lambda text: "Keys of shima top" in text and "quit" in text, "? lists the keys")
    top.press("x")
    top.until(lambda text: "Keys of shima top" not in text, "any key leaves the list")
    top.press(DOWN + DOWN + UP + ENTER)
    top.until(lambda text: "rank 1  demo  process" in text and "collective_writes" in text and "/data/run.dat" in text,
              "enter shows the selected task alone")
    top.press(ENTER)
    top.until(lambda text: len(rows(text)) == 4, "enter shows all again")
    check_sizes(top)
    os.kill(top.child, signal.SIGTERM)
    check(top.end() == 0 and top.output.rstrip().endswith("\x1b[?1049l"), "SIGTERM ends it, with the terminal as before")


def check_sizes(top):
    for columns, lines in ((40, 6), (200, 50), (1, 1), (110, 24)):
        top.resize(columns, lines)
        top.until(lambda text: len(text.split("\n")) == lines and all(len(line) <= columns for line in text.split("\n")),
                  f"fits {columns} x {lines}")


def check_without_terminal():
    for options in (["top", "--replay", RECORDING], ["top", "--json"], ["top", "--replay", "/nowhere"]):
        done = subprocess.run([SHIMA, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        check(done.returncode == 2 and done.stderr.startswith("shima: "), f"{options}: {done.returncode} {done.stderr}")


check_replay()
check_keys()
check_without_terminal()
if failures:
    sys.exit(1)
print("all as expected")
