#!/usr/bin/env python3
# FLAVOURS: none
"""The page of `shima bench` with made-up results of all documents: its figures, its ratios, and how Chromium shows it.

The results make the documents' own ratios known: UT, FV and FV+COL have the speeds 1 : 5.2 : 13.5 at 8 processes.
"""

import os
import pathlib
import sys

import page_lib

ROOT = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "bench"))
os.environ["SHIMA_BENCH_TOOL"] = os.environ["SHIMA"]
from documents import DOCUMENTS
from documents.document import Measured
from documents.page import statements_of, write_page
from lib.results import Results, Sample
from lib.section import Context
from lib.subjects import Flavour, Subject

FLAVOURS = [Flavour(family, "mpicc", "mpicxx", "mpiexec", "1.0") for family in ("mpich", "openmpi")]
SUBJECTS = [Subject(name + flavour.family, flavour, bool(name)) for name in ("", "shima/") for flavour in FLAVOURS]
SPEEDS = {"UT": 1.0, "FV": 5.2, "COL": 13.5}
FACTS = {"cores": 2, "processor": "a <processor> & more", "memory_gib": 24, "kernel": "6.0", "file_system": "ext4",
         "mpi": {"MPICH": "1.0", "Open MPI": "1.0"}, "date": "2026-01-01 00:00"}


def value_of(row):
    way = next((speed for name, speed in SPEEDS.items() if f" {name} " in row), None)
    return 10.0 * way if way else 5.0 + len(row) % 7


def made_up(section, context):
    results = Results(section.title, section.columns(context))
    for row in section.row_names(context):
        for column in results.subjects:
            results.add(column, [Sample(row, value_of(row) * factor) for factor in (0.9, 1.0, 1.1)])
    return results


def check_columns(document, measured):
    by_text = {statement.text: statement for statement in document.statements(measured)}
    both = by_text["write, FV+COL / UT, 8 processes"]
    assert both.stated == "13.5" and len(both.here) >= 8, both
    assert all(abs(value - 13.5) < 1e-6 for value in both.here.values()), both
    figures = {figure.title: figure for figure in document.figures(measured)}
    written = figures["Figure 6 (WRITE): MPICH stock"]
    assert [line.name for line in written.lines] == ["UT", "FV", "FV+COL"] and written.xs == [2, 4, 8]
    assert [round(line.values[2], 3) for line in written.lines] == [1.0, 5.2, 13.5], written.lines


def check_forms(measured):
    """Each document has the figures of its paper."""
    titles = {document.name: [figure.title for figure in document.figures(measured) if not figure.is_empty()] for document in DOCUMENTS}
    wanted = {"columns": ("Figure 5", "Figure 6"), "steps": ("The two times, 24 processes",), "dsm": ("Figure 2", "Figure 3", "Figure 4"),
              "subgroup": ("Figure 2", "Figure 3", "Figure 4", "Figure 5", "Figure 6"), "delegate": ("Figure 3: send", "Figure 3: write")}
    for name, beginnings in wanted.items():
        for beginning in beginnings:
            assert any(title.startswith(beginning) for title in titles[name]), (name, beginning, titles[name])


def main():
    context = Context(SUBJECTS, pathlib.Path("."), 1.0, None, 60)
    sections = [section for document in DOCUMENTS for section in document.all_sections()]
    results = {section.name: made_up(section, context) for section in sections}
    results["dsm"].noisy.append(("a job", 0.5))
    results["steps"].add("mpich", [Sample("np 24 drawing", None, problem="exit <code> 1")])
    measured = Measured(results, context)
    check_columns(DOCUMENTS[0], measured)
    check_forms(measured)
    assert "13.5" in statements_of(DOCUMENTS[0], measured)

    write_page("all.html", DOCUMENTS, results, context, FACTS, ["left out: <nothing>"])
    page = page_lib.parse_page("all.html")
    figures = sum(not figure.is_empty() for document in DOCUMENTS for figure in document.figures(measured))
    assert page.counts["svg"] == page.counts["figure"] == figures > 40, page.counts
    for words in ("other programs used up to 50%", "exit <code> 1", "a <processor> & more", "no value stated", "13.5"):
        assert words in page.text(), words

    light, dark = (page_lib.check_shown("all.html", scheme) for scheme in (page_lib.LIGHT, page_lib.DARK))
    assert light.keys() != dark.keys()
    assert page_lib.overflow("all.html", 500) <= 0, "the page is wider than a narrow window"
    write_page("none.html", DOCUMENTS, {}, context, FACTS)  # all was skipped
    assert "svg" not in page_lib.parse_page("none.html").counts


if __name__ == "__main__":
    main()
