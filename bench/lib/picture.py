"""A self-contained HTML page with horizontal bar charts, drawn as inline SVG.

A chart has groups (a cell: one way and operation), a group has one bar per subject. Colours follow
the reader's light or dark setting; every bar shows its figure, so that no information depends on
colour alone. Bars of one chart share a scale, unless each group has its own scale.
"""

import dataclasses
import html

LABEL_WIDTH, PLOT_WIDTH, NOTE_WIDTH = 130, 460, 290
BAR_HEIGHT, BAR_GAP, GROUP_GAP = 17, 4, 20
WIDTH = LABEL_WIDTH + PLOT_WIDTH + NOTE_WIDTH

STYLE = """
:root { --page: #fbfaf7; --ink: #22262b; --soft: #6b7280; --line: #dcd8cf; --card: #ffffff;
        --c0: #b9bdc4; --c1: #1f5fa8; --c2: #d3c3a8; --c3: #c2571a; --good: #23733c; --bad: #a3312a;
        --c4: #3b8a5c; --c5: #7d5fb0; --c6: #b8476a; --c7: #2b8c9b; }
@media (prefers-color-scheme: dark) {
:root { --page: #15181c; --ink: #e6e4df; --soft: #9aa1ab; --line: #363b42; --card: #1d2126;
        --c0: #596069; --c1: #5c9fe6; --c2: #75674e; --c3: #ee8a4c; --good: #74c98d; --bad: #ef8b83;
        --c4: #67c08d; --c5: #b497e6; --c6: #ec8aa7; --c7: #63c3d1; } }
body { background: var(--page); color: var(--ink); max-width: 940px; margin: 2.5rem auto;
       padding: 0 1rem; font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 0 0 .1rem; }
p { margin: .2rem 0 .8rem; } .soft, footer { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
        padding: 1.1rem 1.3rem; margin: 1.3rem 0; }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; }
.key i { display: inline-block; width: 13px; height: 13px; border-radius: 3px; margin-right: .4rem;
         vertical-align: -1px; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font-size: 12.5px; dominant-baseline: central;
           font-variant-numeric: tabular-nums; }
svg .group { font-weight: 600; } svg .ratio { font-weight: 600; fill: var(--good); }
svg .worse { font-weight: 600; fill: var(--bad); } svg .mark { fill: var(--soft); }
svg line { stroke: var(--line); } svg .limit { stroke: var(--soft); stroke-dasharray: 4 3; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; }
.scroll { overflow-x: auto; }
"""


@dataclasses.dataclass
class Bar:
    series: int          # selects the colour
    value: float | None
    text: str            # the figure with its unit
    ratio: str = ""      # an annotation: the ratio to its stock MPI
    better: bool | None = None  # the colour of the annotation: good, bad, or neutral


@dataclasses.dataclass
class Group:
    label: str
    bars: list
    limit: float | None = None  # a dashed line: the machine's limit


@dataclasses.dataclass
class Chart:
    title: str
    lead: str
    groups: list
    own_scale: bool = False
    limit_label: str = ""


def text(x, y, content, kind="", anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{html.escape(content)}</text>")


def draw_bar(bar, y, scale):
    middle = y + BAR_HEIGHT / 2
    if bar.value is None:
        return [text(LABEL_WIDTH + 6, middle, bar.text, "mark")]
    width = max(1.5, bar.value * scale)
    parts = [f'<rect x="{LABEL_WIDTH}" y="{y:.1f}" width="{width:.1f}" height="{BAR_HEIGHT}" '
             f'rx="3" fill="var(--c{bar.series})"><title>{html.escape(bar.text)}</title></rect>']
    after = LABEL_WIDTH + width + 7
    parts.append(text(after, middle, bar.text))
    if bar.ratio:
        kind = {None: "mark", True: "ratio", False: "worse"}[bar.better]
        parts.append(text(after + 7.3 * len(bar.text) + 8, middle, bar.ratio, kind))
    return parts


def group_height(group):
    return len(group.bars) * (BAR_HEIGHT + BAR_GAP) + GROUP_GAP


def largest(groups):
    values = [bar.value or 0 for group in groups for bar in group.bars]
    return max(values + [1e-9])


def draw_limit(group, top, bottom, scale):
    x = LABEL_WIDTH + (group.limit or 0) * scale
    if not group.limit or x > LABEL_WIDTH + PLOT_WIDTH + 60:
        return []  # outside the chart: the legend still names it
    return [f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>']


def draw_groups(chart):
    y, parts = 4, []
    for group in chart.groups:
        scale = PLOT_WIDTH / largest([group] if chart.own_scale else chart.groups)
        bottom = y + group_height(group) - GROUP_GAP
        parts += draw_limit(group, y - 4, bottom, scale)
        parts.append(text(0, (y + bottom - BAR_GAP) / 2, group.label, "group"))
        for i, bar in enumerate(group.bars):
            parts += draw_bar(bar, y + i * (BAR_HEIGHT + BAR_GAP), scale)
        parts.append(f'<line x1="{LABEL_WIDTH}" x2="{LABEL_WIDTH}" y1="{y - 4}" y2="{bottom}"/>')
        y += group_height(group)
    return parts, y - GROUP_GAP + 6


def draw_chart(chart):
    parts, height = draw_groups(chart)
    return (f'<section class="card"><h2>{html.escape(chart.title)}</h2>'
            f'<p class="soft">{html.escape(chart.lead)} {html.escape(chart.limit_label)}</p>'
            f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
            f'aria-label="{html.escape(chart.title)}">{"".join(parts)}</svg></section>')


def draw_key(series):
    items = "".join(f'<span><i style="background:var(--c{i})"></i>{html.escape(name)}</span>'
                    for i, name in series)
    return f'<div class="key">{items}</div>'


def draw_table(header, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    return ('<section class="card scroll"><table>' + line(header, "th")
            + "".join(line(row, "td") for row in rows) + "</table></section>")


def page(title, lead, series, charts, header, rows, footer):
    body = "".join(map(draw_chart, charts))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
            f'<h1>{html.escape(title)}</h1><p class="soft">{html.escape(lead)}</p>'
            f"{draw_key(series)}{body}{draw_table(header, rows)}"
            f"<footer>{html.escape(footer)}</footer></body></html>\n")
