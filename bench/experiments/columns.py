"""An array by columns: pieces of 16 KiB three ways, and pieces of 64 bytes."""

from lib import runner
from lib.results import LOWER, Sample
from lib.section import COLLECTIVE_PATHS, OPS, Job, Section, limit_job, rate

WAYS = ("UT", "FV", "COL")


class Columns(Section):
    name = "columns"
    title = "An array by columns, 16 KiB pieces"
    lead = "MiB/s from open to close; a read reads the file just written"

    def row(self, np, way, op):
        return f"np {np} {way} {op}"

    def row_names(self, context):
        return [self.row(np, way, op) for np in context.nps([2, 4, 8]) for way in WAYS
                for op in OPS]

    def jobs(self, context):
        size_mib = context.size_mib(1024)
        for np in context.nps([2, 4, 8]):
            rows = {op: [self.row(np, way, op) for way in WAYS] for op in OPS}
            yield limit_job(context, f"np {np} COL", size_mib, rows)
            for way in WAYS:
                for subject in context.subjects:
                    yield Job(f"np {np} {way}", subject.name, lambda n=np, w=way, s=subject:
                              self.measure(context, s, n, w, size_mib))

    def measure(self, context, subject, np, way, size_mib):
        path = context.directory / "columns.dat"
        samples = []
        for op in OPS:
            outcome = context.start(subject, np, "columns", [
                "--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
            expected = COLLECTIVE_PATHS["large", op] if way == "COL" else frozenset()
            sample = rate(self.row(np, way, op), outcome, subject, expected)
            if subject.shima and way == "FV" and op == "write" and not sample.problem:
                sample.problem = runner.not_combined(outcome.stats)
            samples.append(sample)
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        stock = results.stock()
        for np in context.nps([2, 4, 8]):
            rows = {op: [self.row(np, way, op) for way in WAYS] for op in OPS}
            write, read = self.row(np, "COL", "write"), self.row(np, "COL", "read")
            results.require(write, 0.9, "the limit", [write], ["limit"])
            results.require(write, 1.0, "the best stock write", rows["write"], stock)
            results.require(read, 1.0, "the best stock read", rows["read"], stock)
            for op in OPS:
                fv, ut = self.row(np, "FV", op), self.row(np, "UT", op)
                results.require(fv, 1.0, "the best stock FV", [fv], stock)
                results.require(ut, 0.95, "the best stock UT", [ut], stock)


class SmallPieces(Section):
    name = "small_pieces"
    title = "An array by columns, pieces of 64 bytes, collective, 256 MiB"
    lead = ("'/limit' is the share of the time that moving the bytes alone would take: the time of the "
            "limit for them, divided by the measured time")
    piece_bytes = 64

    def row_names(self, context):
        return [f"np {np} {op}{what}" for np in context.nps([8]) for op in OPS
                for what in ("", ", a piece")]

    def jobs(self, context):
        size_mib = context.size_mib(256)
        for np in context.nps([8]):
            rows = {op: [f"np {np} {op}"] for op in OPS}
            yield limit_job(context, f"np {np}", size_mib, rows)
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name, lambda n=np, s=subject:
                          self.measure(context, s, n, size_mib))

    def measure(self, context, subject, np, size_mib):
        path = context.directory / "small.dat"
        samples = []
        for op in OPS:
            outcome = context.start(subject, np, "columns", [
                "--way", "COL", "--op", op, "--size-mib", size_mib, "--piece", self.piece_bytes,
                "--file", path, "--json"])
            sample = rate(f"np {np} {op}", outcome, subject, COLLECTIVE_PATHS["small", op])
            ns = 1e9 * self.piece_bytes / (sample.value * 2**20) if sample.value else None
            samples += [sample, Sample(f"np {np} {op}, a piece", ns, "ns", LOWER)]
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        for row in (f"np {np} {op}" for np in context.nps([8]) for op in OPS):
            results.require(row, 1.0, "the best stock", [row], results.stock())
