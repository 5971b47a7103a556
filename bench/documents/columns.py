"""S1: the array by columns, figures 5 (read) and 6 (write)."""

import dataclasses
import typing

from documents.document import NO_VALUE, Document, Statement, over
from experiments.columns import Columns, WAYS
from experiments.disks import RANKS as DISK_RANKS
from experiments.disks import Disks
from experiments.io_nodes import DaemonDisks, NodeDisks
from lib.figure import Figure, Line
from lib.section import OPS

COLOURS = {"UT": 0, "FV": 1, "COL": 3}
NAMES = {"UT": "UT", "FV": "FV", "COL": "FV+COL"}
RANKS = [2, 4, 8]
FIGURE = {"write": "6", "read": "5"}
# What the text states of 8 processes: one way over the other.
STATED = [("FV", "UT", "write", "5.2"), ("FV", "UT", "read", "9.2"), ("COL", "UT", "write", "13.5"),
          ("COL", "FV", "write", "2.6"), ("COL", "FV", "read", "about 1, or a little less"),
          ("COL", "UT", "read", NO_VALUE)]
RATIOS = {(one, op): float(stated) for one, other, op, stated in STATED if other == "UT" and stated != NO_VALUE}


@dataclasses.dataclass
class Place:
    """A subject in one of the experiments."""
    label: str
    section: str
    column: str
    row: typing.Callable  # of a number of ranks, a way and an operation
    ranks: list

    def value(self, measured, *cell):
        return measured.median(self.section, self.row(*cell), self.column)

    def ends(self, measured, *cell):
        return measured.ends(self.section, self.row(*cell), self.column)


class ColumnsDocument(Document):
    name = "columns"
    form = "figures 5 and 6"
    title = "S1: an array by columns, three ways"
    source = ("K. Sonoda, N. Utsunomiya, H. Iwatsuki, H. Kumazaki (Hitachi): Parallel File I/O Feature for efficient "
              "implementation of MPI-IO on SR8000.")
    lead = ("1 GiB in pieces of 16 KiB by 2, 4 and 8 processes: UT (seek and access row by row), FV (a file view and one "
            "independent call), FV+COL (a file view and one collective call). There: an SR8000 of 8 nodes with a RAID disk "
            "each, blocks of 64 KiB. As in the paper, the bars of a figure are relative to its UT by 2 processes.")
    missing = ("The stored text of the paper has no values of figures 5 and 6, only the ratios in the table. In the page cache, "
               "which has no seeks, the ways differ less than on disks.")

    def all_sections(self):
        return [Columns(), Disks(), NodeDisks(), DaemonDisks()]

    def sections(self, wanted):
        disks = [NodeDisks(), DaemonDisks()] if wanted.io_nodes else [Disks()] if wanted.disks else []
        return disks if disks and "all" not in wanted.experiment else [Columns(), *disks]

    def places(self, measured):
        nodes, ranks = NodeDisks(), measured.context.nps(RANKS)
        for subject in measured.subjects():
            yield Place(subject.label(), "columns", subject.name, Columns().row, ranks)
        for subject in measured.subjects(stock=False):
            label = f"{subject.label()}, I/O nodes"
            yield Place(f"{label}, not combined", "io_nodes", subject.name, nodes.row, ranks)
            yield Place(label, "io_nodes", subject.name, default_row(nodes), ranks)
        for count in measured.context.disk_counts:
            for subject in measured.subjects(stock=False):
                yield Place(f"{subject.label()}, {count} disks", "disks", subject.name,
                            lambda np, way, op, c=count: Disks().row(c, way, op), [DISK_RANKS])

    def figures(self, measured):
        return [self.figure(measured, place, op) for op in ("read", "write") for place in self.places(measured)]

    def figure(self, measured, place, op):
        base, lines = place.value(measured, place.ranks[0], "UT", op), []
        for way in WAYS:
            values = [over(place.value(measured, np, way, op), base) for np in place.ranks]
            ends = [place.ends(measured, np, way, op) for np in place.ranks]
            lines.append(Line(NAMES[way], COLOURS[way], values,
                              [base and pair and (pair[0] / base, pair[1] / base) for pair in ends],
                              stated=self.stated(measured, place, way, op, base)))
        lead = f"1 is {base:,.0f} MiB/s.".replace(",", " ") if base else ""
        return Figure(f"Figure {FIGURE[op]} ({op.upper()}): {place.label}", "bars", place.ranks, "processes",
                      f"relative to UT by {place.ranks[0]}", lines, lead)

    def stated(self, measured, place, way, op, base):
        """What the paper's ratio to UT by 8 processes makes of the UT measured here."""
        ut = over(place.value(measured, 8, "UT", op), base) if 8 in place.ranks else None
        ratio = RATIOS.get((way, op))
        return {place.ranks.index(8): ratio * ut} if ut and ratio else {}

    def statements(self, measured):
        made, most = [], measured.context.nps(RANKS)[-1]
        for one, other, op, stated in STATED:
            here = {place.label: ratio for place in self.places(measured)
                    if (ratio := over(place.value(measured, place.ranks[-1], one, op),
                                      place.value(measured, place.ranks[-1], other, op)))}
            if here:
                made.append(Statement(f"{op}, {NAMES[one]} / {NAMES[other]}, {most} processes", stated, here))
        return made + self.shares(measured)

    def shares(self, measured):
        """Of the sum of the disks; the paper has no such figures."""
        made = []
        for section, rows in (("io_nodes", {f"np 8 COL {op}, default": f"{op}, FV+COL by 8, I/O nodes" for op in OPS}),
                              ("daemon_disks", {f"{op}{cable}": f"{op}, two hosts with two disks each{cable}"
                                                for cable in DaemonDisks.cables for op in OPS})):
            for row, words in rows.items():
                limit = measured.median(section, row, "limit")
                here = {subject.label(): share for subject in measured.subjects(stock=False)
                        if (share := over(measured.median(section, row, subject.name), limit))}
                if here:
                    made.append(Statement(f"{words} / the sum of the disks", NO_VALUE, here))
        return made


def default_row(section):
    """UT is measured once."""
    return lambda np, way, op: section.row(np, way, op, "not combined" if way == "UT" else "default")
