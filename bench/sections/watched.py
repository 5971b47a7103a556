"""What `shima top` and a trace cost a job.

An array by columns, again and again: many small calls by one rank after the other (UT), and collective ones (COL).
Each rank has a core. Equal jobs differ by more than what is looked for, so a traced job is compared with itself:
by MPI_Pcontrol it traces every other block of its calls (bench/mpi/traced.c). The mean ratio of the jobs is judged, and
missed only if its whole 95 % interval is (--reps 7). `shima top` reads memory that a job writes in any case; it is judged by
the processor time that it takes from the job's cores, its start included. It runs with its usual interval, on a terminal
of its own. Making the trace's file at the end of the job is not timed.
"""

import contextlib
import json
import os
import pathlib
import pty
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from lib.interval import interval
from lib.places import TOOL
from lib.programs import binary
from lib.results import HIGHER, LOWER, Sample, Verdict
from lib.section import OPS, Job, Section, problem_of

RANKS = 2
PASSES = 10  # even: each pass exchanges the calls that are traced and those that are not
WATCHED_PASSES = (PASSES, 4 * PASSES, 16 * PASSES)  # of jobs, until a view has seen enough of one
WAYS = ("UT", "COL")
WITHOUT, TRACE, TOP = "without", "--trace", "shima top"
MOST = 1.02
LEAST_JOBS = 3  # of fewer, the interval contains anything
LEAST_VIEW_S = 2  # in less time, the start of the view is most of its work
LONG_S = 3 * LEAST_VIEW_S  # a job of which a view sees enough, if it sees anything


class View:
    """`shima top` of the only job of this machine, again and again until the end: it ends with the job."""

    def __init__(self):
        self.ended = threading.Event()
        self.lives = []  # (seconds, processor seconds) of those that ended with the job

    def watch(self, terminal):
        while not self.ended.is_set():
            begun, command = time.monotonic(), [str(TOOL), "top", "--here"]
            top = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL,
                                   env=os.environ | {"TERM": "xterm"})
            while (ended := os.wait4(top.pid, os.WNOHANG))[0] == 0:
                if self.ended.wait(0.05):
                    os.kill(top.pid, signal.SIGKILL)
            _, status, usage = ended
            top.returncode = os.waitstatus_to_exitcode(status)
            if top.returncode in (0, -signal.SIGKILL):
                self.lives.append((time.monotonic() - begun, usage.ru_utime + usage.ru_stime))

    def share(self):
        """Of a core, in the view that saw most of the job; None if none saw enough of one."""
        seconds, processor_s = max(self.lives, default=(0, 0))
        return processor_s / seconds if seconds >= LEAST_VIEW_S else None

    @staticmethod
    def drop_text(ours):
        with contextlib.suppress(OSError):
            while os.read(ours, 65536):
                pass

    @contextlib.contextmanager
    def running(self):
        ours, terminal = pty.openpty()
        threads = [threading.Thread(target=self.watch, args=[terminal]), threading.Thread(target=self.drop_text, args=[ours])]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.ended.set()
            threads[0].join()
            os.close(terminal)
            threads[1].join()
            os.close(ours)


def problem_of_trace(path, calls):
    """Events that are missing would make the calls look cheap."""
    if not path.exists():
        return "no trace was written"
    try:
        trace = json.loads(path.read_text())
    except ValueError as error:
        return f"the trace is no JSON: {error}"
    events = sum(event["args"].get("calls", 1) for event in trace["traceEvents"] if event["ph"] == "X")
    dropped = trace["otherData"]["dropped_calls"]
    return "" if (events, dropped) == (calls, 0) else f"{events} of {calls} calls are in the trace, {dropped} were dropped"


class Watched(Section):
    name = "watched"
    title = f"An array by columns, {RANKS} ranks, traced and watched"
    lead = "MiB/s in the calls, without and with a trace in one job; processor time of `shima top` in % of a core"
    limit = False
    is_warmed = False  # each job creates its file before it measures; what releases warm memory would disturb that

    def column(self, subject, how):
        return f"{subject.flavour.label()}, {how}"

    def subjects(self, context):
        return [subject for subject in context.subjects if subject.shima]

    def columns(self, context):
        return [self.column(subject, how) for subject in self.subjects(context) for how in (WITHOUT, TRACE, TOP)]

    def row_names(self, context):
        return [row for way in WAYS for op in OPS for row in (f"{way} {op}", self.time_row(way, op))]

    @staticmethod
    def time_row(way, op):
        return f"{way} {op}, processor time"

    def jobs(self, context):
        for way in WAYS:
            for op in OPS:
                for subject in self.subjects(context):
                    yield Job(f"{way} {op}", self.column(subject, TRACE),
                              lambda w=way, o=op, s=subject: self.trace(context, s, w, o))
                    yield Job(f"{way} {op}", self.column(subject, TOP),
                              lambda w=way, o=op, s=subject: self.watch(context, s, w, o))

    def start(self, context, subject, way, op, *, passes=PASSES, options=()):
        path = context.directory / "traced.dat"
        command = [str(TOOL), "run", *options, "--mpiexec", subject.flavour.mpiexec, "-n", str(RANKS),
                   str(binary("traced", subject.flavour)), str(path), str(context.size_mib(1024)), way, op, str(passes)]
        # Statistics, which users have rarely, take a longer way in each call.
        outcome = context.measure(command, subject.flavour.environment() | {"SHIMA_STATS": ""})
        path.unlink(missing_ok=True)
        record = outcome.records[0] if outcome.records else None
        return record or {}, problem_of(outcome, record, subject, frozenset()), outcome.seconds

    def trace(self, context, subject, way, op):
        """The trace is elsewhere: context.measure() takes the first new file in the directory for the job's."""
        with tempfile.TemporaryDirectory() as elsewhere:
            trace = pathlib.Path(elsewhere, "trace.json")
            record, problem, _ = self.start(context, subject, way, op, options=["--trace", str(trace)])
            problem = problem or problem_of_trace(trace, record["traced_calls"])
        return [Sample(f"{way} {op}", record.get(figure), problem=problem, subject=self.column(subject, how))
                for how, figure in ((WITHOUT, "without_mib_s"), (TRACE, "traced_mib_s"))]

    def watch(self, context, subject, way, op):
        for passes in WATCHED_PASSES:
            view = View()
            with view.running():
                _, problem, seconds = self.start(context, subject, way, op, passes=passes)
            share = view.share()
            if share or problem or seconds > LONG_S:
                break
        note = "" if share else f"no view saw {LEAST_VIEW_S} s of the job"
        return [Sample(self.time_row(way, op), share and 100 * share, "%", LOWER, problem, note)]

    def targets(self, results, context):
        for way in WAYS:
            for op in OPS:
                for subject in self.subjects(context):
                    self.judge_trace(results, f"{way} {op}", subject)
                    self.judge_view(results, self.time_row(way, op), subject)

    def judge_trace(self, results, row, subject):
        without, traced = (results.values(row, self.column(subject, how)) for how in (WITHOUT, TRACE))
        if not traced or len(traced) != len(without):
            return
        ratio, low, high = interval([one / other for one, other in zip(traced, without)])
        even = len(traced) >= LEAST_JOBS and high >= 1 / MOST
        results.verdicts.append(Verdict(row, self.column(subject, TRACE), "the calls without", ratio, 1 / MOST, HIGHER, even,
                                        f"95 %: {low:.3f} to {high:.3f}"))

    def judge_view(self, results, row, subject):
        shares = results.values(row, self.column(subject, TOP))
        if shares:
            results.verdicts.append(Verdict(row, self.column(subject, TOP), "a core", statistics.median(shares) / 100, MOST - 1, LOWER))
