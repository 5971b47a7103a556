#!/usr/bin/env python3
# FLAVOURS: mpich-abi
"""`shima run --trace --html`: every call of every rank is in the trace, with its place in the program; the page is whole."""
import collections
import contextlib
import html.parser
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
LIBRARIES = pathlib.Path(os.environ["SHIMA_BUILD_DIR"]) / "lib"
RANKS = 3
failures = []
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def go_directory(name):
    directory = pathlib.Path(name)
    directory.mkdir()
    for go in ("go-1", "go-2"):
        (directory / go).touch()
    return directory


def run(*command, status=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **options)
    check(done.returncode == status, f"{command}: status {done.returncode}: {done.stderr}")
    return done


def calls_in(name):
    trace = json.loads(pathlib.Path(name).read_text())
    return trace["otherData"], [event for event in trace["traceEvents"] if event["ph"] == "X"]


def source_line(text):
    lines = (SOURCE / "tests/tool/top_job.c").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def check_trace(name):
    other, calls = calls_in(name)
    check(other["processes"] == RANKS and other["dropped_calls"] == 0 and not other["missing_ranks"], f"other data: {other}")
    expected = {"MPI_File_open": 1, "MPI_File_write_at": 3, "MPI_File_write_at_all": 3, "MPI_File_read_at": 1,
                "MPI_File_iwrite_at": 1, "MPI_File_sync": 1, "MPI_File_close": 1}
    for rank in range(RANKS):
        own = [call for call in calls if call["pid"] == rank]
        check(collections.Counter(call["name"] for call in own) == expected, f"rank {rank}: {[c['name'] for c in own]}")
        written = sum(call["args"]["bytes"] for call in own if call["cat"] == "write")
        check(written == 3000 + 10000 + 70000 + 65536, f"rank {rank}: {written} bytes")
        last = [call for call in own if call["name"] == "MPI_File_write_at_all"][-1]["args"]
        check(last["offset"] == 1000000 + rank * 65536 and last["end"] == last["offset"] + 65536, f"offsets: {last}")
        check(last["file"].endswith("top.data") and last["strategy"] and last["reason"], f"arguments: {last}")
        check([call["tid"] for call in own if call["name"] == "MPI_File_iwrite_at"] == [1], "the nonblocking call's track")
        on_track = sorted((c["ts"], c["ts"] + c["dur"]) for c in own if c["tid"] == 0)
        check(all(a[1] <= b[0] + 0.002 for a, b in zip(on_track, on_track[1:])), f"calls overlap on a track: {on_track}")
    read = next(call for call in calls if call["name"] == "MPI_File_read_at")
    place = f"top_job.c:{source_line('MPI_File_read_at')} in main"
    check(read["args"]["at"] == place or not has_addr2line(), f"place: {read['args']['at']} instead of {place}")


def has_addr2line():
    return subprocess.run(["sh", "-c", "command -v addr2line"], capture_output=True, check=False).returncode == 0


class Page(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects headings."""
    EMPTY = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.links = [], [], []
        self.feed(text)
        check(not self.open, f"not closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_startendtag(self, tag, attributes):
        """An element that is closed at once."""

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}")
        if self.open:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def check_page(name):
    text = pathlib.Path(name).read_text()
    page = Page(text)
    check(page.headings == ["Advice", "Timeline", "Bytes by file offset and time", "Sizes", "Calls"], f"headings: {page.headings}")
    check(not page.links and "url(" not in text and "<script" not in text, f"the page needs something else: {page.links}")
    check("prefers-color-scheme: dark" in text, "no colours for the dark")
    check("MPI_File_write_at_all" in text and re.search(r'<rect class="w"', text), "nothing is drawn")


def check_run():
    run(SHIMA, "run", "-n", str(RANKS), "--trace", "t.json", "--html", "t.html", "./job", go_directory("first"))
    check_trace("t.json")
    check_page("t.html")
    check(not list(pathlib.Path(".").glob(".shima-trace*")), "the temporary directory is left")


def trace_many(name, *arguments):
    pathlib.Path(name).mkdir()
    command = [os.environ["MPIEXEC"], "-n", "1", SHIMA, "exec", "./many", *arguments]
    run(*command, env={**os.environ, "SHIMA_TRACE": f"{os.getcwd()}/{name}", "SHIMA_TRACE_LIMIT": "64K"})
    done = run(SHIMA, "trace", name, "--out", f"{name}.json", "--html", f"{name}.html")
    return done, *calls_in(f"{name}.json")


def check_exec():
    """Another launcher, an environment variable, and a merge of its own."""
    done, other, calls = trace_many("short", "3000")
    most = max(call["args"].get("calls", 1) for call in calls)
    count = sum(call["args"].get("calls", 1) for call in calls)
    check("dropped" not in done.stderr and other["dropped_calls"] == 0, f"nothing is dropped: {done.stderr}")
    check(count == 3002 and most > 1, f"{count} calls are written, at most {most} in an event")
    check(sum(call["args"].get("bytes", 0) for call in calls) == 300_000, "all bytes are in the trace")


def check_full():
    """Too little room for calls that do not share events drops some, and says so."""
    done, other, calls = trace_many("full", "3000", "apart")
    check("calls were dropped" in done.stderr, f"says that it dropped: {done.stderr}")
    check(other["dropped_calls"] + len(calls) == 3002, f"{other['dropped_calls']} dropped, {len(calls)} written")
    check("calls are not in the trace" in pathlib.Path("full.html").read_text(), "the page says that calls were dropped")


def check_advice():
    """The page names the calls that should change."""
    run(SHIMA, "run", "-n", "1", "--html", "a.html", "./many", "1500")
    text = pathlib.Path("a.html").read_text()
    advice = text[text.index("Advice"):text.index("Timeline")]
    check("MPI_File_set_view" in advice and "MPI_File_write_at" in advice and "1500 calls" in advice, f"advice: {advice}")
    check("many.c:" in advice or not has_addr2line(), f"advice without a place: {advice}")


def check_killed():
    """The calls of a rank that was killed are in the trace."""
    directory = pathlib.Path("killed")
    directory.mkdir()
    with subprocess.Popen([SHIMA, "run", "-n", "1", "--trace", "k.json", "./job", directory]) as job:
        deadline = time.monotonic() + 60
        while not (directory / "ready.0").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        pids = subprocess.run(["pgrep", "-x", "job"], capture_output=True, text=True, check=False).stdout.split()
        for pid in pids:
            with contextlib.suppress(OSError):  # of another test, and ended meanwhile
                if os.readlink(f"/proc/{pid}/cwd") == os.getcwd():
                    os.kill(int(pid), signal.SIGKILL)
        check(job.wait(60) != 0, "the job fails")
    names = [call["name"] for call in calls_in("k.json")[1]]
    check(names.count("MPI_File_write_at") == 3 and "MPI_File_sync" in names, f"calls of the killed rank: {names}")


def check_limits():
    """A program whose files may not grow runs without a trace, and without a board. MPICH needs larger files."""
    subprocess.run(["cc", "-o", "small", "small.c", f"-I{SOURCE}/include", f"-L{LIBRARIES}", "-lshima-pff", f"-Wl,-rpath,{LIBRARIES}"], check=True)
    pathlib.Path("none").mkdir()
    environment = {**os.environ, "SHIMA_TRACE": "none"}
    done = run("bash", "-c", "ulimit -f 8; exec ./small", env=environment)
    check("is not traced" in done.stderr, f"says so: {done.stderr}")
    check(pathlib.Path("small.data").read_bytes() == b"x" * 1000, "the program has written its file")
    check(not os.listdir("none"), "nothing is left of the trace")
    done = run(SHIMA, "trace", "none", "--out", "n.json", status=2)
    check("no process has written a trace" in done.stderr, f"nothing to merge: {done.stderr}")
    run("./small", env=environment)
    run(SHIMA, "trace", "none", "--out", "n.json")
    check([call["name"] for call in calls_in("n.json")[1]] == ["write"], "pff.h is traced, too")
    run(SHIMA, "run", "-n", "1", "--trace", "no/such/directory/t", "./many", "1", status=2)


def check_beside_lapi():
    """A program of MPI and LAPI: both are in one process of the trace."""
    subprocess.run([os.environ["MPICC"], "-g", "-O1", "-o", "beside", SOURCE / "tests/lapi/beside_mpi.c", f"-I{SOURCE}/include",
                    f"-L{LIBRARIES}", "-llapi", f"-Wl,-rpath,{LIBRARIES}"], check=True)
    run(SHIMA, "run", "--lapi", "--trace", "b.json", "--html", "b.html", os.environ["MPIEXEC"], "-n", "2", SHIMA, "exec", "./beside")
    other, calls = calls_in("b.json")
    check(other["processes"] == 2 and not other["missing_ranks"], f"other data: {other}")
    expected = {"MPI_File_open": 1, "MPI_File_write_at_all": 1, "MPI_File_close": 1, "LAPI_Init": 1, "LAPI_Address_init": 2, "LAPI_Put": 200,
                "LAPI_Waitcntr": 200, "LAPI_Gfence": 201, "LAPI_Term": 1}
    for rank in range(2):
        own = [call for call in calls if call["pid"] == rank]
        check(collections.Counter(call["name"] for call in own) == expected, f"rank {rank}: {collections.Counter(c['name'] for c in own)}")
        check({call["args"]["task"] for call in own if call["name"] == "LAPI_Put"} == {1 - rank}, f"rank {rank}: partners")
    page = Page(pathlib.Path("b.html").read_text())
    check(page.headings == ["Advice", "Timeline", "Between tasks", "Bytes by file offset and time", "Sizes", "Sizes between tasks", "Calls"],
          f"headings: {page.headings}")


SMALL = r"""
#include <shima/pff.h>
#include <string.h>
int main(void) {
  char data[1000];
  pff_file* file;
  memset(data, 'x', sizeof data);
  if (pff_open("small.data", PFF_WRITE | PFF_CREATE, NULL, NULL, &file) != 0) return 1;
  if (pff_write(file, pff_span(0, sizeof data), data) != sizeof data) return 2;
  return pff_close(file) == 0 ? 0 : 3;
}
"""
MANY = r"""
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  char data[200] = "";
  MPI_File file;
  MPI_Datatype apart; /* in memory */
  MPI_Init(&argc, &argv);
  MPI_Type_vector(100, 1, 2, MPI_BYTE, &apart);
  MPI_Type_commit(&apart);
  MPI_File_open(MPI_COMM_WORLD, "many.data", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < atoi(argv[1]); ++i)
    MPI_File_write_at(file, i * 100, data, argc > 2 ? 1 : 100, argc > 2 ? apart : MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"""


def main():
    pathlib.Path("many.c").write_text(MANY)
    pathlib.Path("small.c").write_text(SMALL)
    for name, source in (("job", SOURCE / "tests/tool/top_job.c"), ("many", "many.c")):
        subprocess.run([os.environ["MPICC"], "-g", "-O1", "-o", name, source], check=True)
    for each in (check_limits, check_run, check_exec, check_full, check_advice, check_killed, check_beside_lapi):
        each()
    if failures:
        sys.exit(1)
    print("all as expected")


main()
