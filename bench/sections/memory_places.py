"""Where memory lies decides on some processors how fast a cached file is read into it."""

from lib.results import Sample
from lib.section import Job, Section

LENGTHS = {4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}
PLACES = {0: "at a page", 16: "as from malloc"}
PLAIN = "pread"


def row_of(len_bytes, place):
    return f"{LENGTHS[len_bytes]}, {PLACES[place]}"


class MemoryPlaces(Section):
    name = "memory_places"
    title = "One rank reads a cached file of 64 MiB into memory at a page's beginning, and 16 bytes behind it"
    lead = "MiB/s; medians of rounds that alternate with plain pread in one process"
    limit = False
    is_warmed = False  # memory that is given back meanwhile disturbs short copies

    def columns(self, context):
        return [PLAIN, *(subject.name for subject in context.subjects)]

    def row_names(self, context):
        return [row_of(len_bytes, place) for len_bytes in LENGTHS for place in PLACES]

    def jobs(self, context):
        for subject in context.subjects:
            yield Job("reads", subject.name, lambda s=subject: self.measure(context, s))

    def measure(self, context, subject):
        command = subject.command(1, "memory_places", [context.directory / "places.dat"])
        # Counting costs a short read a fifth.
        outcome = context.measure(command, subject.flavour.environment() | {"SHIMA_STATS": ""})
        figures = {(row_of(record["len"], record["place"]), record["method"]): record["mib_per_s"]
                   for record in outcome.records}
        return [Sample(row, figures.get((row, method)), problem=outcome.problem, subject=column)
                for row in self.row_names(context) for method, column in (("pread", PLAIN), ("mpi", subject.name))]

    def targets(self, results, context):
        for len_bytes in LENGTHS:
            for place in PLACES:
                row = row_of(len_bytes, place)
                results.require(row, 0.95, "the better stock", [row], results.stock())
                results.require(row, 0.5, "plain pread at a page", [row_of(len_bytes, 0)], [PLAIN])
