"""A new file every step: MPI-IO against the naive program (examples/steps.cpp)."""

import filecmp
import statistics

from lib.fresh_directory import fresh_directory
from lib.results import LOWER, Sample
from lib.section import Job, Section, problem_of

MOST_PAIRS, ENOUGH_SECONDS = 5, 10  # the seconds of the whole experiment, in proportion


def middle(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def difference(mpi_files, naive_files):
    for path in sorted(mpi_files.glob("step*.mpi")):
        if not filecmp.cmp(path, naive_files / path.with_suffix(".naive").name, shallow=False):
            return f"WRONG DATA in {path.name}"
    return ""


class Steps(Section):
    name = "steps"
    title = "A new file every step: MPI-IO against the naive program"
    lead = ("seconds for 100 steps of 100 000 doubles a rank, as the user timed it; less is better. "
            "Both halves draw random numbers at each step; 'drawing' is that alone")
    limit = False
    is_warmed = False  # a job takes as long as what releases the warm memory
    usual = (2, 8, 24)
    figures = (("MPI-IO half", "mpi_s", "s"), ("naive half", "naive_s", "s"),
               ("drawing", "drawing_s", "s"), ("MPI-IO / naive", "ratio", "ratio"))

    def __init__(self, usual=usual):
        self.usual = usual

    def measured_nps(self, context):
        return context.nps(self.usual)

    def row_names(self, context):
        return [f"np {np} {label}" for np in self.measured_nps(context)
                for label, _, _ in self.figures]

    def jobs(self, context):
        for np in self.measured_nps(context):
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda n=np, s=subject: self.measure(context, s, n))

    def measure(self, context, subject, np):
        """The median of several pairs, or one pair of long jobs. Each half is a job of its own, so that
        the first does not slow down the second; the halves of a pair follow one another."""
        pairs, enough_s = [], ENOUGH_SECONDS * min(1, context.scale)
        while len(pairs) < MOST_PAIRS and sum(pair["seconds"] for pair in pairs) < enough_s:
            pairs.append(self.pair(context, subject, np))
        problem = "; ".join(sorted({pair["problem"] for pair in pairs} - {""}))
        return [Sample(f"np {np} {label}", middle([pair.get(key) for pair in pairs]), unit, LOWER, problem)
                for label, key, unit in self.figures]

    def pair(self, context, subject, np):
        with fresh_directory(context.directory) as mpi_files, fresh_directory(context.directory) as naive_files:
            halves = [self.half(context, subject, np, *half)
                      for half in (("mpi", mpi_files), ("naive", naive_files))]
            problem = (next((problem for _, problem, _ in halves if problem), "")
                       or difference(mpi_files, naive_files))
        (mpi, _, one), (naive, _, other) = halves
        pair = {"problem": problem, "seconds": one + other}
        if mpi and naive:
            pair |= mpi | {"naive_s": naive["naive_s"], "ratio": mpi["mpi_s"] / naive["naive_s"]}
        return pair

    def half(self, context, subject, np, half, directory):
        """The record, what is wrong with it, and the seconds of the job."""
        steps = context.scaled(100, 2)
        # No statistics: they would add a meeting and a line of text to each step's close.
        environment = subject.flavour.environment() | {"SHIMA_STATS": ""}
        outcome = context.measure(subject.command(np, "steps", [
            "--steps", steps, "--dir", directory, "--half", half, "--sync-first", "--json"]), environment)
        record = outcome.records[0] if outcome.records else None
        return record, problem_of(outcome, record, subject, frozenset()), outcome.seconds

    def targets(self, results, context):
        for np in self.measured_nps(context):
            results.require_below(f"np {np} MPI-IO / naive", 1.0, "the naive half")
        row = "np 24 MPI-IO half"
        results.require(row, 0.1, "stock MPICH", [row], ["mpich"], only="shima/mpich")
        results.require(row, 0.5, "stock Open MPI", [row], ["openmpi"], only="shima/openmpi")
