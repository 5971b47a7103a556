"""S1's array with all ranks in one address space: each byte is copied once, by the agents' calls.

The limits are two threads that write and read contiguously: one file for the plain file, two files
where there are subfiles, since two cores cannot copy to more inodes at once than two.
"""

from lib.results import Sample
from lib.section import OPS, Job, Section, rate
from lib.striped import remove
from lib.subjects import binary

RANKS = 8
COUNTS = (0, 2, 4, 8)
WAYS = ("COL", "FV", "UT")


class OneSpace(Section):
    name = "one_space"
    title = "An array by columns, 16 KiB pieces, 8 ranks in one address space"
    lead = ("MiB/s from open to close, page cache; 'limit' is two threads, in one file for the plain file "
            "and in two for subfiles; the stock MPIs have a plain file, and their best way")

    def row(self, count, op):
        return f"COL {op}, {count} subfiles" if count else f"COL {op}, a plain file"

    def stock_row(self, way, op):
        return self.row(0, op) if way == "COL" else f"{way} {op}, a plain file"

    def row_names(self, context):
        return ([self.row(count, op) for count in COUNTS for op in OPS] +
                [self.stock_row(way, op) for way in ("FV", "UT") for op in OPS])

    def jobs(self, context):
        size_mib = context.size_mib(1024)
        for files in (1, 2):
            yield Job("array", "limit", lambda f=files: self.limit(context, f, size_mib))
        for subject in context.subjects:
            for what in COUNTS if subject.shima else WAYS:
                measure = self.measure if subject.shima else self.measure_stock
                yield Job("array", subject.name, lambda s=subject, w=what, m=measure:
                          m(context, s, w, size_mib))

    def limit(self, context, files, size_mib):
        path = context.directory / "limit.dat"
        rows = [0] if files == 1 else [count for count in COUNTS if count]
        samples = []
        for op in OPS:
            outcome = context.measure([str(binary("limit")), "--json", "--op", op, "--files", str(files),
                                       "--file", str(path), "--size-mib", str(size_mib)])
            figure = outcome.records[0]["open_close_mib_s"] if outcome.records else None
            samples += [Sample(self.row(count, op), figure, problem=outcome.problem) for count in rows]
        for file in path.parent.glob("limit.dat*"):
            file.unlink()
        return samples

    def measure(self, context, subject, count, size_mib):
        path, samples = context.directory / "one_space.dat", []
        hints = f"shima_targets=beside;striping_factor={count};striping_unit=1M" if count else ""
        environment = subject.flavour.environment() | {"SHIMA_HINTS": hints,
                                                       "SHIMA_ONE_SPACE": "required"}
        for op in OPS:
            command = subject.command(RANKS, "columns", [
                "--way", "COL", "--op", op, "--size-mib", size_mib, "--file", path, "--json"],
                one_space=True)
            outcome = context.measure(command, environment)
            samples.append(rate(self.row(count, op), outcome, subject, {"single_copy"}))
        remove(path)
        return samples

    def measure_stock(self, context, subject, way, size_mib):
        path, samples = context.directory / "one_space.dat", []
        for op in OPS:
            outcome = context.start(subject, RANKS, "columns", [
                "--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
            samples.append(rate(self.stock_row(way, op), outcome, subject))
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        for count in COUNTS:
            write = self.row(count, "write")
            what = "the two-file limit" if count else "the one-file limit"
            results.require(write, 0.9, what, [write], ["limit"])
            if count:
                ways = [self.stock_row(way, "write") for way in WAYS]
                results.require(write, 3.0, "the best stock write", ways, results.stock())
            read = self.row(count, "read")
            results.require(read, 1.0, "two threads that read contiguously", [read], ["limit"])
            results.require(read, 2.0, "the best stock COL read", [self.row(0, "read")],
                            results.stock())
