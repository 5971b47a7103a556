#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-debian
"""`shima top` of a running MPI job: the numbers are those of the program, and it says whom a rank waits for.

Also its recording, what it leaves behind, who may look, and that a program is not disturbed by it.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
RANKS = 3
failures = []
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def eventually(found, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    check(False, f"{what} within {seconds} s")
    return None


def top(*options, status=0):
    done = subprocess.run([SHIMA, "top", *options], capture_output=True, text=True, timeout=60)
    check(done.returncode == status, f"shima top {options}: status {done.returncode}: {done.stderr}")
    return done.stdout


def without_nodes(tasks):
    """Other tests on this machine may run I/O nodes, which every view of this user shows."""
    return [task for task in tasks if task["kind"] != "node"]


def sample(job):
    found = json.loads(top(str(job), "--once", "--json"))
    return found | {"tasks": without_nodes(found["tasks"])}


def start(directory, *options):
    directory.mkdir()
    return subprocess.Popen([SHIMA, "run", "-n", str(RANKS), *options, "./job", str(directory)])


def all_ready(directory):
    return len(list(directory.glob("ready.*"))) == RANKS


def finish(job, directory):
    for name in ("go-1", "go-2"):
        (directory / name).touch()
    check(job.wait(60) == 0, f"the job ends with {job.returncode}")


def check_numbers(tasks):
    check([task["rank"] for task in tasks] == list(range(RANKS)), f"ranks: {[t['rank'] for t in tasks]}")
    expected = {"writes": (3, 3000), "collective_writes": (2, 10000), "reads": (1, 700),
                "nonblocking_writes": (1, 70000), "opens": (1, 0), "syncs": (1, 0)}
    for task in tasks:
        counters = {name: (value["calls"], value["bytes"]) for name, value in task["counters"].items() if name != "waits"}
        check(counters == expected, f"rank {task['rank']}: {counters} instead of {expected}")
        check(task["bytes_written"] == 83000 and task["bytes_read"] == 700, f"sums: {task}")
        check(task["tasks"] == RANKS and task["kind"] == "mpi" and task["program"] == "job", f"names: {task}")
        files = [file for file in task["files"] if file["name"].endswith("top.data")]
        check(len(files) == 1 and files[0]["written"] == {"calls": 6, "bytes": 83000}
              and files[0]["read"] == {"calls": 1, "bytes": 700}, f"its file: {task['files']}")


def check_waits(job):
    """Ranks 0 and 2 wait for rank 1, which has not called."""
    def waiting():
        tasks = sample(job.pid)["tasks"]
        others = [task for task in tasks if task["rank"] != 1]
        return tasks if all(t["asleep_ms"] > 0 and t["doing"] == "MPI_File_write_at_all" for t in others) else None
    tasks = eventually(waiting, "two ranks wait") or []
    for task in tasks:
        if task["rank"] == 1:
            check(task["doing"] == "" and task["reason"] == "", f"rank 1 computes: {task}")
        else:
            check(task["file"].endswith("top.data"), f"its file: {task}")
            check(task["reason_ranks"] == [1] and "rank 1" in task["reason"], f"waits for rank 1: {task['reason']}")


def check_job(directory):
    job = start(directory)
    if eventually(lambda: all_ready(directory), "all ranks are ready"):
        eventually(lambda: all(t["counters"].get("syncs") for t in sample(job.pid)["tasks"]), "all have synced")
        tasks = sample(job.pid)["tasks"]
        check_numbers(tasks)
        check_waits(job)
        name = tasks[0]["job"]
        check(name.endswith(f".{job.pid}"), f"the job's name: {name}")
        check(sample(name)["tasks"][0]["pid"] == sample(tasks[1]["pid"])["tasks"][0]["pid"], "by name and by a task")

        def shown():
            table = top(name, "--once")
            return "waits for rank 1, which has not called" in table and "83000" in table
        eventually(shown, "the table shows the wait and the bytes")
    (directory / "go-1").touch()

    def done():
        tasks = sample(job.pid)["tasks"]
        return all(t["counters"]["collective_writes"] == {"calls": 3, "bytes": 10000 + 65536} for t in tasks)
    eventually(done, "the last collective write is counted")
    record_to_the_end(job, directory)


def record_to_the_end(job, directory):
    with subprocess.Popen([SHIMA, "top", str(job.pid), "--record", "r.jsonl", "--interval", "0.05"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as recorder:
        eventually(lambda: os.path.exists("r.jsonl") and pathlib.Path("r.jsonl").read_text().count("\n") > 4, "a recording grows")
        finish(job, directory)
        check(recorder.wait(60) == 0, "the recorder ends with the job")
    lines = pathlib.Path("r.jsonl").read_text().splitlines()
    check(json.loads(lines[0])["shima_top_recording"] == 1, f"head: {lines[0]}")
    last = json.loads(lines[-1])
    check(all(task["has_ended"] and task["bytes_written"] == 83000 + 65536 for task in without_nodes(last["tasks"])),
          f"the last sample has the final numbers: {lines[-1]}")
    # Cut off in the middle of a line.
    pathlib.Path("cut.jsonl").write_text("\n".join(lines[:3]) + "\n" + lines[3][:100])
    replayed = json.loads(top("--replay", "cut.jsonl", "--once", "--json"))
    check(replayed == json.loads(lines[2]), "a recording that was cut off ends with its last whole sample")
    top("--replay", __file__, "--once", status=2)


def processes_of(job):
    return [task["pid"] for task in sample(job.pid)["tasks"]]


def check_kills(directory):
    """What a killed job leaves: no row, no file."""
    job = start(directory)
    eventually(lambda: all_ready(directory), "all ranks are ready")
    pids = processes_of(job)
    check(len(pids) == RANKS, f"all are shown: {pids}")
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the launcher kills the others
            os.kill(pid, signal.SIGKILL)
    job.wait(60)
    # Processes that have been killed need a moment.
    gone = [SHIMA, "top", str(pids[0]), "--once"]
    eventually(lambda: subprocess.run(gone, capture_output=True, check=False).returncode == 2, "the killed job is not shown")
    left = [name for name in os.listdir("/dev/shm") + os.listdir("/tmp") if "shima-board" in name]
    check(not left, f"left behind: {left}")


def check_other_user(directory):
    """Another user sees nothing."""
    if os.geteuid() != 0:
        return
    job = start(directory)
    eventually(lambda: all_ready(directory), "all ranks are ready")
    other = subprocess.run([SHIMA, "top", str(job.pid), "--once"], capture_output=True, text=True, user=65534, check=False)
    check(other.returncode == 2 and "no such job" in other.stderr, f"another user: {other.stdout}{other.stderr}")
    finish(job, directory)


def main():
    subprocess.run([os.environ["MPICC"], "-o", "job", SOURCE / "tests/tool/top_job.c"], check=True)
    here = pathlib.Path.cwd()
    check_job(here / "first")
    check_kills(here / "second")
    check_other_user(here / "third")
    if failures:
        sys.exit(1)
    print("all as expected")


main()
