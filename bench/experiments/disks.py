"""S1's array over several disks of a known speed (lib/throttled_disk.py), used with O_DIRECT.

The question is how close the three ways come to the sum of the disks, seeks included.
"""

from lib.results import Sample
from lib.section import OPS, Job, Section, rate
from lib.throttled_disk import NotHere, ThrottledDisks, reason_why_not

WAYS = ("UT", "FV", "COL")
RANKS = 8
DISK_MIB_S, DISK_IOPS = 100, 400
DIRECT = "direct_read=true;direct_write=true"


class Disks(Section):
    name = "disks"
    title = f"An array by columns over throttled disks of {DISK_MIB_S} MiB/s and {DISK_IOPS} requests/s, O_DIRECT"
    lead = "MiB/s from open to close, 8 ranks, striping unit 1 MiB; 'limit' is the sum of the disks"
    is_warmed = False  # nothing goes through the page cache

    def skip_reason(self):
        return reason_why_not()

    def columns(self, context):
        return ["limit"] + [subject.name for subject in context.subjects if subject.shima]

    def row(self, count, way, op):
        return f"{count} disks, {way} {op}"

    def row_names(self, context):
        return [self.row(count, way, op) for count in context.disk_counts for way in WAYS for op in OPS]

    def jobs(self, context):
        for count in context.disk_counts:
            rows = [self.row(count, way, op) for way in WAYS for op in OPS]
            yield Job(f"{count} disks", "limit", lambda c=count, r=rows: [
                Sample(row, float(c * DISK_MIB_S)) for row in r])
            for way in WAYS:
                for subject in context.subjects:
                    if subject.shima:
                        yield Job(f"{count} disks", subject.name, lambda c=count, w=way, s=subject:
                                  self.measure(context, s, c, w))

    def measure(self, context, subject, count, way):
        size_mib = context.disk_mib(96 if way == "COL" else 16) * count
        path = context.directory / "disks.dat"
        try:
            with ThrottledDisks(context.directory, count, DISK_MIB_S, DISK_IOPS) as disks:
                return self.run(context, subject, disks, (count, way, size_mib, path))
        except NotHere as reason:
            return [Sample(self.row(count, way, op), None, note=str(reason)) for op in OPS]

    def run(self, context, subject, disks, what):
        count, way, size_mib, path = what
        targets = ":".join(f"d{i}={directory}" for i, directory in enumerate(disks.directories))
        environment = subject.flavour.environment() | {
            "SHIMA_TARGETS": targets,
            "SHIMA_HINTS": f"striping_factor={count};striping_unit=1M;{DIRECT}"}
        samples = []
        for op in OPS:
            command = disks.inside(subject.command(RANKS, "columns", [
                "--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"]))
            samples.append(rate(self.row(count, way, op), context.measure(command, environment), subject))
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        for count in context.disk_counts:
            for op in OPS:
                row = self.row(count, "COL", op)
                results.require(row, 0.93, "the sum of the disks", [row], ["limit"])
