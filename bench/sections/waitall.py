"""MPI_Waitall under a layer that watches requests."""

from lib.results import LOWER, Sample
from lib.section import Job, Section

MESSAGES = "messages only"
# Rows of calls with a file request too: from the last completion to the return.
MIXED = {"message last": "message last: to the return", "file last": "file request last: to the return"}
MOST_US = 100


class Waitall(Section):
    name = "waitall"
    title = "MPI_Waitall, 2 ranks"
    lead = "microseconds, medians in each job: an exchange of 8 bytes; and how late a call returns"
    limit = False
    is_warmed = False

    def row_names(self, context):
        return [MESSAGES, *MIXED.values()]

    def jobs(self, context):
        for subject in context.subjects:
            yield Job("np 2", subject.name, lambda s=subject: self.measure(context, s))

    def measure(self, context, subject):
        environment = subject.flavour.environment() | {"SHIMA_STATS": ""}
        command = subject.command(2, "waitall", [context.directory / "waitall.dat"])
        outcome = context.measure(command, environment)
        us = {record["thing"]: record["ns"] / 1e3 for record in outcome.records}
        return [Sample(row, us.get(thing), "us", LOWER, outcome.problem or ("" if thing in us else "no result"))
                for thing, row in {"messages": MESSAGES, **MIXED}.items()]

    def targets(self, results, context):
        for name in results.stock():
            results.require(MESSAGES, 1.1, "its own stock", [MESSAGES], [name], only=f"shima/{name}")
        for row in MIXED.values():
            results.require_below(row, MOST_US, "microseconds")
