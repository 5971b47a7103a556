"""Figures in the form of a paper: groups of upright bars, or lines over sizes, as inline SVG.

Every value can be read without colours: bars carry their numbers, points have different shapes, and lines end
with their names.
"""

import dataclasses
import html
import math

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 16, 50
NAMES = 118  # room for the names at the ends of lines
MARKS = ("circle", "square", "diamond", "triangle", "ring", "cross")


@dataclasses.dataclass
class Line:
    """A series of values, one for each x; None: not measured."""
    name: str
    colour: int
    values: list
    ranges: list = None  # of each value: the least and the largest sample
    dashed: bool = False
    stated: dict = dataclasses.field(default_factory=dict)  # by the number of a value: what the document's ratio makes of it


@dataclasses.dataclass
class Figure:
    title: str
    kind: str  # bars or lines
    xs: list   # labels
    x_label: str
    y_label: str
    lines: list
    lead: str = ""

    def is_empty(self):
        return not any(value is not None for line in self.lines for value in line.values)

    def as_json(self):
        return {"title": self.title, "x": [str(x) for x in self.xs], "x_label": self.x_label, "unit": self.y_label,
                "series": [{"name": line.name, "values": line.values} for line in self.lines]}


def short(value):
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tick_label(value):
    for least, unit, word in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{value / unit:g}{word}"
    return f"{value:g}"


def text(x, y, content, kind="", anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{more}>{html.escape(str(content))}</text>'


def rule(x1, y1, x2, y2, kind="grid"):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


class Linear:
    """From zero."""

    def __init__(self, values):
        most = max(values, default=1) or 1
        step = 10 ** math.floor(math.log10(most))
        step = next(s for s in (step / 5, step / 2, step, step * 2) if most / s <= 6)
        self.top = math.ceil(most * 1.02 / step) * step
        self.ticks = [step * i for i in range(round(self.top / step) + 1)]

    def share(self, value):
        return value / self.top


class Logarithmic:
    """Whole powers of ten."""

    def __init__(self, values):
        positive = [value for value in values if value > 0] or [1]
        self.low, self.high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive) * 1.0001))
        self.high = max(self.high, self.low + 1)
        self.ticks = [10.0 ** power for power in range(self.low, self.high + 1)]

    def share(self, value):
        return (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)


class Drawing:
    def __init__(self, figure):
        self.figure = figure
        values = [value for line in figure.lines for value in line.values if value is not None]
        values += [end for line in figure.lines for ends in line.ranges or [] if ends for end in ends]
        values += [value for line in figure.lines for value in line.stated.values()]
        self.scale = (Linear if figure.kind == "bars" else Logarithmic)(values)
        self.right = WIDTH - RIGHT - (NAMES if figure.kind == "lines" else 0)
        self.step = (self.right - LEFT) / len(figure.xs)

    def x(self, i):
        return LEFT + self.step * (i + 0.5)

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * max(0.0, self.scale.share(value))

    def axes(self):
        figure, parts = self.figure, []
        for tick in self.scale.ticks:
            parts.append(rule(LEFT, self.y(tick), self.right, self.y(tick)))
            parts.append(text(LEFT - 6, self.y(tick), tick_label(tick), "tick", "end"))
        every = max(1, math.ceil(len(figure.xs) * 42 / (self.right - LEFT)))
        for i, label in enumerate(figure.xs):
            if i % every == 0:
                for line, word in enumerate(str(label).split("\n")):
                    parts.append(text(self.x(i), HEIGHT - BOTTOM + 13 + 12 * line, word, "tick"))
        parts.append(text((LEFT + self.right) / 2, HEIGHT - 8, figure.x_label, "axis"))
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(text(11, middle, figure.y_label, "axis", more=f' transform="rotate(-90 11 {middle:.1f})"'))
        parts.append(rule(LEFT, HEIGHT - BOTTOM, self.right, HEIGHT - BOTTOM, "base"))
        return parts

    def bars(self):
        parts, count = [], len(self.figure.lines)
        width = min(38.0, self.step * 0.84 / count)
        for number, line in enumerate(self.figure.lines):
            for i, value in enumerate(line.values):
                left = self.x(i) + (number - count / 2) * width
                if value is None:
                    parts.append(text(left + width / 2, HEIGHT - BOTTOM - 8, "\u2013", "value"))
                    continue
                top = self.y(value)
                parts.append(f'<rect x="{left + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" '
                             f'height="{max(0.8, HEIGHT - BOTTOM - top):.1f}" fill="var(--c{line.colour})"'
                             f'{" opacity=" + chr(34) + ".55" + chr(34) if line.dashed else ""}>'
                             f"<title>{html.escape(f'{line.name}, {self.figure.xs[i]}: {short(value)}')}</title></rect>")
                ends = (line.ranges or [None] * len(line.values))[i]
                if ends and ends[1] > ends[0]:
                    parts.append(rule(left + width / 2, self.y(ends[0]), left + width / 2, self.y(ends[1]), "range"))
                    top = min(top, self.y(ends[1]))
                stated = line.stated.get(i)
                if stated is not None and abs(self.y(stated) - top) < 15:
                    top = min(top, self.y(stated))
                parts.append(text(left + width / 2, top - 7, short(value), "value"))
                parts += self.stated(stated, left, width)
        return parts

    def stated(self, value, left, width):
        if value is None:
            return []
        tip = html.escape(f"the document's ratio: {short(value)}")
        return [f'<g class="stated-mark">{rule(left - 1, self.y(value), left + width + 1, self.y(value), "stated-line")}'
                f"<title>{tip}</title></g>"]

    def points(self):
        parts, ends = [], []
        for number, line in enumerate(self.figure.lines):
            places = [(self.x(i), self.y(value), value, i) for i, value in enumerate(line.values) if value is not None]
            if not places:
                continue
            colour = f"var(--c{line.colour})"
            dash = ' stroke-dasharray="5 4"' if line.dashed else ""
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
            for x, y, value, i in places:
                tip = html.escape(f"{line.name}, {self.figure.xs[i]}: {short(value)} {self.figure.y_label}")
                parts.append(f"<g>{mark(MARKS[number % len(MARKS)], x, y, colour)}<title>{tip}</title></g>")
            ends.append([places[-1][1], places[-1][0], line, number])
        return parts + self.names(ends)

    def names(self, ends):
        """At the ends of the lines, far enough apart to be read."""
        ends.sort(key=lambda end: end[0])
        parts, below, room = [], TOP - 14.0, HEIGHT - BOTTOM - TOP
        least = min(14.0, room / max(1, len(ends)))
        for left, (y, x, line, number) in enumerate(ends):
            most = HEIGHT - BOTTOM - least * (len(ends) - left - 1)
            place = min(max(y, below + least), most)
            below = place
            colour = f"var(--c{line.colour})"
            parts.append(f'<line class="lead" x1="{x + 4:.1f}" y1="{y:.1f}" x2="{self.right + 4:.1f}" y2="{place:.1f}"/>')
            parts.append(mark(MARKS[number % len(MARKS)], self.right + 9, place, colour))
            parts.append(text(self.right + 16, place, line.name, "name", "start"))
        return parts

    def svg(self):
        inside = self.bars() if self.figure.kind == "bars" else self.points()
        return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(self.figure.title)}">'
                f'{"".join(self.axes() + inside)}</svg>')


def mark(shape, x, y, colour):
    r = 3.6
    if shape in ("circle", "ring"):
        fill = colour if shape == "circle" else "var(--card)"
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
    if shape == "cross":
        return (f'<path d="M{x - r:.1f} {y - r:.1f}L{x + r:.1f} {y + r:.1f}M{x - r:.1f} {y + r:.1f}L{x + r:.1f} {y - r:.1f}" '
                f'stroke="{colour}" stroke-width="2"/>')
    corners = {"square": [(-r, -r), (r, -r), (r, r), (-r, r)], "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
               "triangle": [(0, -r - 1), (r + 1, r), (-r - 1, r)]}[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def draw(figure):
    """A figure with its caption, and for bars the key."""
    key = ""
    if figure.kind == "bars":
        key = '<div class="key">' + "".join(
            f'<span><i style="background:var(--c{line.colour})"></i>{html.escape(line.name)}</span>'
            for line in figure.lines) + ('<span><i class="dashes"></i>the document\'s ratio</span>'
                                         if any(line.stated for line in figure.lines) else "") + "</div>"
    lead = f'<p class="soft">{html.escape(figure.lead)}</p>' if figure.lead else ""
    return f"<figure><figcaption>{html.escape(figure.title)}</figcaption>{lead}{key}{Drawing(figure).svg()}</figure>"
