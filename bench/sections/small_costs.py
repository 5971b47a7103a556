"""Small operations, one at a time."""

from lib.results import LOWER, Sample
from lib.section import Job, Section


# By number of ranks, which calls, and how many times the better stock's time each may take.
THINGS = {
    2: {"open+close": 1.2, "set_view": 1.2, "write_at of 8 B": 1.2, "read_at of 8 B": 1.1, "seek": 1.1,
        "seek + get_position": 1.1, "write_shared of 8 B": 1.2, "iwrite_at of 8 B + wait": 1.2,
        "write_at_all of 8 B": 1.1, "strided write_at of 16 doubles": 1.1, "strided read_at of 16 doubles": 1.1,
        "strided write_at of 1024 doubles": 1.1, "strided read_at of 1024 doubles": 1.1},
    8: {"write_at_all of 8 B": 1.0},
}


class SmallCosts(Section):
    name = "small_costs"
    title = "Small operations, one at a time"
    lead = "nanoseconds a call on a cached file, the slowest rank's; median of 15 rounds in each job"
    limit = False
    is_warmed = False

    def row(self, np, thing):
        return f"np {np} {thing}"

    def things(self, np):
        return THINGS.get(np, THINGS[2])

    def row_names(self, context):
        return [self.row(np, thing) for np in context.nps(list(THINGS)) for thing in self.things(np)]

    def jobs(self, context):
        for np in context.nps(list(THINGS)):
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda n=np, s=subject: self.measure(context, s, n))

    def measure(self, context, subject, np):
        # No statistics: they would count and time each access, which would be measured too.
        environment = subject.flavour.environment() | {"SHIMA_STATS": ""}
        arguments = [context.directory / "small.dat", *self.things(np)]
        outcome = context.measure(subject.command(np, "small_costs", arguments), environment)
        ns = {record["thing"]: record["ns"] for record in outcome.records}
        return [Sample(self.row(np, thing), ns.get(thing), "ns", LOWER,
                       outcome.problem or ("" if thing in ns else "no result"))
                for thing in self.things(np)]

    def targets(self, results, context):
        for np in context.nps(list(THINGS)):
            for thing, most in self.things(np).items():
                results.require(self.row(np, thing), most, "the better stock", [self.row(np, thing)], results.stock())
