#!/usr/bin/env python3
# FLAVOURS: none
# PROCESSORS: 2
"""`shima run --lapi --trace --html`: the calls of LAPI and of a shared memory, their bytes, their partners, and who is waited for."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
LIBRARIES = pathlib.Path(os.environ["SHIMA_BUILD_DIR"]) / "lib"
SANITIZER = os.environ.get("SHIMA_SANITIZE")
TASKS = 3
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def compile_program():
    flags = [f"-fsanitize={SANITIZER.replace('+', ',')}"] if SANITIZER else []
    subprocess.run(["cc", "-g", "-O1", *flags, "-o", "tasks", SOURCE / "tests/tool/trace_tasks.c", f"-I{SOURCE}/include",
                    f"-L{LIBRARIES}", "-lshima-dsm", "-llapi", f"-Wl,-rpath,{LIBRARIES}"], check=True)


def run(*command, status=0, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **settings})
    check(done.returncode == status, f"{command}: status {done.returncode}: {done.stderr}")
    return done


def read(name):
    trace = json.loads(pathlib.Path(name).read_text())
    return trace["otherData"], [event for event in trace["traceEvents"] if event["ph"] == "X"]


def calls_of(event):
    return event["args"].get("calls", 1)


def tally(events):
    """Calls and bytes by name and other task."""
    sums = collections.defaultdict(lambda: [0, 0])
    for event in events:
        total = sums[event["name"], event["args"].get("task")]
        total[0] += calls_of(event)
        total[1] += event["args"].get("bytes", 0)
    return {key: tuple(total) for key, total in sums.items()}


DSM = {"dsm_open": 1, "dsm_fence": 1, "dsm_barrier": 1, "dsm_close": 1}


def dsm_accesses(task):
    right = (task + 1) % TASKS
    expected = {("dsm_write", right): (7, 700), ("dsm_read", right): (6, 40), ("dsm_write_b", right): (1, 50),
                ("dsm_fetch_add_64", 0): (1, 8), ("dsm_compare_and_swap_32", right): (1, 4)}
    return expected


def lapi_accesses(task):
    right = (task + 1) % TASKS
    expected = {("LAPI_Put", right): (3, 3000), ("LAPI_Get", right): (1, 500), ("LAPI_Putv", right): (1, 128), ("LAPI_Getv", right): (1, 128),
                ("LAPI_Amsend", right): (1, 28), ("LAPI_Rmw", right): (1, 4), ("LAPI_Rmw64", right): (1, 8),
                ("LAPI_Xfer(Put)", right): (1, 64)}
    if task == TASKS - 1:
        expected["LAPI_Put", 0] = (5, 3032)
    return expected


def check_calls(name):
    other, events = read(name)
    check(other["processes"] == TASKS and other["dropped_calls"] == 0 and not other["missing_ranks"], f"other data: {other}")
    for task in range(TASKS):
        own = [event for event in events if event["pid"] == task]
        accesses = {key: value for key, value in tally(own).items() if value[1] > 0}
        check(accesses == {**lapi_accesses(task), **dsm_accesses(task)}, f"task {task}: accesses {accesses}")
        counts = collections.Counter(event["name"] for event in own if "bytes" not in event["args"])
        expected = {**DSM, "LAPI_Init": 1, "LAPI_Address_init": 3, "LAPI_Gfence": 2, "LAPI_Waitcntr": 8 + (task == 0), "LAPI_Fence": 1,
                    "LAPI_Term": 1}
        check(counts == expected, f"task {task}: other calls {counts}")
        waits = [event for event in own if event["name"] == "LAPI_Waitcntr"]
        check({event["args"]["task"] for event in waits[:8]} == {(task + 1) % TASKS}, f"task {task} waits for {waits}")
        check([event["args"]["end"] for event in own if event["args"].get("failed")] == [8198], f"task {task}: what has failed")
        on_track = sorted((event["ts"], event["ts"] + event["dur"]) for event in own)
        check(all(a[1] <= b[0] + 0.002 for a, b in zip(on_track, on_track[1:])), f"task {task}: calls overlap: {on_track}")
    waits = [event for event in events if event["name"] == "LAPI_Waitcntr" and event["pid"] == 0]
    check(waits[-1]["args"]["task"] == TASKS - 1, f"task 0 waits for the last one: {waits[-1]}")
    write = next(event for event in events if event["name"] == "dsm_write")
    check(write["cat"] == "send" and write["args"]["offset"] == 256 and write["args"]["end"] == 356, f"a write: {write}")
    if subprocess.run(["sh", "-c", "command -v addr2line"], capture_output=True, check=False).returncode == 0:
        check(re.fullmatch(r"trace_tasks\.c:\d+ in use_memory", write["args"]["at"]), f"its place: {write}")
    putv = next(event for event in events if event["name"] == "LAPI_Putv")
    check(putv["args"]["pieces"] == 2, f"a vector: {putv}")
    check_meetings(events)


def check_meetings(events):
    """The task that begins a barrier last is the one that the others wait for."""
    for name in ("LAPI_Gfence", "dsm_barrier"):
        by_task = [sorted((event for event in events if event["name"] == name and event["pid"] == task), key=lambda e: e["ts"]) for task in range(TASKS)]
        for meeting in zip(*by_task):
            last = max(meeting, key=lambda event: event["ts"])
            check({event["args"]["last_in"] for event in meeting} == {last["pid"]}, f"last in: {meeting}")


def check_page(name):
    text = pathlib.Path(name).read_text()
    headings = re.findall("<h2>(.*?)</h2>", text)
    check(headings == ["Advice", "Timeline", "Between tasks", "Sizes between tasks", "Calls"], f"headings: {headings}")
    check("<h1>Calls of a job</h1>" in text and f": {TASKS} processes" in text, "the heading")
    for title in ("0 sent to 1: 3.9 KiB", "2 sent to 0: 3.9 KiB", "1 fetched from 2: 668 B", "0 waited for 2: "):
        check(f"<title>{title}" in text, f"{title}: {re.findall('<title>(.*?)</title>', text)}")
    check("LAPI_Xfer(Put)" in text and "dsm_write_b" in text and '<rect class="p"' in text, "calls or waits are missing")


def check_all_calls(*options):
    run(SHIMA, "run", "--lapi", *options, "-n", str(TASKS), "--trace", "t.json", "--html", "t.html", "./tasks", "calls")
    check_calls("t.json")
    check_page("t.html")
    check(not list(pathlib.Path(".").glob(".shima-trace*")), "the temporary directory is left")


def check_dsm_alone():
    """Calls of LAPI that serve the shared memory are not the program's."""
    run(SHIMA, "run", "--lapi", "-n", str(TASKS), "--trace", "d.json", "./tasks", "dsm", SHIMA_DSM_APART="1")
    other, events = read("d.json")
    check(other["processes"] == TASKS, f"processes: {other}")
    for task in range(TASKS):
        own = [event for event in events if event["pid"] == task]
        check({key: value for key, value in tally(own).items() if value[1] > 0} == dsm_accesses(task), f"task {task}: {tally(own)}")
        check(collections.Counter(event["name"] for event in own if "bytes" not in event["args"]) == DSM, f"task {task}: other calls")


def check_many(what, status):
    """With little room, short calls share events: none is lost, also of a task that is killed."""
    count = 20000
    run(SHIMA, "run", "--lapi", "-n", "2", "--trace", "m.json", "--html", "m.html", "./tasks", what, str(count), status=status, SHIMA_TRACE_LIMIT="64K")
    other, events = read("m.json")
    check(other["dropped_calls"] == 0, f"dropped: {other}")
    for task in range(2):
        own = [event for event in events if event["pid"] == task]
        sums = tally(own)
        expected = {("LAPI_Put", task): (count, 8 * count), ("LAPI_Waitcntr", task): (count, 0),
                    ("dsm_write", 1 - task): (count, 16 * count), ("dsm_read", 1 - task): (count, 32 * count)}
        check(expected.items() <= sums.items(), f"task {task}: {sums}")
        check(len(own) < 1640 and max(map(calls_of, own)) > 100, f"task {task}: {len(own)} events")
        check(all("in_calls_us" in event["args"] for event in own if calls_of(event) > 1), "runs without the time in their calls")
    check("Sizes between tasks" in pathlib.Path("m.html").read_text(), "no sizes")


compile_program()
check_all_calls()
if not SANITIZER:
    os.environ["SHIMA_ONE_SPACE"] = "required"
    check_all_calls("--one-space")
    del os.environ["SHIMA_ONE_SPACE"]
check_dsm_alone()
check_many("many", 0)
check_many("killed", 137)
if failures:
    sys.exit(1)
print("all as expected")
