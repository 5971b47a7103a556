"""Random patterns, each defined by its seed, in collective calls."""

import dataclasses

from lib.results import Sample
from lib.section import OPS, Job, Section, limit_job, problem_of

# Sizes from which pieces of a file are pulled, and cached pieces read by the ranks that need them
# (src/collective/plan/plan.cpp).
PULL_PIECE_BYTES, OWN_READ_PIECE_BYTES = 2048, 4096


class Random(Section):
    name = "random"
    title = "Ten random patterns, collective"
    lead = "MiB/s from open to close; the pattern follows from its seed"
    kinds = ("nested vectors", "indexed", "indexed blocks", "subarray", "struct")
    patterns = 10

    def row_names(self, context):
        return [row for np in context.nps([3, 8]) for _, _, row in self.rows(context, np)]

    def rows(self, context, np):
        for seed in range(context.random_seed, context.random_seed + self.patterns):
            for op in OPS:
                yield seed, op, f"np {np} seed {seed} {self.kinds[seed % len(self.kinds)]} {op}"

    def jobs(self, context):
        size_mib = context.size_mib(128)
        for np in context.nps([3, 8]):
            rows = {o: [row for _, op, row in self.rows(context, np) if op == o] for o in OPS}
            yield limit_job(context, f"np {np}", size_mib, rows)
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name, lambda n=np, s=subject:
                          self.measure(context, s, n, size_mib))

    def measure(self, context, subject, np, size_mib):
        path = context.directory / "random.dat"
        outcome = context.start(subject, np, "random_patterns",
                                [path, context.random_seed, self.patterns, size_mib])
        path.unlink(missing_ok=True)
        by_row = {(record["seed"], record["op"]): record for record in outcome.records}
        # A job that failed keeps the figures of the patterns that it finished.
        # One file is closed per record, in the same order.
        stats_of = dict(zip(by_row, outcome.stats))
        return [self.sample(row, by_row.get((seed, op)), outcome, subject, stats_of.get((seed, op)))
                for seed, op, row in self.rows(context, np)]

    def expected(self, op, stats):
        """The path for these sizes of pieces; Shima counts adjacent pieces as one."""
        counters = stats["counters"]
        moved = counters["bytes_written" if op == "write" else "bytes_read"]
        if op == "read" and moved >= OWN_READ_PIECE_BYTES * counters["file_pieces"]:
            return {"independent"}
        pieces = max(counters["file_pieces"], counters["memory_pieces"])
        return {"pull"} if moved >= PULL_PIECE_BYTES * pieces else {"pack"}

    def sample(self, row, record, outcome, subject, stats):
        if record is None:
            return Sample(row, None, problem=outcome.problem or "no result")
        done = dataclasses.replace(outcome, problem="", stats=[stats] if stats else [])
        holes = record.get("hole_bytes_written", 0)
        note = f"writes {holes} bytes into holes" if holes and not subject.shima else ""
        return Sample(row, record["open_close_mib_s"], note=note,
                      problem=problem_of(done, record, subject,
                                         self.expected(record["op"], stats) if stats else set()))

    def targets(self, results, context):
        for np in context.nps([3, 8]):
            for _, _, row in self.rows(context, np):
                results.require(row, 1.0, "the best stock", [row], results.stock())
