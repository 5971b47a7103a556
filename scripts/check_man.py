#!/usr/bin/env python3
"""Compares man pages with the programs and headers that they describe.  Usage: check_man.py PATH-OF-SHIMA

shima(1) must name every subcommand and option in --help, and no other option; a subcommand with a page of its own,
shima-SUBCOMMAND(1), has its options there, and those of its own subcommands. Every function that a
public header declares must have a page of section 3 (or a link to one, ".so man3/NAME.3") with it in its SYNOPSIS, and
every page a function.  Prints what is missing and exits 1.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z](?![\w-]))")


def help_of(tool, *subcommand):
    return subprocess.run([tool, *subcommand, "--help"], capture_output=True, text=True, check=True).stdout


def documented_options(text):
    """The options of a --help text: the words at the start of its option lines."""
    options = set()
    for line in text.splitlines():
        if re.match(r"^ +-", line):
            options |= set(OPTION.findall(line.split("  ")[1] if line.startswith("  ") else line))
    return options


def compare_options(name, page, real):
    described = set(OPTION.findall("\n".join(l for l in page.splitlines() if l.startswith((".BR", ".BI", ".B", ".OP")))))
    problems = [f"man/{name}: lacks option {option}" for option in sorted(real - described)]
    return problems + [f"man/{name}: describes {option}, which --help does not know" for option in sorted(described - real)]


def all_options(tool, subcommand):
    """Those of a subcommand and of its own subcommands."""
    text = help_of(tool, subcommand)
    own = re.findall(r"^  ([a-z]+) {3,}\S", text.partition("Subcommands:")[2], re.M)
    return documented_options(text).union(*(documented_options(help_of(tool, subcommand, name)) for name in own))


def check_tool_pages(tool):
    page = (ROOT / "man" / "shima.1").read_text().replace("\\-", "-")
    overview = help_of(tool)
    subcommands = re.findall(r"^  ([a-z]+) {3,}\S", overview.split("Subcommands:")[1], re.M)
    real = documented_options(overview)
    problems = []
    for subcommand in subcommands:
        options = all_options(tool, subcommand)
        own = ROOT / "man" / f"shima-{subcommand}.1"
        if own.exists():
            problems += compare_options(own.name, own.read_text().replace("\\-", "-").split(".SH OPTIONS")[-1], options)
        else:
            real |= options
        if f"shima {subcommand}" not in page:
            problems.append(f"man/shima.1: lacks the subcommand `shima {subcommand}`")
    return problems + compare_options("shima.1", page, real)


def page_of(name):
    """The text of a page of section 3, through its link if it is one; "" if there is none."""
    page = ROOT / "man" / f"{name}.3"
    text = page.read_text() if page.exists() else ""
    link = re.fullmatch(r"\.so man3/(\w+)\.3\n", text)
    return page_of(link[1]) if link else text


def check_headers():
    problems = []
    declared = set()
    for header in sorted((ROOT / "include" / "shima").glob("*.h")):
        for name in re.findall(r"^\w[\w \*]*?\b(\w+)\(", header.read_text(), re.M):
            declared.add(name)
            synopsis = page_of(name).split(".SH SYNOPSIS")[-1].split(".SH DESCRIPTION")[0]
            if not re.search(rf"\b{name}\(", synopsis):
                problems.append(f"{header}: {name} is in the SYNOPSIS of no page man/{name}.3")
        declared.add(header.stem)
    for page in sorted((ROOT / "man").glob("*.3")):
        if page.stem not in declared:
            problems.append(f"{page}: no header declares it")
    return problems


def main():
    problems = check_tool_pages(sys.argv[1]) + check_headers()
    print("\n".join(problems) or "man pages: agree with --help and the headers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
