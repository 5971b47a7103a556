"""The cost of MPI calls by another task: the experiment of the paper about Multiple PVAS.

A rank calls MPI for a requester that is not an MPI process. Below which size does the delegation cost
more than the message? And what is the cost of one request that stands for many transfers, a
collective call? The other rank makes its own calls; both are on one machine.
"""

from lib import places
from lib.places import TOOL
from lib.programs import binary
from lib.results import LOWER, Sample
from lib.section import Job, Section

MESSAGES = [4**power for power in range(11)]
THINGS = {"send": MESSAGES, "put": MESSAGES, "allreduce": [8 * 8**power for power in range(6)],
          "write_all of 256 pieces": [64, 512, 4096]}
NEAR = 1.25


def tell_crossover(results, row, pattern, sizes, own, other):
    """A row: the smallest size from which on `other` takes no longer than NEAR times `own`."""
    found = None
    for size in sorted(sizes, reverse=True):
        name = pattern.format(size)
        best = [results.best(name, way) if name in results.samples else None
                for way in (own, other)]
        if None in best or best[1] > NEAR * best[0]:
            break
        found = size
    if found is not None:
        results.add(other, [Sample(row, found, "B", LOWER)])


def crossover_row(thing):
    return f"{thing}: within a quarter of its own from"


class DelegatedNet(Section):
    name = "delegated_net"
    title = "Delegated MPI: a rank's own calls, and those it makes for another task"
    lead = ("nanoseconds a call (send: half of a message and its answer), median of 7 rounds in "
            "each job; 2 ranks on one machine")
    limit = False

    def skip_reason(self):
        return places.why_no_spaces()

    def flavours(self, context):
        return [subject.flavour for subject in context.subjects if not subject.shima]

    def columns(self, context):
        return [f"{way}/{flavour.family}" for flavour in self.flavours(context)
                for way in ("own", "delegated")]

    def row_names(self, context):
        rows = [f"{thing} {size} B" for thing, sizes in THINGS.items() for size in sizes]
        return rows + [crossover_row(thing) for thing in THINGS]

    def jobs(self, context):
        for flavour in self.flavours(context):
            yield Job("all", flavour.family, lambda f=flavour: self.measure(context, f))

    def measure(self, context, flavour):
        path = context.directory / "delegated.dat"
        environment = flavour.environment() | {"SHIMA_ONE_SPACE": "required"}
        outcome = context.measure(
            [str(TOOL), "run", "--one-space", "-n", "2", "--mpiexec", flavour.mpiexec,
             str(binary("delegate_net", flavour)), str(binary("delegate_net_task")), str(path)],
            environment)
        path.unlink(missing_ok=True)
        if not outcome.records:
            return [Sample("send 1 B", None, "ns", LOWER, outcome.problem or "no result",
                           subject=f"delegated/{flavour.family}")]
        return [Sample(f"{record['thing']} {record['bytes']} B", record["ns"], "ns", LOWER,
                       outcome.problem or ("WRONG DATA" if record["wrong_bytes"] else ""),
                       self.note(record), f"{record['way']}/{flavour.family}")
                for record in outcome.records]

    def note(self, record):
        if record["way"] == "own" or record["bytes"] > 1:
            return ""
        return {"sleeping": "a requester shares its rank's core and sleeps",
                "spinning": "every process has a core and spins"}[record["waiting"]]

    def targets(self, results, context):
        """No target: the section reports where the two are equal, by the best figures of all jobs."""
        for flavour in self.flavours(context):
            for thing, sizes in THINGS.items():
                tell_crossover(results, crossover_row(thing), f"{thing} {{}} B", sizes,
                               f"own/{flavour.family}", f"delegated/{flavour.family}")
