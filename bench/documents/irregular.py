"""Irregular pieces: what S1 and S3 name as future work."""

from documents.document import NO_VALUE, Document, Statement, over
from experiments.irregular import BY_HAND, CALLS, WAYS, Irregular
from lib.figure import Figure, Line


class IrregularDocument(Document):
    name = "irregular"
    form = "one figure"
    title = "Irregular pieces, dealt at random"
    source = "S1 ends with the wish to measure various access patterns, S3 with one for irregular patterns."
    lead = ("2 million pieces of 1 to 12 doubles, dealt at random over 8 ranks, in one collective call; and a program that exchanges "
            "the pieces by itself (MPI_Alltoallv) and makes one contiguous access a rank.")
    missing = "No document has figures of this."

    def all_sections(self):
        return [Irregular()]

    def columns(self, measured):
        """A label, a way and a subject each."""
        for subject in measured.subjects():
            for way in WAYS:
                yield f"{subject.label()}, {way}", way, subject.name
        for subject in measured.subjects(shima=False):
            yield f"{subject.label()}, by hand", BY_HAND, subject.name

    def value(self, measured, way, call, subject):
        return measured.median("irregular", Irregular().row(way, call), subject)

    def figures(self, measured):
        colours = {"mpich": 0, "openmpi": 2, "shima/mpich": 1, "shima/openmpi": 3}
        made = []
        for way in (*WAYS, BY_HAND):
            lines = [Line(subject.label(), colours[subject.name], [self.value(measured, way, call, subject.name) for call in CALLS],
                          [measured.ends("irregular", Irregular().row(way, call), subject.name) for call in CALLS])
                     for subject in measured.subjects(shima=way != BY_HAND)]
            made.append(Figure(f"{way}", "bars", CALLS, "call", "ns a piece", lines))
        return made

    def statements(self, measured):
        here = {}
        stock = [subject.name for subject in measured.subjects(shima=False)]
        for subject in measured.subjects(stock=False):
            for call in ("write", "read"):
                others = [value for name in stock if (value := self.value(measured, "one hindexed type", call, name))]
                own = self.value(measured, "one hindexed type", call, subject.name)
                if others and own:
                    here[f"{subject.label()}, {call}"] = over(min(others), own)
        return [Statement("the better stock MPI's time / Shima's, one hindexed type", NO_VALUE, here)] if here else []
