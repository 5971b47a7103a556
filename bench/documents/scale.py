"""Planning at scale, by `shima simulate`."""

from documents.document import Document
from experiments.scale import FIGURES, RANKS, SUBJECT, Scale
from lib.figure import Figure, Line


class ScaleDocument(Document):
    name = "scale"
    form = "one figure a cost"
    title = "Planning a collective call of a million ranks"
    source = "S4 gives as its reason that the cost of coordinating all ranks grows with them."
    lead = "What a rank, a node's leader, a subgroup's master and an agent do as the ranks grow, by `shima simulate`: no rank runs."
    missing = "No document has figures of this."

    def all_sections(self):
        return [Scale()]

    def figures(self, measured):
        ranks = measured.context.nps(RANKS)
        return [Figure(figure, "lines", ranks, "ranks", unit, [
            Line("a collective write", 1, [measured.median("scale", Scale().row(count, figure), SUBJECT) for count in ranks])])
                for figure, (unit, _) in FIGURES.items()]
