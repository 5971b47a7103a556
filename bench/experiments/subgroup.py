"""The subgroup method over the stock MPIs, against one collective call under Shima.

The program is examples/subgroup.c: the stock MPIs run it in groups of 1 to 8, Shima
with K = 1, which is one MPI_File_write_at_all or MPI_File_read_at_all of all ranks. The usual grid
takes minutes, one job a subject and number of ranks; --full has every cell, one job each.
"""

import dataclasses

import two_hosts
from lib.results import LOWER, Sample
from lib.section import OPS, Job, Section

KIB, MIB = 1024, 1024 * 1024
GROUPS = (1, 2, 4, 8)
SIZES, ALL_SIZES = (4 * KIB, 256 * KIB, 16 * MIB), tuple(4 * KIB * 4**i for i in range(7))
NPS = {"one host": (2, 8, 32), "two hosts": (8,)}  # stock MPICH takes minutes for 32 ranks on two hosts and two cores
ALL_NPS = {place: (2, 4, 8, 16, 32) for place in NPS}
MOST_BYTES = 128 * MIB  # of all ranks in a call, without --full
FACTOR = 1.5

# What is measured: its name in the program's records, the operation that has it, and its unit.
FIGURES = {"write": ("mib_s", "write", "MiB/s"), "read": ("mib_s", "read", "MiB/s"),
           "gather": ("gather_us", "write", "us"), "scatter": ("scatter_us", "read", "us"),
           "write of the masters": ("call_us", "write", "us"),
           "read of the masters": ("call_us", "read", "us")}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one job measures: a number of ranks on one host or two."""
    place: str
    np: int

    def groups(self):
        """A group has ranks of one host only."""
        ranks = self.np // 2 if self.place == "two hosts" else self.np
        return [k for k in GROUPS if k <= max(ranks, 1)]

    def split_row(self):
        return f"{self.place}, np {self.np}, split"

    def row(self, size, figure):
        return f"{self.place}, np {self.np}, {name_of(size)}, {figure}"


def name_of(size):
    return f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


def column_of(family, k):
    return family if k == 1 else f"{family} k {k}"


class Subgroup(Section):
    name = "subgroup"
    title = "The subgroup method on the stock MPIs, and one collective call under Shima"
    lead = ("'k 2': groups of 2, by examples/subgroup.c; without k: one collective call of all ranks. 16 pieces a "
            "rank and call, page cache. MiB/s of the whole access (gather and write, read and scatter); the steps "
            "alone in us a call")
    limit = False

    def flavours(self, context):
        return [subject.flavour.family for subject in context.subjects if not subject.shima]

    def columns(self, context):
        stock = [column_of(family, k) for family in self.flavours(context) for k in GROUPS]
        return stock + [subject.name for subject in context.subjects if subject.shima]

    # --- the grid -----------------------------------------------------------------------------

    def cells(self, context):
        places = [place for place in NPS if place != "two hosts" or not two_hosts.why_unavailable()]
        nps = ALL_NPS if context.full else NPS
        return [Cell(place, np) for place in places for np in context.nps(nps[place])]

    def sizes(self, context, np):
        most = max(context.scaled(MOST_BYTES), MIB)
        return ALL_SIZES if context.full else [size for size in SIZES if size * np <= most]

    def row_names(self, context):
        return [row for cell in self.cells(context) for row in
                [cell.split_row(), *(cell.row(size, figure) for size in self.sizes(context, cell.np)
                                     for figure in FIGURES)]]

    # --- measuring ----------------------------------------------------------------------------

    def jobs(self, context):
        for cell in self.cells(context):
            all_sizes = self.sizes(context, cell.np)
            for sizes in [[size] for size in all_sizes] if context.full else [all_sizes]:
                group = ", ".join([cell.place, f"np {cell.np}", *map(name_of, sizes)])
                for subject in context.subjects:
                    yield Job(group, subject.name, lambda c=cell, s=subject, b=sizes:
                              self.measure(context, s, c, b))

    def measure(self, context, subject, cell, sizes):
        path = context.directory / "subgroup.dat"
        groups = [1] if subject.shima else cell.groups()
        # More ranks than cores make a call long, so fewer calls give a figure.
        arguments = ["--bytes", ",".join(map(str, sizes)), "--group", ",".join(map(str, groups)),
                     "--calls", max(4, 64 // cell.np), "--file", path, "--json"]
        outcome = self.run(context, subject, cell, arguments)
        path.unlink(missing_ok=True)
        samples = [sample for record in outcome.records for sample in self.samples(subject, cell, record)]
        if outcome.problem or not outcome.records:
            row = cell.row(sizes[0], "write")
            samples.append(Sample(row, None, problem=outcome.problem or "no result"))
        return samples

    def run(self, context, subject, cell, arguments):
        # No statistics: they would count and time each access, which would be measured too.
        if cell.place == "two hosts":
            return context.start_over_hosts(subject, cell.np, "subgroup", arguments, {"SHIMA_STATS": ""})[0]
        # A file of our own lets bench/machine/warm_memory.cpp free its memory before the job begins: that takes
        # a core for longer than the first small calls need.
        command = ["sh", "-c", 'touch "$0" && sleep 0.3 && exec "$@"', str(context.directory / "begin"),
                   *map(str, subject.command(cell.np, "subgroup", arguments))]
        outcome = context.measure(command, subject.flavour.environment() | {"SHIMA_STATS": ""})
        (context.directory / "begin").unlink(missing_ok=True)
        return outcome

    def samples(self, subject, cell, record):
        column = subject.name if subject.shima else column_of(subject.name, record["group"])
        problem = "WRONG DATA" if record["wrong_words"] else ""
        for figure, (key, op, unit) in FIGURES.items():
            if op == record["op"] and (record["group"] > 1 or unit == "MiB/s"):
                better = {} if unit == "MiB/s" else {"better": LOWER}
                yield Sample(cell.row(record["bytes"], figure), record[key], unit, problem=problem,
                             subject=column, **better)
        if record["group"] > 1 and record["op"] == "write":
            yield Sample(cell.split_row(), record["split_us"], "us", LOWER, subject=column)

    # --- judging ------------------------------------------------------------------------------

    def targets(self, results, context):
        for cell in self.cells(context):
            for size in self.sizes(context, cell.np):
                for op in OPS:
                    for k in cell.groups():
                        row, columns = cell.row(size, op), [column_of(f, k) for f in self.flavours(context)]
                        results.require(row, FACTOR, f"the better stock, groups of {k}", [row], columns)
