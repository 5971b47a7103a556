"""The subjects of measurements: the stock MPIs found on this machine, and Shima under each.

A Flavour is one installed MPI with its compilers and launcher. A Subject is a way to start a program: with a
flavour alone, or the same flavour's program under Shima.
"""

import dataclasses
import hashlib
import os
import pathlib
import re
import subprocess
import sys

from lib import places, programs

FAMILIES = {"mpich": "MPICH", "openmpi": "Open MPI"}


@dataclasses.dataclass(frozen=True)
class Flavour:
    family: str  # mpich or openmpi
    mpicc: str
    mpicxx: str
    mpiexec: str
    version: str

    def label(self):
        return FAMILIES[self.family]

    def identity(self):
        """The directory of its compiled programs."""
        return f"{self.family}-{hashlib.sha256((self.mpicc + self.version).encode()).hexdigest()[:8]}"

    def launch(self, ranks):
        # Open MPI refuses more ranks than cores without these settings; MPICH does not.
        more = ["--map-by", ":OVERSUBSCRIBE"] if self.family == "openmpi" else []
        return [self.mpiexec, *more, "-n", str(ranks)]

    def environment(self):
        bin_dir = str(pathlib.Path(self.mpiexec).parent)
        changes = {"PATH": bin_dir + os.pathsep + os.environ["PATH"]}
        if self.family == "openmpi":
            changes |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return dict(os.environ, **changes)


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    flavour: Flavour
    shima: bool

    def command(self, ranks, program, arguments, one_space=False):
        run = [str(places.TOOL), "run", *(["--one-space"] if one_space else []), "--mpiexec", self.flavour.mpiexec,
               "-n", str(ranks)]
        start = run if self.shima else self.flavour.launch(ranks)
        return [*start, str(programs.binary(program, self.flavour)), *map(str, arguments)]

    def label(self):
        return f"Shima on {self.flavour.label()}" if self.shima else f"{self.flavour.label()} stock"


# --- finding ----------------------------------------------------------------------------------

def flavour_of(mpiexec):
    """The MPI of a launcher, whose compilers are beside it and have the same suffix; or None."""
    path = pathlib.Path(mpiexec)
    if not os.access(path, os.X_OK):
        return None
    told = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    family = "openmpi" if re.search(r"Open MPI|OpenRTE|PRRTE", told) else "mpich" if "HYDRA" in told else None
    suffix = path.suffix if path.suffix[1:] in FAMILIES else ""
    mpicc, mpicxx = (path.with_name(name + suffix) for name in ("mpicc", "mpicxx"))
    if family is None or not os.access(mpicc, os.X_OK):
        return None
    version = re.search(r"(?:Version:|\(Open MPI\)|\(OpenRTE\)|\(PRRTE\))\s*(\S+)", told)
    return Flavour(family, str(mpicc), str(mpicxx), str(mpiexec), version.group(1) if version else "unknown")


def launchers():
    """All launchers in question, the preferred ones first: those that scripts/setup has installed, and PATH's."""
    directories = [places.ROOT / "build/deps" / family / "bin" for family in FAMILIES]
    directories += [pathlib.Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    for directory in directories:
        yield directory / "mpiexec"
        yield from (directory / f"mpiexec.{family}" for family in FAMILIES)


def find_flavours(families=tuple(FAMILIES)):
    """The first MPI found of each family, in the order of `families`."""
    found = {}
    for launcher in launchers():
        flavour = flavour_of(str(launcher)) if set(families) - found.keys() else None
        if flavour and flavour.family in families:
            found.setdefault(flavour.family, flavour)
    for family in families:
        if family not in found:
            print(f"no {FAMILIES[family]} found: its columns stay empty", file=sys.stderr)
    return [found[family] for family in families if family in found]


def find_flavour(family):
    return next(iter(find_flavours([family])), None)


def find_subjects(flavours, with_shima=True):
    subjects = [Subject(flavour.family, flavour, False) for flavour in flavours]
    if with_shima and places.shima_is_built():
        subjects += [Subject("shima/" + flavour.family, flavour, True) for flavour in flavours]
    return subjects
