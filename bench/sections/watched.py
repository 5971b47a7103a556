"""What `shima top` and a trace cost a job.

The array by columns by each way, open to close: many small calls by one rank after the other (UT), and few large
ones (COL). Beside a job under `shima top` runs the view with its usual interval, on a terminal of its own; it takes
its processor time from the job's cores. Each rank has a core. Starting a job is not timed, nor is writing the
trace at its end. Equal jobs differ by several percent, so the mean ratio of the pairs of one repetition is judged:
with enough repetitions it is missed only if its whole 95 % interval is (--reps 13).
"""

import contextlib
import os
import pathlib
import pty
import statistics
import subprocess
import tempfile
import threading

from lib.interval import interval
from lib.places import TOOL
from lib.programs import binary
from lib.results import HIGHER, Verdict
from lib.section import OPS, Job, Section, rate

RANKS = 2
WAYS = ("UT", "COL")
ALONE, TOP, TRACE = "alone", "shima top", "--trace"
LEAST = 1 / 1.02
LEAST_PAIRS = 6  # of fewer, the interval contains anything


@contextlib.contextmanager
def view():
    """`shima top` of the only job of this machine, again and again until the end: it ends with the job."""
    ours, terminal = pty.openpty()
    ended = threading.Event()

    def keep_watching():
        while not ended.is_set():
            with subprocess.Popen([str(TOOL), "top", "--here"], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL,
                                  env=os.environ | {"TERM": "xterm"}) as top:
                while top.poll() is None and not ended.wait(0.05):
                    pass
                top.kill()

    def drop_text():
        with contextlib.suppress(OSError):
            while os.read(ours, 65536):
                pass

    threads = [threading.Thread(target=keep_watching), threading.Thread(target=drop_text)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        threads[0].join()
        os.close(terminal)
        threads[1].join()
        os.close(ours)


class Watched(Section):
    name = "watched"
    title = f"An array by columns, {RANKS} ranks, watched and traced"
    lead = "MiB/s from open to close under Shima; a read reads the file just written"
    limit = False

    def ways(self, context):
        return [(subject, how) for subject in context.subjects if subject.shima for how in (ALONE, TOP, TRACE)]

    def column(self, subject, how):
        return f"{subject.flavour.label()}, {how}"

    def columns(self, context):
        return [self.column(*each) for each in self.ways(context)]

    def row_names(self, context):
        return [f"{way} {op}" for way in WAYS for op in OPS]

    def jobs(self, context):
        for way in WAYS:
            for subject, how in self.ways(context):
                yield Job(f"{way} {subject.name}", self.column(subject, how),
                          lambda w=way, s=subject, h=how: self.measure(context, s, w, h))

    def measure(self, context, subject, way, how):
        """The trace is elsewhere: context.measure() takes the first new file in the directory for the job's."""
        path = context.directory / "columns.dat"
        with tempfile.TemporaryDirectory() as elsewhere:
            samples = [self.measure_op(context, subject, way, how, op, path, pathlib.Path(elsewhere, "trace.json")) for op in OPS]
        path.unlink(missing_ok=True)
        return samples

    def measure_op(self, context, subject, way, how, op, path, trace):
        command = [str(TOOL), "run", *(["--trace", str(trace)] if how == TRACE else []), "--mpiexec", subject.flavour.mpiexec,
                   "-n", str(RANKS), str(binary("columns", subject.flavour)), "--way", way, "--op", op, "--size-mib",
                   str(context.size_mib(1024)), "--file", str(path), "--json"]
        with view() if how == TOP else contextlib.nullcontext():
            # Statistics, which users have rarely, take a longer way in each call.
            outcome = context.measure(command, subject.flavour.environment() | {"SHIMA_STATS": ""})
        sample = rate(f"{way} {op}", outcome, subject)
        if how == TRACE and not sample.problem and not trace.exists():
            sample.problem = "no trace was written"
        return sample

    def targets(self, results, context):
        for row in results.samples:
            for subject, how in self.ways(context):
                mine, alone = (results.values(row, self.column(subject, each)) for each in (how, ALONE))
                if how != ALONE and mine and alone:
                    results.verdicts.append(self.verdict(row, self.column(subject, how), mine, alone))

    @staticmethod
    def verdict(row, column, mine, alone):
        """Of the pairs of one repetition each; of the medians, if a job is missing."""
        if len(mine) != len(alone):
            return Verdict(row, column, "the job alone", statistics.median(mine) / statistics.median(alone), LEAST, HIGHER)
        ratio, low, high = interval([watched / itself for watched, itself in zip(mine, alone)])
        may_be_even = len(mine) >= LEAST_PAIRS and high >= LEAST
        return Verdict(row, column, "the job alone", ratio, LEAST, HIGHER, may_be_even, f"95 %: {low:.3f} to {high:.3f}")
