"""Striped files: several inodes on one disk, and several disks.

On one disk in the page cache the question is whether several subfiles avoid the limit of one inode's
lock. Several disks are images of a known speed (lib/throttled_disk.py), used with O_DIRECT: there
the question is how close the ways of S1 come to the sum of the disks, seeks included.
"""

from lib.results import Sample
from lib.section import OPS, Job, Section, limit_job, rate
from lib.throttled_disk import NotHere, ThrottledDisks, reason_why_not

WAYS = ("UT", "FV", "COL")
RANKS = 8
SUBFILES = "shima_targets=beside;striping_factor=4;striping_unit=1M"
DISK_MIB_S, DISK_IOPS = 100, 400
DIRECT = "direct_read=true;direct_write=true"


class Subfiles(Section):
    name = "subfiles"
    title = "An array by columns, 16 KiB pieces, 8 ranks, four subfiles on one disk"
    lead = ("MiB/s from open to close, page cache; stock MPIs, the rows 'plain' and the limit "
            "have one file")

    def row(self, way, op):
        return f"{way} {op}"

    def row_names(self, context):
        return [self.row(way, op) for way in (*WAYS, "COL plain") for op in OPS]

    def jobs(self, context):
        size_mib = context.size_mib(1024)
        rows = {op: [self.row(way, op) for way in (*WAYS, "COL plain")] for op in OPS}
        yield limit_job(context, "COL", size_mib, rows)
        for way in (*WAYS, "COL plain"):
            for subject in context.subjects:
                if subject.shima or way != "COL plain":
                    yield Job(way.split()[0], subject.name, lambda w=way, s=subject:
                              self.measure(context, s, w, size_mib))

    def measure(self, context, subject, way, size_mib):
        path, samples = context.directory / "striped.dat", []
        hints = "" if way == "COL plain" else SUBFILES
        environment = subject.flavour.environment() | {"SHIMA_HINTS": hints}
        for op in OPS:
            command = subject.command(RANKS, "columns", [
                "--way", way.split()[0], "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
            samples.append(rate(self.row(way, op), context.measure(command, environment), subject))
        remove(path)
        return samples

    def targets(self, results, context):
        stock = results.stock()
        write, read = self.row("COL", "write"), self.row("COL", "read")
        results.require(write, 1.2, "the one-file limit", [write], ["limit"])
        results.require(write, 1.0, "the best stock write", [self.row(way, "write") for way in WAYS],
                        stock)
        plain = self.row("COL plain", "read")
        for name in results.shima():
            results.require(read, 1.0, "its own read of a plain file", [plain], [name], only=name)


class Disks(Section):
    name = "disks"
    title = f"The same over 1, 2 and 4 disks of {DISK_MIB_S} MiB/s and {DISK_IOPS} requests/s, O_DIRECT"
    lead = "MiB/s from open to close, 8 ranks, striping unit 1 MiB; 'limit' is the sum of the disks"
    counts = (1, 2, 4)

    def skip_reason(self):
        return reason_why_not()

    def columns(self, context):
        return ["limit"] + [subject.name for subject in context.subjects if subject.shima]

    def row(self, count, way, op):
        return f"{count} disks, {way} {op}"

    def row_names(self, context):
        return [self.row(count, way, op) for count in self.counts for way in WAYS for op in OPS]

    def jobs(self, context):
        for count in self.counts:
            rows = [self.row(count, way, op) for way in WAYS for op in OPS]
            yield Job(f"{count} disks", "limit", lambda c=count, r=rows: [
                Sample(row, float(c * DISK_MIB_S)) for row in r])
            for way in WAYS:
                for subject in context.subjects:
                    if subject.shima:
                        yield Job(f"{count} disks", subject.name, lambda c=count, w=way, s=subject:
                                  self.measure(context, s, c, w))

    def measure(self, context, subject, count, way):
        size_mib = (96 if way == "COL" else 16) * count
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
        for count in self.counts:
            for op in OPS:
                row = self.row(count, "COL", op)
                results.require(row, 0.93, "the sum of the disks", [row], ["limit"])


def remove(path):
    """A file and the subfiles beside it; the benchmark's directory contains no other striped file."""
    path.unlink(missing_ok=True)
    for subfile in (path.parent / ".shima").glob("*.*"):
        subfile.unlink()
