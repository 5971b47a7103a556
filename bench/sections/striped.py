"""Striped files on one disk in the page cache: whether several subfiles avoid the limit of one inode's lock."""

from lib.section import OPS, Job, Section, limit_job, rate

WAYS = ("UT", "FV", "COL")
RANKS = 8
SUBFILES = "shima_targets=beside;striping_factor=4;striping_unit=1M"


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


def remove(path):
    """A file and the subfiles beside it; the benchmark's directory contains no other striped file."""
    path.unlink(missing_ok=True)
    for subfile in (path.parent / ".shima").glob("*.*"):
        subfile.unlink()
