#!/usr/bin/env python3
# FLAVOURS: none
"""`shima top` of tasks of LAPI and of a shared memory, of an I/O node, and of tasks on other hosts."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
LIBRARIES = pathlib.Path(os.environ["SHIMA_BUILD_DIR"]) / "lib"
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def sample(*options):
    done = subprocess.run([SHIMA, "top", *options, "--once", "--json"], capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout)["tasks"] if done.stdout else []


def eventually(found, what):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    check(False, what)
    return []


def counters(task):
    return {name: (value["calls"], value["bytes"]) for name, value in task["counters"].items() if name != "waits"}


def check_tasks():
    sanitizer = os.environ.get("SHIMA_SANITIZE")
    flags = [f"-fsanitize={sanitizer.replace('+', ',')}"] if sanitizer else []
    subprocess.run(["cc", *flags, "-o", "tasks", SOURCE / "tests/tool/top_tasks.c", f"-I{SOURCE}/include", f"-L{LIBRARIES}",
                    "-lshima-dsm", "-llapi", f"-Wl,-rpath,{LIBRARIES}"], check=True)
    with subprocess.Popen([SHIMA, "run", "--lapi", "-n", "2", "./tasks", "."]) as job:
        def both_are_there():
            tasks = [task for task in sample(str(job.pid)) if task["kind"] != "node"]
            ready = len(tasks) == 2 and all("dsm_rmws" in task["counters"] for task in tasks)
            return tasks if ready and tasks[0]["asleep_ms"] > 0 and tasks[0]["doing"] == "dsm_barrier" else None
        tasks = eventually(both_are_there, "task 0 waits for task 1")
        for task in tasks:
            own = counters(task)
            expected = {"dsm_writes": (7, 700), "dsm_reads": (5, 40), "dsm_rmws": (1, 8), "puts": (3, 3000), "gets": (1, 500)}
            check(expected.items() <= own.items(), f"task {task['rank']}: {own}")
            check(set(task["kind"].split("+")) == {"lapi", "dsm"} and task["tasks"] == 2, f"names: {task}")
        if tasks:
            check(tasks[0]["reason_ranks"] == [1], f"its wait: {tasks[0]}")
        pathlib.Path("go").touch()
        check(job.wait(60) == 0, "the job succeeds")


def check_node():
    pathlib.Path("key").write_text("0123456789abcdef" * 2)
    os.chmod("key", 0o600)
    os.mkdir("disk")
    with subprocess.Popen([SHIMA, "iod", "--listen", "127.0.0.1:0", "--target", f"d0={os.getcwd()}/disk", "--key", "key"],
                          stdout=subprocess.PIPE, text=True) as node:
        try:
            address = node.stdout.readline().split()[-1]
            pathlib.Path("data").write_bytes(b"x" * 300000)
            environment = {**os.environ, "SHIMA_TARGETS": f"d0=iod://{address}/d0", "SHIMA_IOD_KEY": "key"}
            subprocess.run([SHIMA, "cp", "--stripe", "unit=64K,targets=1", "data", "striped"], env=environment, check=True)
            subprocess.run([SHIMA, "cat", "striped"], env=environment, check=True, stdout=subprocess.DEVNULL)

            def idle():
                found = [task for task in sample(str(node.pid)) if task["pid"] == node.pid]
                return found if found and found[0]["clients"] == 0 and found[0]["queued"] == 0 else None
            rows = eventually(idle, "the node is idle after its clients have ended")
            check(len(rows) == 1 and rows[0]["kind"] == "node", f"the node's row: {rows}")
            own = counters(rows[0])
            check(own["served_writes"][1] == 300000 and own["served_reads"][1] == 300000, f"what it has served: {own}")
            target = rows[0]["files"][0]
            check(target["name"] == "d0" and target["written"]["bytes"] == 300000, f"its target: {target}")
        finally:
            node.send_signal(signal.SIGTERM)


FAKE = """#!/bin/sh
# Stands in for ssh: notes the command, and answers for the host.
echo "$1|$2" >> asked
[ "$1" != unreachable ] || exit 255
head -2 {recording}
exec sleep 60
"""


def check_hosts():
    recording = SOURCE / "tests/golden/top_recording_v1.jsonl"
    pathlib.Path("fake-ssh").write_text(FAKE.format(recording=shlex.quote(str(recording))))
    os.chmod("fake-ssh", 0o755)
    command = [SHIMA, "top", "node1.4242", "--once", "--json", "--rsh", "./fake-ssh", "--hosts"]
    done = subprocess.run([*command, "far"], capture_output=True, text=True, timeout=60, check=False)
    tasks = [task for task in json.loads(done.stdout)["tasks"] if task["kind"] != "node"]
    check([(task["host"], task["rank"]) for task in tasks] == [("node1", rank) for rank in range(3)], f"tasks of the host: {tasks}")
    host, sent = pathlib.Path("asked").read_text().strip().split("|")
    check(host == "far" and "top 'node1.4242' --record -" in sent, f"the command: {host} {sent}")
    done = subprocess.run([*command, "far,unreachable"], capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 1 and "unreachable" in done.stderr, f"a host that fails is named: {done.stderr}")
    # The other half: what the command answers on that host.
    with subprocess.Popen(["sh", "-c", sent], stdout=subprocess.PIPE, text=True) as far:
        check(json.loads(far.stdout.readline())["shima_top_recording"] == 1, "the answer is a recording")
        check("tasks" in json.loads(far.stdout.readline()), "with samples, although there is no task")
        far.stdout.close()
        check(far.wait(60) == 0, "it ends with its reader")


check_tasks()
check_node()
check_hosts()
if failures:
    sys.exit(1)
print("all as expected")
