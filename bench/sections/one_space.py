"""S1's array with all ranks in one address space: each byte is copied once, by the agents' calls.

The limits are two threads that write and read contiguously: one file for the plain file, two files
if there are subfiles, because two cores copy to at most two inodes at once. 'limit' has its data at
the start of a page; 'limit, malloc' has them at an address from malloc, like the program.
"""
from lib.results import Sample
from lib.section import OPS, Job, Section, rate
from sections.striped import remove
from lib.programs import binary

RANKS = 8
WAYS = ("COL", "FV", "UT")
LIMITS = {"limit": "cold", "limit, malloc": "malloc"}
COUNTS = (0, 2, 4, 8)  # of subfiles; 0 is a plain file


def row_of(count, op, way="COL"):
    return f"{way} {op}, {f'{count} subfiles' if count else 'a plain file'}"


class OneSpace(Section):
    name = "one_space"
    title = "An array by columns, 16 KiB pieces, 8 ranks in one address space"
    lead = ("MiB/s from open to close, page cache; 'limit' is two threads, in one file for the plain file "
            "and in two for subfiles, from memory that begins with a page or (malloc) 16 bytes after it; "
            "the stock MPIs use a plain file and their fastest method")

    def columns(self, context):
        return [*LIMITS, *(subject.name for subject in context.subjects)]

    def row_names(self, context):
        return ([row_of(count, op) for count in COUNTS for op in OPS] +
                [row_of(0, op, way) for way in ("FV", "UT") for op in OPS])

    def jobs(self, context):
        size_mib = context.size_mib(1024)
        for name in LIMITS:
            for files in (1, 2):
                yield Job("array", name, lambda n=name, f=files: self.limit(context, n, f, size_mib))
        for subject in context.subjects:
            for what in COUNTS if subject.shima else WAYS:
                measure = self.measure if subject.shima else self.measure_stock
                yield Job("array", subject.name, lambda s=subject, w=what, m=measure:
                          m(context, s, w, size_mib))

    def limit(self, context, name, files, size_mib):
        """One measurement for all rows with the same limit."""
        path, samples = context.directory / "limit.dat", []
        counts = [count for count in COUNTS if bool(count) == (files == 2)]
        for op in OPS:
            outcome = context.measure([str(binary("limit")), "--json", "--op", op, "--files", str(files),
                                       "--memory", LIMITS[name], "--file", str(path),
                                       "--size-mib", str(size_mib)])
            figure = outcome.records[0]["open_close_mib_s"] if outcome.records else None
            samples += [Sample(row_of(count, op), figure, problem=outcome.problem) for count in counts]
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
            gathered = op == "write" and not count  # under the lock that the agents share
            samples.append(rate(row_of(count, op), outcome, subject, {"pull" if gathered else "single_copy"}))
        remove(path)
        return samples

    def measure_stock(self, context, subject, way, size_mib):
        path, samples = context.directory / "one_space.dat", []
        for op in OPS:
            outcome = context.start(subject, RANKS, "columns", [
                "--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
            samples.append(rate(row_of(0, op, way), outcome, subject))
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        stock_writes = [row_of(0, "write", way) for way in WAYS]
        for count in COUNTS:
            write, read = row_of(count, "write"), row_of(count, "read")
            for name in LIMITS:
                results.require(write, 0.9, f"two threads that write ({name})", [write], [name])
                results.require(read, 1.0, f"two threads that read ({name})", [read], [name])
            if count:
                results.require(write, 3.0, "the best stock write", stock_writes, results.stock())
            results.require(read, 2.0, "the best stock COL read", [row_of(0, "read")],
                            results.stock())
