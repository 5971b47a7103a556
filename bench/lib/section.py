"""Base of the sections of the benchmark.

A section creates jobs. A job belongs to a group (the cells to compare, which therefore run in direct
succession) and to one subject, and returns samples. A section also defines its targets.

`expected` names the paths through Shima that a row measures; a row fails if Shima's counters show
calls on another path. An empty set means that any path is right.
"""

import dataclasses
import typing

import two_hosts
from lib import runner
from lib.results import Sample
from lib.places import TOOL
from lib.programs import binary

OPS = ("write", "read")

# Large pieces are pulled by agents out of the ranks' memory, small ones packed by the ranks; each
# rank may read cached data itself. Between hosts data must be sent in messages.
COLLECTIVE_PATHS = {
    ("large", "write"): {"pull"},
    ("large", "read"): {"pull", "independent"},
    ("small", "write"): {"pack"},
    ("small", "read"): {"pack", "independent"},
    ("hosts", "write"): {"message"},
    ("hosts", "read"): {"message"},
}


@dataclasses.dataclass
class Context:
    subjects: list   # of Subject
    directory: object
    scale: float     # of the sizes: 1 is the experiment as its authors ran it
    np_list: list | None
    timeout_s: float
    random_seed: int = 1
    full: bool = False
    disk_counts: tuple = (1, 2, 4)
    node_count: int = 8
    warm_mib: int = runner.WARM_MIB

    @property
    def quick(self):
        return self.scale < 1

    def nps(self, usual):
        return [np for np in (self.np_list or usual)]

    def size_mib(self, usual):
        return self.scaled(usual, 8)

    def disk_mib(self, usual):
        """On slow disks an eighth of the array is used in any case."""
        return max(1, int(usual * min(1.0, 8 * self.scale)))

    def scaled(self, usual, least=1):
        return max(least, int(usual * self.scale))

    def measure(self, command, environment=None):
        return runner.measure(binary("warm_memory"), self.directory, command, environment,
                              self.timeout_s, self.warm_mib)

    def warmed(self):
        return runner.warmed(binary("warm_memory"), self.directory, self.warm_mib)

    def inside(self, directory):
        """This context for jobs whose new files are in another directory, which warmed() must watch."""
        return dataclasses.replace(self, directory=directory)

    def start(self, subject, np, program, arguments):
        return self.measure(subject.command(np, program, arguments), subject.flavour.environment())

    def start_over_hosts(self, subject, np, program, arguments, changes=None):
        """start() with half of the ranks on each of two hosts (two_hosts.py); also returns the MiB on the wire.

        The hosts share a page cache, so a hint makes Shima use messages where it would read from that cache.
        """
        command, environment = over_hosts(subject, program, arguments, changes)
        try:
            with two_hosts.TwoHosts() as hosts:
                outcome = self.measure(hosts.mpi_command(subject.flavour.mpiexec, np, command), environment)
                return outcome, hosts.bytes_on_wire() / 2**20
        except two_hosts.Unavailable as reason:
            return runner.Outcome([], [], 0.0, str(reason)), None


def over_hosts(subject, program, arguments, changes=None):
    """A rank's command in a job over hosts, and the job's environment."""
    command = [str(binary(program, subject.flavour)), *map(str, arguments)]
    if subject.shima:
        command = [str(TOOL), "exec", *command]
    return command, (subject.flavour.environment() | two_hosts.ROOT_ENVIRONMENT
                     | {"SHIMA_HINTS": "shima_reach=message"} | (changes or {}))


@dataclasses.dataclass
class Job:
    group: str
    subject: str
    run: typing.Callable[[], list]


def problem_of(outcome, record, subject, expected):
    if outcome.problem or record is None:
        return outcome.problem or "no result"
    if record.get("wrong_words") or record.get("wrong_bytes") or record.get("different_files"):
        return "WRONG DATA"
    if subject.shima and record.get("hole_bytes_written"):
        return f"{record['hole_bytes_written']} bytes written into holes"
    return runner.wrong_path(outcome.stats, expected) if subject.shima else ""


def rate(row, outcome, subject, expected=frozenset(), figure="open_close_mib_s"):
    record = outcome.records[0] if outcome.records else None
    value = record[figure] if record and not outcome.problem else None
    return Sample(row, value, problem=problem_of(outcome, record, subject, expected))


def limit_job(context, group, size_mib, rows):
    """The limit program; each of its two figures is stored in all the rows of that operation."""
    def run():
        path = context.directory / "limit.dat"
        samples = []
        for op in OPS:
            outcome = context.measure([str(binary("limit")), "--json", "--op", op,
                                       "--file", str(path), "--size-mib", str(size_mib)])
            figure = outcome.records[0]["open_close_mib_s"] if outcome.records else None
            samples += [Sample(row, figure, problem=outcome.problem) for row in rows[op]]
        path.unlink(missing_ok=True)
        return samples
    return Job(group, "limit", run)


class Section:
    """Defaults; a section defines name, title, jobs and targets."""

    limit = True
    lead = ""  # a line above the table
    is_warmed = True  # not for short calls: what releases the warm memory takes a core from their first milliseconds

    def skip_reason(self):
        return None

    def columns(self, context):
        return (["limit"] if self.limit else []) + [subject.name for subject in context.subjects]
