"""The page of `shima bench`: the documents' figures in their form, what they state, and what was measured here."""

import html
import pathlib

from documents.document import Measured
from lib import figure, picture
from lib.table import format_table, number

STYLE = picture.STYLE.replace("max-width: 940px", "max-width: 1080px") + """
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0 0 1rem; }
a { color: var(--c1); } h3 { font-size: .95rem; margin: 1.1rem 0 .3rem; }
.grid { display: grid; align-items: end; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.2rem 1.6rem; }
figure { margin: 0; } figcaption { font-weight: 600; font-size: .93rem; } figure p { font-size: .87rem; margin: 0 0 .3rem; }
figure .key { font-size: .85rem; margin-bottom: .2rem; }
svg .tick { font-size: 11px; fill: var(--soft); } svg .axis { font-size: 11.5px; fill: var(--soft); }
svg .value { font-size: 10.5px; } svg .name { font-size: 11.5px; }
svg .grid { stroke: var(--line); stroke-width: 1; display: inline; } svg .base { stroke: var(--soft); }
svg .lead { stroke: var(--line); } svg .range { stroke: var(--ink); stroke-width: 1.3; }
svg .stated-line { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 4 2; }
.key i.dashes { border-top: 2px dashed var(--ink); height: 0; border-radius: 0; vertical-align: 4px; }
.warning { border-left: 4px solid var(--bad); padding: .1rem .7rem; margin: .6rem 0; }
.failure { color: var(--bad); }
.stated td, .stated th { text-align: left; vertical-align: top; overflow-wrap: anywhere; } .stated td:nth-child(2) { font-weight: 600; }
.stated span { display: inline-block; margin-right: 1rem; }
td.text, th.text { text-align: left; white-space: normal; } .numbers td { white-space: nowrap; }
details { margin-top: .8rem; } summary { cursor: pointer; color: var(--soft); }
table { font-size: .88rem; }
"""


def escape(thing):
    return html.escape(str(thing))


def table(header, rows, kind="", texts=1):
    """The first `texts` columns are words."""
    def line(cells, tag):
        return "<tr>" + "".join(f'<{tag}{" class=text" if i < texts else ""}>{escape(cell)}</{tag}>'
                                for i, cell in enumerate(cells)) + "</tr>"
    return (f'<div class="scroll"><table class="{kind}"><thead>{line(header, "th")}</thead><tbody>'
            + "".join(line(row, "td") for row in rows) + "</tbody></table></div>")


def statements_part(statements):
    """What the document states, and beside it the values of each subject."""
    if not statements:
        return ""
    rows = "".join(f"<tr><td>{escape(statement.text)}</td><td>{escape(statement.stated)}</td><td>"
                   + " ".join(f"<span>{escape(label)}&nbsp;<b>{escape(shown(value))}</b></span>"
                              for label, value in statement.here.items()) + "</td></tr>" for statement in statements)
    return ("<h3>What the document states, and what was measured here</h3>"
            f'<table class="stated"><thead><tr><th></th><th>the document</th><th>here</th></tr></thead><tbody>{rows}</tbody></table>')


def statements_of(document, measured):
    """As text; a line for each subject, because there are many."""
    statements = document.statements(measured)
    rows = [[statement.text if first else "", statement.stated if first else "", label, shown(value)]
            for statement in statements for first, (label, value) in
            ((label == next(iter(statement.here)), (label, value)) for label, value in statement.here.items())]
    return format_table(["", "the document", "measured here", ""], rows) if rows else ""


def shown(value):
    return value if isinstance(value, str) else number(value)


def results_table(results):
    rows = []
    for row in results.samples:
        unit = next(iter(results.samples[row].values()))[0].unit
        cells = []
        for subject in results.subjects:
            values = results.values(row, subject)
            ends = f" ({number(min(values))}\u2013{number(max(values))})" if len(values) > 1 else ""
            cells.append(number(results.median(row, subject)) + ends if values else
                         "failed" if subject in results.samples[row] else "")
        rows.append([row, unit, *cells])
    return table(["median (least\u2013largest)", "unit", *results.subjects], rows, "numbers", 1)


def section_part(results):
    notes = "".join(f"<p>{escape(note)}</p>" for note in results.notes())
    failures = "".join(f'<p class="failure">{escape(failure)}</p>' for failure in results.all_problems())
    return (f"<details><summary>All figures: {escape(results.title)}</summary>{results_table(results)}{notes}</details>"
            + failures)


def document_part(document, measured):
    results = [measured.results[section.name] for section in document.all_sections() if section.name in measured.results]
    warnings = [f"{each.title}: {warning}" for each in results for warning in each.warnings()]
    figures = [each for each in document.figures(measured) if not each.is_empty()]
    return (f'<section class="card" id="{document.name}"><h2>{escape(document.title)}</h2>'
            f'<p class="soft">{escape(document.source)}</p><p>{escape(document.lead)}</p>'
            + "".join(f'<p class="warning">Noisy: {escape(warning)}.</p>' for warning in warnings)
            + f'<div class="grid">{"".join(map(figure.draw, figures))}</div>'
            + statements_part(document.statements(measured))
            + f'<p class="soft">{escape(document.missing)}</p>'
            + "".join(map(section_part, results)) + "</section>")


def facts_text(facts):
    mpis = ", ".join(f"{name} {version}" for name, version in facts["mpi"].items())
    return (f"{facts['date']}; {facts['cores']} cores, {facts['processor']}, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
            f"{facts['file_system']}; {mpis}")


def page(chosen, results, context, facts, remarks=()):
    measured = Measured(results, context)
    links = "".join(f'<a href="#{document.name}">{escape(document.name)}</a>' for document in chosen)
    parts = "".join(document_part(document, measured) for document in chosen)
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>shima bench</title><style>{STYLE}</style></head><body><h1>What the documents measured, measured again</h1>"
            f'<p class="soft">{escape(facts_text(facts))}</p>{remarks}<nav>{links}</nav>{parts}'
            "<footer>Made by shima bench. Jobs alternate in random order; medians, and the least and the largest sample. "
            "A document's figure is not repeated where its stored text has no values.</footer></body></html>\n")


def write_page(path, chosen, results, context, facts, remarks=()):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(chosen, results, context, facts, remarks))
