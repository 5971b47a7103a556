"""What it costs to have another task of the same address space do something.

The experiment of a requester on one core and a delegatee on another, with writes to a cached file in
place of messages: below which size is the conversation dearer than the work? And from which size
on is a payload better left where it is, for the delegatee to work on by its address, than carried
along in the request?
"""

from lib.results import LOWER, Sample, Verdict
from lib.section import Job, Section
from lib.subjects import ROOT, TOOL, binary

SIZES = [4**power for power in range(11)]
MODES = {"spinning": ("spin", "apart"), "sleeping": ("sleep", "apart"),
         "sleeping, one core": ("sleep", "together")}
ROUND_TRIP_NS = 600


class Delegation(Section):
    name = "delegation"
    title = "Delegation: one task of a space asks another, which has a core of its own"
    lead = ("nanoseconds a request, median of 15 rounds in each job. 'copy': into the delegatee's "
            "memory; 'write': to a cached file, by oneself or by the delegatee")
    limit = False

    def skip_reason(self):
        root = ROOT / "build/release/lib/shima/pvas-root"
        return None if root.exists() else "no address spaces of many programs on this machine"

    def columns(self, context):
        return ["own", "inline", "by address"]

    def row(self, mode, thing, size):
        return f"{mode}: {thing}" if thing == "round trip" else f"{mode}: {thing} {size} B"

    def row_names(self, context):
        return [self.row(mode, thing, size) for mode in MODES
                for thing, sizes in (("round trip", [0]), ("copy", SIZES), ("write", SIZES))
                for size in sizes]

    def jobs(self, context):
        for mode in MODES:
            yield Job(mode, "inline", lambda m=mode: self.measure(context, m))

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
        row = self.row("spinning", "round trip", 0)
        value = results.median(row, "inline") if row in results.samples else None
        if value:
            results.verdicts.append(Verdict(row, "inline", f"{ROUND_TRIP_NS} ns",
                                            value / ROUND_TRIP_NS, 1.0, LOWER))
