"""The cost of an operation by another task of the same address space.

The experiment of a requester on one core and a delegatee on another, with writes to a cached file
in place of messages: below which size does the delegation cost more than the work? And from which
size on is a payload better passed by address, for the delegatee to use in place, than inside the
request?
"""

from experiments.delegated_net import tell_crossover
from lib import places
from lib.places import TOOL
from lib.programs import binary
from lib.results import LOWER, Sample, Verdict
from lib.section import Job, Section

SIZES = [4**power for power in range(11)]
MODES = {"spinning": ("spin", "apart"), "sleeping": ("sleep", "apart"),
         "sleeping, one core": ("sleep", "together")}
OVERLAPS = {"cached": [], "past the page cache": ["direct"]}
ROUND_TRIP_NS = 600
MOST_INLINE = 4096


class Delegation(Section):
    name = "delegation"
    title = "Delegation: one task of a space sends requests to another, which has its own core"
    lead = ("nanoseconds a request, median of 151 rounds in each job. 'copy': into the delegatee's "
            "memory; 'write': to a cached file, by the task itself or by the delegatee; the last ones: "
            "milliseconds for 32 MiB each and as much computing, own: by threads")
    limit = False

    def skip_reason(self):
        return places.why_no_spaces()

    def columns(self, context):
        return ["own", "inline", "by address"]

    def row(self, mode, thing, size):
        return f"{mode}: {thing}" if thing == "round trip" else f"{mode}: {thing} {size} B"

    def crossover_row(self, mode):
        return f"{mode}: write, within a quarter of its own from"

    def row_names(self, context):
        rows = [self.row(mode, thing, size) for mode in MODES
                for thing, sizes in (("round trip", [0]), ("copy", SIZES), ("write", SIZES))
                for size in sizes]
        return rows + [self.overlap_row(disk) for disk in OVERLAPS] + [
            self.crossover_row(mode) for mode in MODES]

    def overlap_row(self, disk):
        return f"two tasks compute and write, {disk}"

    def jobs(self, context):
        for mode in MODES:
            yield Job(mode, "inline", lambda m=mode: self.measure(context, m))
        for disk in OVERLAPS:
            yield Job(disk, "own", lambda d=disk: self.overlap(context, d))

    def overlap(self, context, disk):
        """Own: by a thread of each task."""
        path, row = context.directory / "overlap.dat", self.overlap_row(disk)
        outcome = context.measure([str(TOOL), "pvas", "run", "-n", "3",
                                   str(binary("delegated_overlap")), str(path), *OVERLAPS[disk]])
        path.unlink(missing_ok=True)
        if not outcome.records:
            return [Sample(row, None, "ms", LOWER, outcome.problem or "no result")]
        ways = {"threads": "own", "delegatee": "by address"}
        return [Sample(row, record["both_ms"], "ms", LOWER, outcome.problem,
                       subject=ways[record["way"]]) for record in outcome.records]

    def measure(self, context, mode):
        path = context.directory / "delegate.dat"
        outcome = context.measure([str(TOOL), "pvas", "run", "-n", "2", str(binary("delegate")),
                                   *MODES[mode], str(path)])
        path.unlink(missing_ok=True)
        if not outcome.records:
            return [Sample(self.row(mode, "round trip", 0), None, "ns", LOWER,
                           outcome.problem or "no result")]
        return [Sample(self.row(mode, record["thing"], record["bytes"]), record["ns"], "ns", LOWER,
                       outcome.problem or ("WRONG DATA" if record["wrong_bytes"] else ""),
                       subject=record["way"]) for record in outcome.records]

    def targets(self, results, context):
        for mode in MODES:
            for way in ("inline", "by address"):
                tell_crossover(results, self.crossover_row(mode), self.row(mode, "write", "{}"),
                               [size for size in SIZES if way != "inline" or size <= MOST_INLINE],
                               "own", way)
        row = self.row("spinning", "round trip", 0)
        # Other processes only add to the time: the best job's median of rounds.
        value = results.best(row, "inline") if row in results.samples else None
        if value:
            results.verdicts.append(Verdict(row, "inline", f"{ROUND_TRIP_NS} ns",
                                            value / ROUND_TRIP_NS, 1.0, LOWER))
