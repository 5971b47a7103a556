#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# PROCESSORS: 2
# TIMEOUT: 300
"""`shima bench`: a tiny run, its tables, JSON and page; and a run that is interrupted and continued."""

import json
import pathlib
import re
import signal
import subprocess

import bench_lib
import page_lib

STATE = pathlib.Path("shima-bench.jsonl")
COLUMNS = ("columns", *bench_lib.SMALL, "--reps", "1")


def interrupt_after(jobs):
    """Starts a run and interrupts it when it begins its next job."""
    process = subprocess.Popen(bench_lib.command(*COLUMNS), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=bench_lib.environment())
    said = []
    for line in process.stderr:
        said.append(line)
        if f"[{jobs + 1}/" in line:
            process.send_signal(signal.SIGINT)
            break
    said += process.stderr.readlines()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 130, "".join(said)
    assert "`--resume` with the same options continues" in said[-1], said
    return int(re.search(r"\[\d+/(\d+)\]", "".join(said)).group(1))


def check_resume():
    total = interrupt_after(3)
    first = STATE.read_text().splitlines()
    assert len(first) == 1 + 3, first
    assert not list(pathlib.Path(".").glob("files-*")), "files are left"
    with STATE.open("a") as file:
        file.write('{"job": "columns 0 1", "seconds": 1, "sam')  # as of a process that was killed
    refused = bench_lib.run("columns", *bench_lib.SMALL, "--reps", "2", "--resume", status=2)
    assert "repetitions 1, this one 2" in refused.stderr, refused.stderr
    done = bench_lib.run(*COLUMNS, "--resume", "--json", "--html", "columns.html")
    assert done.stderr.count("/1  np 2") == total - 3, done.stderr
    assert "compiling columns" not in done.stderr, "a program was compiled again"
    assert STATE.read_text().splitlines()[:4] == first, "earlier results were changed"
    report = json.loads(done.stdout)
    bench_lib.check_json(report, ["columns"], 1)
    section = report["experiments"]["columns"]["sections"]["columns"]
    bench_lib.both_sides(section)
    again = bench_lib.run(*COLUMNS, "--resume", "--json")
    assert "/1  np 2" not in again.stderr, "a complete run was measured again"
    assert json.loads(again.stdout)["experiments"] == report["experiments"]


def check_page():
    page = page_lib.parse_page("columns.html")
    assert page.counts["svg"] == 4  # figures 5 and 6, of the stock MPI and of Shima
    for words in ("Figure 5 (READ): MPICH stock", "Figure 6 (WRITE): Shima on MPICH", "13.5", "The data are 0.00781 of the documents'"):
        assert words in page.text(), words
    page_lib.check_shown("columns.html", page_lib.DARK)


def check_tables():
    done = bench_lib.run("steps", "scale", *bench_lib.SMALL, "--reps", "1")
    for pattern in (r"^np 2 MPI-IO / naive +ratio +[\d.]+ +[\d.]+", r"^MPI-IO / naive program, 2 processes", r"^2 ranks: planning of a rank"):
        assert re.search(pattern, done.stdout, re.M), done.stdout


def main():
    check_resume()
    check_page()
    check_tables()


if __name__ == "__main__":
    main()
