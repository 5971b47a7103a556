"""Separate pieces of a cached file: one call each, or io_uring."""

from lib.results import LOWER, Sample
from lib.section import OPS, Job, Section
from lib.programs import binary


class ListIo(Section):
    name = "list_io"
    title = "One process moves separate pieces of a cached file: one call each, or io_uring"
    lead = "nanoseconds a piece, every eighth place of the file; what independent access should use"
    limit = False
    methods = ("one call each", "io_uring")

    def columns(self, context):
        return list(self.methods)

    def row_names(self, context):
        return [self.row(size, op) for size in (64, 4096, 16384) for op in OPS]

    def row(self, piece_bytes, op):
        return f"pieces of {piece_bytes} bytes, {op}"

    def jobs(self, context):
        for size in (64, 4096, 16384):
            yield Job(f"pieces of {size} bytes", self.methods[0],
                      lambda s=size: self.measure(context, s))

    def measure(self, context, piece_bytes):
        path = context.directory / "list.dat"
        pieces = context.size_mib(64) * 2**20 // max(piece_bytes, 1024)
        outcome = context.measure([str(binary("list_io")), str(path), str(piece_bytes), str(pieces)])
        path.unlink(missing_ok=True)
        return [Sample(self.row(piece_bytes, record["op"]), record["ns_per_piece"], "ns", LOWER,
                       outcome.problem, subject=record["method"]) for record in outcome.records]

    def targets(self, results, context):
        pass
