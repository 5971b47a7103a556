"""S4: what the steps of the subgroup method cost (figures 2 to 4), and collective writes and reads with it (5, 6)."""

from documents.document import NO_VALUE, Document, Statement, over
from experiments.subgroup import GROUPS, Subgroup, column_of, name_of
from lib.figure import Figure, Line

FIGURE = {"split": 2, "gather": 3, "scatter": 4, "write": 5, "read": 6}
NAMES = {"split": "MPI_Comm_split", "gather": "MPI_Gather", "scatter": "MPI_Scatter"}
COLOURS = {1: 0, 2: 5, 4: 4, 8: 6, "shima": 1}
MOST_NP = 8  # of figures 3 and 4


class SubgroupDocument(Document):
    name = "subgroup"
    form = "figures 2 to 6"
    title = "S4: collective calls in subgroups"
    source = "K. Cha, H. Cho, S. Kim (KISTI): An Analysis of the Performance of Collective I/Os and the Subgroup Method."
    lead = ("Groups of k ranks hand their data to a master before a collective write, and get it from there after a collective "
            "read; only masters make the call (examples/subgroup.c). k = 1: no groups. Under Shima the program runs with k = 1. "
            "There: MPICH2 1.0.5, PVFS 2.6.1, AMD Opteron 240 at 1.4 GHz, Gigabit Ethernet.")
    missing = "The stored text has no values of figures 2 to 6, only the statements in the table."

    def all_sections(self):
        return [Subgroup()]

    def cells(self, measured, place=None):
        return [cell for cell in Subgroup().cells(measured.context) if place in (None, cell.place)]

    def families(self, measured):
        return [subject.flavour for subject in measured.subjects(shima=False)]

    def median(self, measured, row, column):
        return measured.median("subgroup", row, column)

    # --- the figures ----------------------------------------------------------------------------

    def figures(self, measured):
        made = []
        for flavour in self.families(measured):
            made += [self.split(measured, flavour, place) for place in ("one host", "two hosts")]
        for figure in ("gather", "scatter"):
            made += [self.step(measured, flavour, figure) for flavour in self.families(measured)]
        for figure in ("write", "read"):
            made += [self.access(measured, flavour, cell, figure) for cell in self.cells(measured)
                     for flavour in self.families(measured)]
        return made

    def split(self, measured, flavour, place):
        cells = self.cells(measured, place)
        lines = [Line(f"groups of {k}", COLOURS[k], [
            self.median(measured, cell.split_row(), column_of(flavour.family, k)) if k in cell.groups() else None for cell in cells])
                 for k in GROUPS[1:]]
        return Figure(f"Figure {FIGURE['split']}: {NAMES['split']}, {flavour.label()}, {place}", "lines",
                      [cell.np for cell in cells] or [""], "ranks of the parent communicator", "\u00b5s", lines)

    def step(self, measured, flavour, figure):
        """Gather or scatter, of the largest number of ranks that is no more than MOST_NP, in each place."""
        lines, sizes = [], []
        for number, place in enumerate(("one host", "two hosts")):
            cells = [cell for cell in self.cells(measured, place) if cell.np <= MOST_NP] or self.cells(measured, place)
            if not cells:
                continue
            cell = max(cells, key=lambda each: each.np)
            sizes = sizes or Subgroup().sizes(measured.context, cell.np)
            lines += [Line(f"np {cell.np}, k {k}{', 2 hosts' if number else ''}", COLOURS[k], [
                self.median(measured, cell.row(size, figure), column_of(flavour.family, k)) for size in sizes], dashed=bool(number))
                      for k in cell.groups() if k > 1]
        return Figure(f"Figure {FIGURE[figure]}: {NAMES[figure]}, {flavour.label()}", "lines", list(map(name_of, sizes)) or [""],
                      "bytes of a rank", "\u00b5s", lines)

    def access(self, measured, flavour, cell, op):
        sizes = Subgroup().sizes(measured.context, cell.np)
        lines = [Line("without groups" if k == 1 else f"groups of {k}", COLOURS[k], [
            self.median(measured, cell.row(size, op), column_of(flavour.family, k)) for size in sizes]) for k in cell.groups()]
        lines += [Line("Shima", COLOURS["shima"], [self.median(measured, cell.row(size, op), subject.name) for size in sizes])
                  for subject in measured.subjects(stock=False) if subject.flavour == flavour]
        return Figure(f"Figure {FIGURE[op]}: collective {op}, {flavour.label()}, {cell.np} ranks, {cell.place}", "lines",
                      list(map(name_of, sizes)), "bytes of a rank", "MiB/s", lines)

    # --- the statements -------------------------------------------------------------------------

    def statements(self, measured):
        if not measured.has("subgroup"):
            return []
        made = [Statement("MPI_Comm_split, most ranks / fewest, one host", f"grows with the ranks of the parent; {NO_VALUE}",
                          self.here(measured, self.growth)),
                Statement("MPI_Gather / MPI_Scatter, smallest data", f"gather takes longer; {NO_VALUE}",
                          self.here(measured, self.gather_over_scatter)),
                Statement("cells in which the best group beats the plain write", f"none; {NO_VALUE}",
                          self.here(measured, lambda m, flavour: self.gains(m, flavour, "write"))),
                Statement("cells in which the best group beats the plain read", f"much faster for small data; {NO_VALUE}",
                          self.here(measured, lambda m, flavour: self.gains(m, flavour, "read"))),
                Statement("read of the smallest data, best group / plain", f"much faster; {NO_VALUE}",
                          self.here(measured, self.small_read))]
        return [statement for statement in made if statement.here]

    def here(self, measured, find):
        found = {flavour.label(): find(measured, flavour) for flavour in self.families(measured)}
        return {label: value for label, value in found.items() if value is not None}

    def growth(self, measured, flavour):
        cells = [cell for cell in self.cells(measured, "one host") if len(cell.groups()) > 1]
        if len(cells) < 2:
            return None
        values = [self.median(measured, cell.split_row(), column_of(flavour.family, 2)) for cell in (cells[-1], cells[0])]
        return over(*values)

    def biggest(self, measured):
        """The cell with the most ranks, up to MOST_NP, on one host."""
        cells = [cell for cell in self.cells(measured, "one host") if len(cell.groups()) > 1]
        return max([cell for cell in cells if cell.np <= MOST_NP] or cells, key=lambda cell: cell.np, default=None)

    def gather_over_scatter(self, measured, flavour):
        cell = self.biggest(measured)
        if cell is None:
            return None
        size, column = Subgroup().sizes(measured.context, cell.np)[0], column_of(flavour.family, 2)
        return over(*(self.median(measured, cell.row(size, figure), column) for figure in ("gather", "scatter")))

    def of_groups(self, measured, flavour, cell, size, op):
        """The speed without groups, and the best with them."""
        values = [self.median(measured, cell.row(size, op), column_of(flavour.family, k)) for k in cell.groups()]
        return values[0], max(filter(None, values[1:]), default=None)

    def gains(self, measured, flavour, op):
        pairs = [self.of_groups(measured, flavour, cell, size, op) for cell in self.cells(measured)
                 for size in Subgroup().sizes(measured.context, cell.np)]
        pairs = [pair for pair in pairs if None not in pair]
        return f"{sum(best > plain for plain, best in pairs)} of {len(pairs)}" if pairs else None

    def small_read(self, measured, flavour):
        cell = self.biggest(measured)
        if cell is None:
            return None
        plain, best = self.of_groups(measured, flavour, cell, Subgroup().sizes(measured.context, cell.np)[0], "read")
        return over(best, plain)
