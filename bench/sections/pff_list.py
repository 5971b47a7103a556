"""PFF's list and stride requests against a program's own system calls.

One call with 100 000 random requests of 4 KiB, against a loop of pread or pwrite: the time, and the
number of system calls. And the cost of building and parsing a request that moves no data: for a list
proportional to the number of pieces, for a stride constant.
"""

import shutil

from lib.results import LOWER, Sample, Verdict
from lib.section import OPS, Job, Section
from lib.programs import binary

REQUESTS, PIECE_BYTES, SPREAD = 100_000, 4096, 2


class PffList(Section):
    name = "pff_list"
    title = f"{REQUESTS} random requests of {PIECE_BYTES} bytes: one list, or one call each"
    lead = ("nanoseconds a piece on a cached file; system calls that move data; "
            "'build' is the cost of a request that moves no data")
    limit = False
    methods = ("loop", "list", "list, ring", "list, no ring", "stride")

    def columns(self, context):
        return list(self.methods)

    def row_names(self, context):
        return [*(f"{op}{what}" for op in OPS for what in ("", ", processor time")),
                "read, system calls", "build a request"]

    def jobs(self, context):
        yield Job("moving", "loop", lambda: self.moving(context))
        yield Job("calls", "loop", lambda: self.calls(context))
        yield Job("build", "list", lambda: self.build(context))

    def arguments(self, context):
        requests = REQUESTS // 8 if context.quick else REQUESTS
        return [context.directory / "list.dat", requests, PIECE_BYTES, SPREAD]

    def moving(self, context):
        outcome = self.start(context, "list", *self.arguments(context))
        return [Sample(record["op"] + what, record[key], "ns", LOWER, outcome.problem,
                       subject=record["method"])
                for record in outcome.records
                for what, key in (("", "ns_per_piece"), (", processor time", "cpu_ns_per_piece"))]

    def start(self, context, *arguments, under=()):
        outcome = context.measure([*under, str(binary("pff_list")), *map(str, arguments)])
        (context.directory / "list.dat").unlink(missing_ok=True)
        return outcome

    def calls(self, context):
        """The system calls of one read by each method, counted by strace."""
        row = "read, system calls"
        if not shutil.which("strace"):
            return [Sample(row, None, "", LOWER, note="needs strace")]
        samples = []
        for method in ("loop", "list", "list, no ring"):
            log = context.directory / "strace.log"
            outcome = self.start(context, "once", *self.arguments(context), method,
                                 under=("strace", "-f", "-c", "-o", str(log),
                                        "-e", "trace=pread64,preadv,preadv2,io_uring_enter"))
            # percent, seconds, microseconds a call, calls, perhaps errors, "total"
            totals = [line.split() for line in log.read_text().splitlines()
                      if line.endswith(" total")]
            samples.append(Sample(row, float(totals[0][3]) if totals else None, "calls", LOWER,
                                  outcome.problem, subject=method))
            log.unlink(missing_ok=True)
        return samples

    def build(self, context):
        outcome = self.start(context, "build", REQUESTS)
        return [Sample("build a request", record["ns"], "ns", LOWER, outcome.problem,
                       subject=record["method"]) for record in outcome.records]

    def targets(self, results, context):
        self.require(results, "read", "list", "loop", 1.0)
        self.require(results, "write", "list", "loop", 1.0)
        self.require(results, "read, system calls", "list", "loop", 0.01)
        self.require(results, "build a request", "stride", "list", 0.01)

    def require(self, results, row, method, other, needed):
        ours, theirs = results.median(row, method), results.median(row, other)
        if ours and theirs:
            results.verdicts.append(Verdict(row, method, other, ours / theirs, needed, LOWER))
