"""Pieces of a few doubles, dealt at random over the ranks, in one collective call: the cost of a piece."""

from lib.results import LOWER, Sample
from lib.section import Job, Section, problem_of

WAYS = {"one hindexed type": "list", "400 variables": "variables"}
CALLS = ("write", "write again", "read", "read again")


class Irregular(Section):
    name = "irregular"
    title = "Irregular: 2 million pieces of 1 to 12 doubles, dealt at random over 8 ranks, cached"
    lead = "wall time of the collective call divided by the pieces of all ranks, in ns"
    limit = False

    def row(self, way, call):
        return f"{way}, {call}"

    def row_names(self, context):
        return [self.row(way, call) for way in WAYS for call in CALLS]

    def jobs(self, context):
        for way in WAYS:
            for subject in context.subjects:
                yield Job(way, subject.name, lambda s=subject, w=way: self.measure(context, s, w))

    def measure(self, context, subject, way):
        pieces = 250_000 if context.quick else 2_000_000
        arguments = [context.directory / "irregular.dat", WAYS[way], pieces]
        outcome = context.start(subject, 8, "irregular", arguments)
        record = outcome.records[0] if outcome.records else None
        problem = problem_of(outcome, record, subject, frozenset())
        return [Sample(self.row(way, call), record[call] if record else None, "ns", LOWER, problem) for call in CALLS]

    def targets(self, results, context):
        for row in self.row_names(context):
            results.require(row, 1 / 3, "the better stock", [row], results.stock())
