"""Base of the five documents: which experiments are theirs, their figures, and what they state.

A document's stored text has few values of its figures. `stated` repeats what it says, and is `no value` where it
says something without one.
"""

import dataclasses

NO_VALUE = "no value stated"


@dataclasses.dataclass
class Statement:
    text: str
    stated: str
    here: dict  # label of a subject -> the measured value, a number or words

    def as_json(self):
        return dataclasses.asdict(self)


class Measured:
    """Results by the name of their section; what was not measured is None."""

    def __init__(self, results, context):
        self.results, self.context = results, context

    def has(self, section):
        return section in self.results

    def median(self, section, row, column):
        results = self.results.get(section)
        return results.median(row, column) if results and row in results.samples else None

    def ends(self, section, row, column):
        """The least and the largest sample."""
        results = self.results.get(section)
        values = results.values(row, column) if results and row in results.samples else []
        return (min(values), max(values)) if values else None

    def subjects(self, stock=True, shima=True):
        return [subject for subject in self.context.subjects if (shima if subject.shima else stock)]


def over(one, other):
    return one / other if one is not None and other else None


class Document:
    name = ""     # the word after `shima bench`
    title = ""
    source = ""   # authors, title
    lead = ""     # what they ran, on what
    missing = ""  # what the stored text lacks
    form = ""     # the figures, for the list

    def sections(self, wanted):
        """The experiments for the options of the command."""
        return self.all_sections()

    def all_sections(self):
        raise NotImplementedError

    def figures(self, measured):
        return []

    def statements(self, measured):
        return []

    def as_json(self, measured):
        names = [section.name for section in self.all_sections() if measured.has(section.name)]
        figures = [figure for figure in self.figures(measured) if not figure.is_empty()]
        return {"title": self.title, "source": self.source, "figures": [figure.as_json() for figure in figures],
                "statements": [statement.as_json() for statement in self.statements(measured)],
                "sections": {name: measured.results[name].as_json() for name in names}}
