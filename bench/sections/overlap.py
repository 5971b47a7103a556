"""Whether nonblocking transfers make progress while their callers compute.

On a slow disk that needs no computing core (throttled, O_DIRECT) both together should take as long
as the longer one. In the page cache a transfer is copying, and copying needs the cores that compute:
there the figure is the loss, compared with threads that a program would start itself.
"""

from lib.results import LOWER, Sample
from lib.section import OPS, Job, Section, problem_of
from lib.throttled_disk import NotHere, ThrottledDisks, reason_why_not

RANKS = 2
DISK_MIB_S, DISK_IOPS = 100, 400
DIRECT = "direct_read=true;direct_write=true"


class Overlap(Section):
    name = "overlap"
    title = "Two ranks compute as long as their nonblocking transfer takes"
    lead = ("both together / the longer of the two alone; 1 is full overlap, 2 none. "
            f"Disk: {DISK_MIB_S} MiB/s, {DISK_IOPS} requests/s, O_DIRECT")
    limit = False
    ways = ("at", "at_all")

    def columns(self, context):
        return ["threads", *super().columns(context)]

    def row(self, place, way, op):
        return f"{place}, i{op}_{way}"

    def row_names(self, context):
        return [self.row(place, way, op) + what for place in ("disk", "page cache")
                for way in self.ways for op in OPS for what in ("", ", transfer alone")]

    def jobs(self, context):
        for way in self.ways:
            for op in OPS:
                yield from self.cells(context, way, op)

    def cells(self, context, way, op):
        """Stock MPIs cannot bypass the page cache, so there are none to compare on the disk."""
        for place in ("disk", "page cache"):
            row = self.row(place, way, op)
            run = self.on_disk if place == "disk" else self.in_cache
            if way == "at":
                yield Job(row, "threads", lambda r=row, o=op, run=run:
                          run(context, r, context.subjects[0], "threads", o))
            for subject in context.subjects:
                if subject.shima or place != "disk":
                    yield Job(row, subject.name, lambda r=row, s=subject, o=op, run=run:
                              run(context, r, s, way, o))

    def in_cache(self, context, row, subject, way, op):
        arguments = self.arguments(context.directory, way, op, context.size_mib(256))
        return self.samples(row, subject, context.start(subject, RANKS, "overlap", arguments))

    def on_disk(self, context, row, subject, way, op):
        if reason := reason_why_not():
            return [Sample(row, None, "ratio", LOWER, note=reason)]
        environment = subject.flavour.environment() | {"SHIMA_HINTS": DIRECT}
        try:
            with ThrottledDisks(context.directory, 1, DISK_MIB_S, DISK_IOPS) as disks:
                arguments = self.arguments(disks.directories[0], way, op, 32) + ["--direct"]
                command = disks.inside(subject.command(RANKS, "overlap", arguments))
                return self.samples(row, subject, context.measure(command, environment))
        except NotHere as reason:
            return [Sample(row, None, "ratio", LOWER, note=str(reason))]

    def arguments(self, directory, way, op, rank_mib):
        return ["--way", way, "--op", op, "--mib", rank_mib, "--file", directory / "overlap.dat"]

    def samples(self, row, subject, outcome):
        record = outcome.records[0] if outcome.records else None
        problem = problem_of(outcome, record, subject, frozenset())
        record = record or {}
        return [Sample(row, record.get("ratio"), "ratio", LOWER, problem),
                Sample(f"{row}, transfer alone", record.get("io_s"), "s", LOWER, problem)]

    def targets(self, results, context):
        for way in self.ways:
            for op in OPS:
                results.require_below(self.row("disk", way, op), 1.1, "the longer of the two")
