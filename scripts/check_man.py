#!/usr/bin/env python3
"""Man pages against what they describe.  Usage: check_man.py PATH-OF-SHIMA

shima(1) must name every subcommand and option that --help names, and no other option; every function that a
public header declares must be in the NAME or SYNOPSIS of a page of section 3.  Exits 1 and says what is missing.
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
    """The options of a --help text: what stands at the start of its option lines."""
    options = set()
    for line in text.splitlines():
        if re.match(r"^ +-", line):
            options |= set(OPTION.findall(line.split("  ")[1] if line.startswith("  ") else line))
    return options


def check_tool_page(tool):
    page = (ROOT / "man" / "shima.1").read_text().replace("\\-", "-")
    described = set(OPTION.findall("\n".join(l for l in page.splitlines() if l.startswith((".BR", ".BI", ".B", ".OP")))))
    overview = help_of(tool)
    subcommands = re.findall(r"^  ([a-z]+) {3,}\S", overview.split("Subcommands:")[1], re.M)
    real = documented_options(overview)
    complaints = []
    for subcommand in subcommands:
        real |= documented_options(help_of(tool, subcommand))
        if f"shima {subcommand}" not in page:
            complaints.append(f"man/shima.1: says nothing of `shima {subcommand}`")
    complaints += [f"man/shima.1: lacks option {option}" for option in sorted(real - described)]
    complaints += [f"man/shima.1: describes {option}, which --help does not know" for option in sorted(described - real)]
    return complaints


def check_headers():
    pages = "\n".join(page.read_text() for page in (ROOT / "man").glob("*.3"))
    complaints = []
    for header in sorted((ROOT / "include" / "shima").glob("*.h")):
        for name in re.findall(r"^\w[\w \*]*?\b(\w+)\(", header.read_text(), re.M):
            if not re.search(rf"\b{name}\b", pages):
                complaints.append(f"{header}: {name} is in no page of man/*.3")
    return complaints


def main():
    complaints = check_tool_page(sys.argv[1]) + check_headers()
    print("\n".join(complaints) or "man pages: as --help and the headers")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
