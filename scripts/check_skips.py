#!/usr/bin/env python3
"""Which tests were skipped, and whether they may.  Usage: check_skips.py JUNIT-FILE KNOWN-SKIPS

A test that cannot run on a machine (no root, no second host) exits with code 77.  That must be
expected: each line of the known skips is a regular expression for test names and a reason.  Any other skip, and
a run without a single test, exits 1.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def read_known(path):
    known = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split(None, 1)
            if len(words) == 2:
                known.append((re.compile(words[0]), words[1].strip()))
            elif words:
                sys.exit(f"{path}: no reason given for {words[0]}")
    return known


def main():
    cases = ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
    known = read_known(sys.argv[2])
    unknown = []
    for case in cases:
        if case.find("skipped") is None and case.get("status") not in ("notrun", "disabled"):
            continue
        name = case.get("name")
        reason = next((why for pattern, why in known if pattern.fullmatch(name)), None)
        print(f"skipped: {name}: {reason or 'NOT in ' + sys.argv[2]}")
        if reason is None:
            unknown.append(name)
    if not cases:
        sys.exit("no test ran")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
