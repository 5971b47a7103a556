"""One process reads uncached data at a constant stride: the effect of read-ahead."""

from lib.results import Sample
from lib.section import Job, Section, problem_of

SHAPES = {"4 KiB every 128 KiB": (4096, 131072), "16 KiB every MiB": (16384, 1 << 20)}


class StridedRead(Section):
    name = "strided_read"
    title = "One process reads at a constant stride, uncached, one call per piece"
    lead = "reads a second; '(no read-ahead)' is Shima with shima_read_ahead=disable"
    limit = False

    def row_names(self, context):
        return [row for shape in SHAPES for row in (shape, self.without(shape))]

    def without(self, shape):
        return f"{shape} (no read-ahead)"

    def jobs(self, context):
        for shape in SHAPES:
            for subject in context.subjects:
                yield Job(shape, subject.name, lambda s=subject, w=shape: self.measure(context, s, w, w))
                if subject.shima:
                    yield Job(shape, subject.name, lambda s=subject, w=shape: self.measure(
                        context, s, w, self.without(w), "shima_read_ahead=disable"))

    def measure(self, context, subject, shape, row, hints=""):
        arguments = [context.directory / "strided.dat", *SHAPES[shape], context.size_mib(512)]
        environment = subject.flavour.environment() | {"SHIMA_HINTS": hints}
        outcome = context.measure(subject.command(1, "strided_read", arguments), environment)
        record = outcome.records[0] if outcome.records else None
        return [Sample(row, record["reads_per_s"] if record else None, "reads/s",
                       problem=problem_of(outcome, record, subject, frozenset()))]

    def targets(self, results, context):
        for shape in SHAPES:
            results.require(shape, 1.0, "the better stock", [shape], results.stock())
