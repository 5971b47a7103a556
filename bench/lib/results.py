"""The samples of a run, and whether they reach their targets.

A Sample is one figure of one subject in one row of one section. Results stores all samples and
computes medians and bests. A Verdict compares a figure of Shima's, mostly a median, with a reference.
"""

import dataclasses
import statistics

from lib.table import format_table, number

HIGHER, LOWER = "higher", "lower"
WIDE = 0.3


@dataclasses.dataclass
class Sample:
    row: str
    value: float | None
    unit: str = "MiB/s"
    better: str = HIGHER
    problem: str = ""  # why the row fails although there is a figure, or why there is none
    note: str = ""     # worth printing, but no failure
    subject: str = ""  # the subject of the figure, if not that of the job


@dataclasses.dataclass
class Verdict:
    row: str
    subject: str
    what: str
    ratio: float
    needed: float
    better: str
    # Missed, but this run cannot separate the ratio from the target, and why.
    even: bool = False
    why_even: str = "their samples overlap"

    def reached(self):
        return self.ratio >= self.needed if self.better == HIGHER else self.ratio <= self.needed

    def text(self):
        sign = ">=" if self.better == HIGHER else "<="
        reached = f"{self.ratio:.3f} of {self.what}"
        why = f"; {self.why_even}" if self.even and not self.reached() else ""
        return f"{self.subject} reaches {reached}, needs {sign} {self.needed:.2f}{why}"


class Results:
    """The samples of one section."""

    def __init__(self, title, subjects):
        self.title = title
        self.subjects = subjects  # names, in the order of the columns
        self.samples = {}         # row -> subject -> [Sample]
        self.verdicts = []
        self.noisy = []           # (job, share of the processors that other programs used)

    def add(self, subject, samples):
        for sample in samples:
            column = sample.subject or subject
            self.samples.setdefault(sample.row, {}).setdefault(column, []).append(sample)

    def arrange(self, names):
        """Sorts the rows into this order; jobs ran in a random one."""
        place = {name: i for i, name in enumerate(names)}
        self.samples = dict(sorted(self.samples.items(), key=lambda item: place[item[0]]))

    def values(self, row, subject):
        samples = self.samples.get(row, {}).get(subject, [])
        return [sample.value for sample in samples if sample.value is not None]

    def median(self, row, subject):
        values = self.values(row, subject)
        return statistics.median(values) if values else None

    def best(self, row, subject):
        values = self.values(row, subject)
        pick = max if self._any_sample(row).better == HIGHER else min
        return pick(values) if values else None

    def _any_sample(self, row):
        return next(iter(self.samples[row].values()))[0]

    def problems(self, row):
        found = {f"{subject}: {sample.problem}" for subject, samples in self.samples[row].items()
                 for sample in samples if sample.problem}
        return sorted(found)

    def even_rows(self):
        return [f"even, {v.row}: {v.text()}" for v in self.verdicts if v.even and not v.reached()]

    def notes(self):
        return sorted({f"{subject}, {row}: {sample.note}" for row, by_subject in self.samples.items()
                       for subject, samples in by_subject.items() for sample in samples
                       if sample.note})

    # --- comparing ----------------------------------------------------------------------------

    def stock(self):
        return [name for name in self.subjects if name in ("mpich", "openmpi")]

    def shima(self):
        return [name for name in self.subjects if name.startswith("shima/")]

    def best_median(self, rows, subjects, better):
        medians = [self.median(row, subject) for row in rows for subject in subjects
                   if row in self.samples]
        medians = [median for median in medians if median is not None]
        return (max if better == HIGHER else min)(medians) if medians else None

    def require(self, row, needed, what, rows, subjects, only=None):
        """Every Shima subject's median in `row`, against the best median of `subjects` in `rows`."""
        if row not in self.samples:
            return
        better = self._any_sample(row).better
        reference = self.best_median(rows, subjects, better)
        for subject in self.shima():
            value = self.median(row, subject)
            if value is not None and reference and (only is None or subject == only):
                even = self._overlap(self.values(row, subject), needed, [
                    self.values(other, name) for other in rows if other in self.samples
                    for name in subjects if self.median(other, name) == reference])
                self.verdicts.append(
                    Verdict(row, subject, what, value / reference, needed, better, even))

    @staticmethod
    def _overlap(mine, needed, references):
        """Whether one sample of each side is within, or beyond, the range of the other side."""
        return len(mine) > 1 and any(
            len(theirs) > 1 and max(mine) >= needed * min(theirs) and
            needed * max(theirs) >= min(mine) for theirs in references)

    def require_below(self, row, needed, what):
        """Every Shima subject's median in `row` is itself a ratio that must not exceed `needed`."""
        for subject in self.shima():
            value = self.median(row, subject) if row in self.samples else None
            if value is not None:
                self.verdicts.append(Verdict(row, subject, what, value, needed, LOWER))

    # --- showing ------------------------------------------------------------------------------

    def _cell(self, row, subject, repetitions):
        values = self.values(row, subject)
        if not values:
            return "failed" if subject in self.samples[row] else "-"
        few = f" n={len(values)}" if len(values) < repetitions else ""
        if len(values) == 1:
            return number(values[0]) + few
        return f"{number(self.median(row, subject))} ({number(self.best(row, subject))}){few}"

    def _ratio(self, row, references):
        """The worse Shima subject's median over the best of the references."""
        better = self._any_sample(row).better
        reference = self.best_median([row], references, better)
        mine = [self.median(row, subject) for subject in self.shima()]
        mine = [value for value in mine if value is not None]
        if not mine or not reference:
            return "-"
        return f"{(min if better == HIGHER else max)(mine) / reference:.2f}"

    def _own_ratio(self, row, subject):
        mine, stock = self.median(row, subject), self.median(row, subject.removeprefix("shima/"))
        return f"{mine / stock:.2f}" if mine and stock else "-"

    def _judgement(self, row):
        if self.problems(row):
            return "FAIL"
        judged = [verdict for verdict in self.verdicts if verdict.row == row]
        if not all(verdict.reached() or verdict.even for verdict in judged):
            return "MISS"
        if not all(verdict.reached() for verdict in judged):
            return "even"
        return "ok" if judged else ""

    def table(self, repetitions, judged=True):
        shima = self.shima()
        header = ["", "unit", *self.subjects, *(f"{name[6:]} x" for name in shima)]
        header += ["/best stock", "/limit"] if shima else []
        header += ["verdict"] if shima and judged else []
        rows = []
        for row in self.samples:
            cells = [row, self._any_sample(row).unit]
            cells += [self._cell(row, subject, repetitions) for subject in self.subjects]
            cells += [self._own_ratio(row, subject) for subject in shima]
            if shima:
                cells += [self._ratio(row, self.stock()), self._ratio(row, ["limit"])]
                cells += [self._judgement(row)] if judged else []
            rows.append(cells)
        return format_table(header, rows)

    def all_problems(self):
        return [f"FAIL {row}: {problem}" for row in self.samples for problem in self.problems(row)]

    def failures(self):
        missed = [f"MISS {v.row}: {v.text()}" for v in self.verdicts
                  if not v.reached() and not v.even]
        return missed + self.all_problems()

    def warnings(self):
        """What makes the figures doubtful: other programs, and samples of one figure that differ much."""
        found = []
        if self.noisy:
            share = max(share for _, share in self.noisy)
            found.append(f"other programs used up to {share:.0%} of the processors during {len(self.noisy)} jobs")
        spreads = [self.spread(row, subject) for row, by_subject in self.samples.items() for subject in by_subject]
        wide = [spread for spread in spreads if spread and spread > WIDE]
        if wide:
            found.append(f"samples of {len(wide)} of {len(spreads)} figures differ by more than {WIDE:.0%} of their median")
        return found

    def spread(self, row, subject):
        """The range of the samples, relative to their median."""
        values, median = self.values(row, subject), self.median(row, subject)
        return (max(values) - min(values)) / median if len(values) > 1 and median else None

    def as_json(self):
        rows = [{"row": row, "subject": subject, "unit": samples[0].unit,
                 "better": samples[0].better, "median": self.median(row, subject),
                 "best": self.best(row, subject), "values": self.values(row, subject),
                 "problems": sorted({s.problem for s in samples if s.problem})}
                for row, by_subject in self.samples.items()
                for subject, samples in by_subject.items()]
        verdicts = [dict(dataclasses.asdict(v), reached=v.reached()) for v in self.verdicts]
        return {"title": self.title, "rows": rows, "verdicts": verdicts, "notes": self.even_rows() + self.notes(),
                "warnings": self.warnings()}
