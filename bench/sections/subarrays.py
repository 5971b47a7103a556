"""Blocks of an array of three or four dimensions over a grid of ranks, as subarray views."""

from lib.section import COLLECTIVE_PATHS, OPS, Job, Section, limit_job, rate


def move_block(context, subject, np, array, rows, call_rows=None):
    """Writes and reads a file; `rows`: the row of each operation, `call_rows`: that of the data call alone."""
    path, samples = context.directory / "subarray.dat", []
    for op in OPS:
        outcome = context.start(subject, np, "subarray", [op, path, *array])
        expected = COLLECTIVE_PATHS["large", op] | COLLECTIVE_PATHS["small", op]
        samples.append(rate(rows[op], outcome, subject, expected))
        if call_rows:
            samples.append(rate(call_rows[op], outcome, subject, expected, "io_mib_s"))
    path.unlink(missing_ok=True)
    return samples


class Subarray3d(Section):
    name = "subarray3d"
    title = "A cube of 512^3 doubles in blocks, collective"
    lead = "MiB/s from open to close"

    def rows(self, np):
        return {op: f"np {np} {op}" for op in OPS}

    def row_names(self, context):
        return [row for np in context.nps([8]) for row in self.rows(np).values()]

    def jobs(self, context):
        n = 256 if context.quick else 512
        array = ["c", 1, f"{n}x{n}x{n}", "0x0x0"]
        for np in context.nps([8]):
            yield limit_job(context, f"np {np}", n**3 * 8 >> 20, {op: [row] for op, row in self.rows(np).items()})
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name, lambda p=np, s=subject:
                          move_block(context, s, p, array, self.rows(p)))

    def targets(self, results, context):
        for row in self.row_names(context):
            results.require(row, 1.0, "the best stock", [row], results.stock())


class Subarray4d(Section):
    """A lattice with one block of sites a rank. In Fortran order the dimension that varies fastest
    is divided, so the pieces are small; in C order it is whole."""

    name = "subarray4d"
    title = "A lattice of 32x32x32x64 sites, 8 ranks in 2x2x2x1, collective"
    lead = ("MiB/s from open to close, and of the data call alone, page cache; 'limit' is the same amount, one "
            "contiguous pwrite or pread a rank")
    ranks, grid = 8, "2x2x2x1"
    orders = {"fortran": "x fastest", "c": "t fastest"}
    site_bytes = (24, 192)

    def cells(self):
        return [(order, size) for order in self.orders for size in self.site_bytes]

    def rows(self, order, size):
        return {op: f"{size} B a site, {self.orders[order]}, {op}" for op in OPS}

    def call_rows(self, order, size):
        return {op: f"{row}, the call" for op, row in self.rows(order, size).items()}

    def row_names(self, context):
        return [rows[op] for cell in self.cells() for op in OPS for rows in (self.rows(*cell), self.call_rows(*cell))]

    def array(self, context, order, size):
        return [order, size // 8, "32x32x32x8" if context.quick else "32x32x32x64", self.grid]

    def jobs(self, context):
        for cell in self.cells():
            array, rows, call_rows = self.array(context, *cell), self.rows(*cell), self.call_rows(*cell)
            group = f"{cell[1]} B, {cell[0]}"
            yield Job(group, "limit", lambda a=array, r=rows, c=call_rows: self.plain(context, a, (r, c)))
            for subject in context.subjects:
                yield Job(group, subject.name, lambda s=subject, a=array, r=rows, c=call_rows:
                          move_block(context, s, self.ranks, a, r, c))

    def plain(self, context, array, rows):
        path, samples = context.directory / "plain.dat", []
        for op in OPS:
            outcome = context.start(context.subjects[0], self.ranks, "subarray", [f"plain-{op}", path, *array])
            samples += [rate(each[op], outcome, context.subjects[0]) for each in rows]
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        for cell in self.cells():
            rows, call_rows = self.rows(*cell), self.call_rows(*cell)
            for row in rows.values():
                results.require(row, 2.0, "the better stock", [row], results.stock())
            for read in (rows["read"], call_rows["read"]):
                results.require(read, 0.8, "plain pread", [read], ["limit"])
