"""S3: READ, WRITE and WRITE_B of a distributed shared memory by LAPI, TCP and UDP: figures 2 to 4."""

from documents.document import Document, Statement
from experiments.dsm import BY_LAPI, OPS, PAPER, SIZES, Dsm, row_of
from lib.figure import Figure, Line
from experiments.subgroup import name_of

FIGURE = {"READ": 2, "WRITE": 3, "WRITE_B": 4}
LINES = {"dsm": ("Shima", 1), BY_LAPI: ("Shima, by LAPI", 7), "tcp": ("TCP", 3), "tcp, spinning": ("TCP, spinning", 6), "udp": ("UDP", 5)}
STATED = {"READ": "8 (small), 4 (large)", "WRITE": "3 to 5", "WRITE_B": "7 (small), 4 (large)"}


def of_size(size):
    return f"{size} B" if size < 1024 else name_of(size)


class DsmDocument(Document):
    name = "dsm"
    form = "figures 2 to 4"
    title = "S3: a distributed shared memory on LAPI"
    source = ("Y. Shimono, B. O. Apduhan, T. Asazu, I. Arita (Kyushu Institute of Technology): Implementing a Distributed "
              "Shared Memory on LAPI for IBM SP2, Early Experiences.")
    lead = ("1000 calls a size on another task's memory. There: two nodes of an IBM SP2 with its switch, which LAPI uses "
            "without the kernel. Here: two tasks of this machine; `Shima` maps the other's memory, `by LAPI` sends messages.")
    missing = ("The stored text has no values of figures 2 to 4, only the factors in the table. UDP loses data of bursts of "
               "WRITE, here as there; such sizes have no point.")

    def all_sections(self):
        return [Dsm()]

    def figures(self, measured):
        return [self.figure(measured, op) for op in OPS]

    def value(self, measured, op, size, column):
        row = row_of(op, size)
        lost = measured.has("dsm") and row in measured.results["dsm"].samples and Dsm().has_lost(
            measured.results["dsm"], row, column)
        ns = None if lost else measured.median("dsm", row, column)
        return ns and ns / 1000

    def figure(self, measured, op):
        lines = [Line(name, colour, [self.value(measured, op, size, column) for size in SIZES], dashed=column == "tcp, spinning")
                 for column, (name, colour) in LINES.items()]
        return Figure(f"Figure {FIGURE[op]}: {op}", "lines", [of_size(size) for size in SIZES], "size", "\u00b5s a call", lines)

    def statements(self, measured):
        made = []
        for op in OPS:
            for which, size, stated in (("small", SIZES[0], PAPER[op][0]), ("large", SIZES[-1], PAPER[op][1])):
                here = {}
                for other in ("tcp", "udp"):
                    for own in ("dsm", BY_LAPI):
                        pair = [self.value(measured, op, size, column) for column in (other, own)]
                        if all(pair):
                            here[f"{LINES[other][0]} / {LINES[own][0]}"] = pair[0] / pair[1]
                words = "3 to 5" if op == "WRITE" else f"about {stated}"
                made.append(Statement(f"{op}, {which} data ({of_size(size)}): TCP or UDP / LAPI", words, here))
        return made
