"""S2: two times, of MPI-IO and of the naive program."""

from documents.document import Document, Statement, over
from experiments.steps import Steps
from lib.figure import Figure, Line

RANKS = 24
STATED = {"SGI MPT 2.14": (4.810011, 2.725134), "Intel MPI 2018.1": (4.748924, 2.741026)}  # seconds


class StepsDocument(Document):
    name = "steps"
    form = "two times"
    title = "S2: a new file every step"
    source = "A user's article of 2017 about trying MPI-IO (Qiita, in Japanese)."
    lead = ("100 steps of 100 000 doubles a rank, each in a new file: by MPI-IO (open, set_view, write_at, close), and by ranks "
            "that take turns to append. There: 24 processes of one node with 24 cores, Lustre. The two files of each "
            "step are compared.")
    missing = "The figure of 24 processes has the document's times on the left; its machine had a core for each process."

    def all_sections(self):
        return [Steps()]

    def sections(self, wanted):
        return [Steps([RANKS])]

    def figures(self, measured):
        return [self.figure(measured, np) for np in Steps().measured_nps(measured.context)]

    def figure(self, measured, np):
        stated = STATED if np == RANKS else {}
        xs = [name.replace(" ", "\n", 1) + " (stated)" for name in stated]
        lines = []
        for number, (label, name) in enumerate((("MPI-IO half", "MPI-IO"), ("naive half", "naive program"))):
            row = f"np {np} {label}"
            values = [times[number] for times in stated.values()]
            values += [measured.median("steps", row, subject.name) for subject in measured.subjects()]
            ranges = [None] * len(stated) + [measured.ends("steps", row, subject.name) for subject in measured.subjects()]
            lines.append(Line(name, (1, 2)[number], values, ranges))
        labels = [subject.label().replace(" on ", "\non ").replace(" stock", "\nstock") for subject in measured.subjects()]
        if not any(value is not None for line in lines for value in line.values[len(stated):]):
            return Figure("", "bars", [""], "", "", [])
        return Figure(f"The two times, {np} processes", "bars", [*xs, *labels], "", "seconds", lines)

    def statements(self, measured):
        made = []
        for np in Steps().measured_nps(measured.context):
            here = {subject.label(): ratio for subject in measured.subjects()
                    if (ratio := measured.median("steps", f"np {np} MPI-IO / naive", subject.name))}
            if here:
                stated = " and ".join(f"{over(*times):.2f}" for times in STATED.values()) if np == RANKS else "only 24 processes"
                made.append(Statement(f"MPI-IO / naive program, {np} processes", stated, here))
        return made
