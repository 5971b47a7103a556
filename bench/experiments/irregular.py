"""Pieces of a few doubles, dealt at random over the ranks, in one collective call: the cost of a piece.

The row "by hand" is a program that exchanges the pieces by MPI_Alltoallv and makes one contiguous pwrite
or pread a rank (bench/mpi/irregular_by_hand.c). It runs with the stock MPIs.
"""

from lib.results import LOWER, Sample
from lib.section import Job, Section, problem_of

WAYS = {"one hindexed type": "list", "400 variables": "variables"}
BY_HAND = "by hand"
CALLS = ("write", "write again", "read", "read again")


class Irregular(Section):
    name = "irregular"
    title = "Irregular: 2 million pieces of 1 to 12 doubles, dealt at random over 8 ranks, cached"
    lead = "wall time of the collective call divided by the pieces of all ranks, in ns"
    limit = False

    def row(self, way, call):
        return f"{way}, {call}"

    def row_names(self, context):
        return [self.row(way, call) for way in (*WAYS, BY_HAND) for call in CALLS]

    def jobs(self, context):
        for subject in context.subjects:
            for way in WAYS:
                yield Job("irregular", subject.name, lambda s=subject, w=way: self.measure(
                    context, s, w, "irregular", [WAYS[w]]))
            if not subject.shima:
                yield Job("irregular", subject.name, lambda s=subject: self.measure(
                    context, s, BY_HAND, "irregular_by_hand", []))

    def measure(self, context, subject, way, program, arguments):
        pieces = context.scaled(2_000_000, 40_000)
        outcome = context.start(subject, 8, program, [context.directory / "irregular.dat", *arguments, pieces])
        record = outcome.records[0] if outcome.records else None
        problem = problem_of(outcome, record, subject, frozenset())
        return [Sample(self.row(way, call), record[call] if record else None, "ns", LOWER, problem) for call in CALLS]

    def targets(self, results, context):
        for way in WAYS:
            for call in CALLS:
                row, by_hand = self.row(way, call), self.row(BY_HAND, call)
                results.require(row, 1 / 3, "the better stock", [row], results.stock())
                results.require(row, 1.0, "the program by hand", [by_hand], results.stock())
            for call in ("write", "read"):
                for name in results.shima():
                    results.require(self.row(way, f"{call} again"), 1.0, "the first call",
                                    [self.row(way, call)], [name], only=name)


class IrregularMemory(Section):
    """How much memory descriptions take in a call; for a rank it must not depend on the number of ranks."""

    name = "irregular_memory"
    title = "The same with 250 000 pieces a rank: memory that the first write takes, of all ranks"
    lead = ("divided by the size of the lists of lengths and offsets; the agents' windows, which have a fixed size, "
            "are made small by a hint")
    limit = False
    hints = "cb_buffer_size=262144"

    def row(self, np, what):
        return f"np {np}, {what}"

    def row_names(self, context):
        return [self.row(np, what) for np in context.nps([2, 8, 32]) for what in ("ratio", "memory", "lists")]

    def jobs(self, context):
        for np in context.nps([2, 8, 32]):
            for subject in context.subjects:
                if subject.shima or np < 32:  # the stocks take minutes
                    yield Job(f"np {np}", subject.name, lambda s=subject, n=np: self.measure(context, s, n))

    def measure(self, context, subject, np):
        pieces = context.scaled(250_000) * np
        command = subject.command(np, "irregular", [context.directory / "irregular.dat", "list", pieces])
        outcome = context.measure(command, subject.flavour.environment() | {"SHIMA_HINTS": self.hints})
        record = outcome.records[0] if outcome.records else None
        problem = problem_of(outcome, record, subject, frozenset())
        grown, lists = (record["grown_kib"], record["description_kib"]) if record else (None, None)
        return [Sample(self.row(np, "ratio"), grown / lists if lists else None, "ratio", LOWER, problem),
                Sample(self.row(np, "memory"), grown, "KiB", LOWER, problem),
                Sample(self.row(np, "lists"), lists, "KiB", LOWER, problem)]

    def targets(self, results, context):
        for np in context.nps([2, 8, 32]):
            row = self.row(np, "ratio")
            results.add("the lists", [Sample(row, 1.0, "ratio", LOWER)])
            results.require(row, 2.0, "the lists", [row], ["the lists"])
