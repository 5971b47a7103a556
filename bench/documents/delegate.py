"""S5: sends and puts by another task, figure 3."""

from documents.document import NO_VALUE, Document, Statement
from experiments.delegated_net import MESSAGES, THINGS, DelegatedNet, crossover_row
from experiments.delegation import MODES, SIZES, Delegation
from documents.dsm import of_size
from lib.figure import Figure, Line

WAYS = {"own": ("own calls", 0), "delegated": ("delegated", 3)}
CACHED = {"own": ("own calls", 0), "inline": ("delegated, inline", 3), "by address": ("delegated, by address", 1)}


class DelegateDocument(Document):
    name = "delegate"
    form = "figure 3"
    title = "S5: calls delegated to another task of the same address space"
    source = ("G. Fukazawa, M. Sato, K. Yoshinaga, Y. Tsujita, A. Shimada, A. Hori, M. Namiki: Multiple PVAS, an execution "
              "environment for multi-core and many-core machines (in Japanese).")
    lead = ("1 B to 1 MiB: a requester hands `send` and `write` (here: MPI_Put) to a task that makes the call. There: InfiniBand, "
            "a requester on a Xeon Phi and a delegatee on a Xeon, compared with calls by the Xeon Phi itself. "
            "Here: MPI on one machine, compared with a rank's own calls; and writes to a cached file.")
    missing = ("The stored text has no values of figure 3, only those in the table. Its third line, the part of the InfiniBand call "
               "alone, is not measured here.")

    def all_sections(self):
        return [DelegatedNet(), Delegation()]

    def figures(self, measured):
        made = [self.messages(measured, thing, subject.flavour) for thing in ("send", "put") for subject in measured.subjects(shima=False)]
        made += [self.coarse(measured, subject.flavour) for subject in measured.subjects(shima=False)]
        return made + [self.cached(measured, mode) for mode in MODES]

    def us(self, measured, section, row, column):
        ns = measured.median(section, row, column)
        return ns and ns / 1000

    def by_size(self, measured, thing, family, sizes):
        return [Line(name, colour, [self.us(measured, "delegated_net", f"{thing} {size} B", f"{way}/{family}") for size in sizes])
                for way, (name, colour) in WAYS.items()]

    def messages(self, measured, thing, flavour):
        name = "write (MPI_Put)" if thing == "put" else "send"
        return Figure(f"Figure 3: {name}, {flavour.label()}", "lines", [of_size(size) for size in MESSAGES], "size", "\u00b5s",
                      self.by_size(measured, thing, flavour.family, MESSAGES))

    def coarse(self, measured, flavour):
        """What the paper suggests at its end: to delegate coarser operations."""
        thing = "write_all of 256 pieces"
        return Figure(f"A collective call: {thing}, {flavour.label()}", "lines", [of_size(size) for size in THINGS[thing]],
                      "size of a piece", "\u00b5s", self.by_size(measured, thing, flavour.family, THINGS[thing]))

    def cached(self, measured, mode):
        lines = [Line(name, colour, [self.us(measured, "delegation", f"{mode}: write {size} B", way) for size in SIZES])
                 for way, (name, colour) in CACHED.items()]
        return Figure(f"Writing to a cached file, {mode}", "lines", [of_size(size) for size in SIZES], "size", "\u00b5s", lines)

    def statements(self, measured):
        families = {subject.label(): subject.flavour.family for subject in measured.subjects(shima=False)}
        extra, from_size = {}, {}
        for label, family in families.items():
            pair = [self.us(measured, "delegated_net", "send 1 B", f"{way}/{family}") for way in WAYS]
            if all(pair):
                extra[label] = pair[1] - pair[0]
            size = measured.median("delegated_net", crossover_row("send"), f"delegated/{family}")
            from_size[label] = of_size(int(size)) if size else "never"
        trip = self.us(measured, "delegation", "spinning: round trip", "inline")
        made = [Statement("small send: delegated - own, \u00b5s", "0.4 to 1.9", extra),
                Statement("send: delegated takes about as long as own from", "4 KiB", from_size if extra else {}),
                Statement("an empty request and its answer, \u00b5s", "1.7 (average)", {"Shima": trip} if trip else {}),
                Statement("delegating MPI's collective calls", NO_VALUE, {})]
        return [statement for statement in made if statement.here]
