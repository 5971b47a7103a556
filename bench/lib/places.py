"""Where the benchmark's sources, Shima and compiled programs are.

The sources lie in bench/ and examples/ of one directory: of the repository, or of share/shima of an installed
Shima. `shima bench` names itself in SHIMA_BENCH_TOOL; its libraries and headers are found from there. Compiled
programs go below `programs`, which `shima bench` sets.
"""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("SHIMA_BENCH_TOOL") or ROOT / "build/release/bin/shima")
PREFIX = TOOL.parent.parent
PVAS_ROOT = PREFIX / "lib/shima/pvas-root"

programs = ROOT / "build/bench"


def shima_is_built():
    return os.access(TOOL, os.X_OK)


def libraries():
    """The directory of the C libraries; Debian's name for it contains the architecture."""
    found = [path.parent for path in sorted(PREFIX.glob("lib*/libshima-pff.so")) +
             sorted(PREFIX.glob("lib/*-linux-*/libshima-pff.so"))]
    return found[0] if found else PREFIX / "lib"


def headers():
    installed = PREFIX / "include"
    return installed if (installed / "shima/pff.h").exists() else ROOT / "include"


def why_no_spaces():
    return None if PVAS_ROOT.exists() else "no address spaces of many programs on this machine"
