"""New files in memory that was not used just before, as on an idle virtual machine.

Other sections give each job memory that has just been used (bench/machine/warm_memory.cpp). A virtual machine gives free pieces of
memory of 2 MiB back to its host within seconds, and fetches one back page by page.
"""

import time

from lib.section import COLLECTIVE_PATHS, Job, Section, rate

RANKS = 2
WAYS = ("FV", "COL")
IDLE_S = 4  # the host has the memory of the job before


class FreshMemory(Section):
    name = "fresh_memory"
    title = f"An array by columns, 16 KiB pieces, {RANKS} ranks, a new file in memory that was not used just before"
    lead = "MiB/s from open to close"
    limit = False
    is_warmed = False

    def row(self, way):
        return f"{way} write"

    def row_names(self, context):
        return [self.row(way) for way in WAYS]

    def jobs(self, context):
        for way in WAYS:
            for subject in context.subjects:
                yield Job(self.row(way), subject.name, lambda w=way, s=subject: self.measure(context, s, w))

    def measure(self, context, subject, way):
        path = context.directory / "fresh.dat"
        time.sleep(IDLE_S)
        outcome = context.start(subject, RANKS, "columns", ["--way", way, "--op", "write", "--size-mib", context.size_mib(1024),
                                                            "--file", path, "--json"])
        path.unlink(missing_ok=True)
        expected = COLLECTIVE_PATHS["large", "write"] if way == "COL" else frozenset()
        return [rate(self.row(way), outcome, subject, expected)]

    def targets(self, results, context):
        for way in WAYS:
            results.require(self.row(way), 1.0, "the better stock", [self.row(way)], results.stock())
