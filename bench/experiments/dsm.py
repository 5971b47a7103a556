"""The distributed shared memory: its calls, by every way, beside MPI's and plain copies.

The experiment of the paper about a DSM on LAPI: the same DSM over TCP and UDP. There READ was 8 times
faster for small and 4 times for large data, WRITE 3 to 5 times, WRITE_B 7 and 4 times.
"""

import os
import subprocess

import two_hosts
from lib.results import HIGHER, LOWER, Sample, Verdict
from lib.section import Job, Section
from lib.places import TOOL
from lib.programs import binary, can_be_compiled

SIZES = (8, 64, 512, 4096, 32768, 65536, 262144, 1 << 20)
OPS = ("READ", "WRITE", "WRITE_B")
BY_LAPI = "dsm/lapi"
WAYS = {"dsm": 0, BY_LAPI: 1, "tcp": 2, "tcp, spinning": 3, "udp": 4}
PAPER = {"READ": (8, 4), "WRITE": (3, 5), "WRITE_B": (7, 4)}
BATCHES, CALLS = 20, 50  # of a cell: batches, and calls in a batch
CORES = {"two cores": None, "one core": "0"}
HOSTS = "two hosts"
UCX = {"ucx": "polls", "ucx, sleeping": "sleeps"}  # how the target waits
UCX_FACTOR = 1.3


def row_of(op, size, cores="two cores"):
    return f"{op} {size} B" + ("" if cores == "two cores" else f", {cores}")


def paper_row(op, size):
    return f"{op} {size} B: TCP (blocking) / dsm"


class Dsm(Section):
    name = "dsm"
    title = "Distributed shared memory: one task's calls on another's memory"
    lead = ("nanoseconds a call, median of 20 batches of 50; copy: memcpy through a shared mapping; MPI: "
            "MPI_Get or MPI_Put and a flush; ucx: ucp_get or ucp_put alone, whose target polls, or sleeps; paper: the "
            "factors of an IBM SP2; two hosts: over TCP")
    limit = False

    def stock(self, context):
        return [subject for subject in context.subjects if not subject.shima]

    def columns(self, context):
        return [*WAYS, "copy", *UCX, *(subject.name for subject in self.stock(context)), "paper"]

    def row_names(self, context):
        rows = [row_of(op, size, cores) for cores in (*CORES, HOSTS) for op in OPS for size in SIZES]
        return rows + [paper_row(op, size) for op in OPS for size in (SIZES[0], SIZES[-1])]

    def jobs(self, context):
        calls = str(binary("dsm_calls"))
        for cores in CORES:
            for column, way in WAYS.items():
                yield Job(cores, column, lambda c=cores, w=way: self.measure(
                    context, c, [str(TOOL), "run", "--lapi", "-n", "2", calls, str(w)]))
            yield Job(cores, "copy", lambda c=cores: self.measure(context, c, [calls, "copy"]))
            for column, waits in UCX.items():
                if can_be_compiled("dsm_ucx"):
                    yield Job(cores, column, lambda c=cores, w=waits: self.measure(context, c, [str(binary("dsm_ucx")), w]))
            for subject in self.stock(context):
                yield Job(cores, subject.name, lambda c=cores, s=subject: self.measure(
                    context, c, s.command(2, "dsm_mpi", []), s.flavour.environment()))
        if two_hosts.why_unavailable() is None:
            yield from self.jobs_over_hosts(context, self.stock(context)[0])

    def jobs_over_hosts(self, context, starter):
        """The starter's mpiexec only starts the tasks."""
        environment = starter.flavour.environment() | two_hosts.ROOT_ENVIRONMENT
        command = [str(binary("dsm_calls")), str(WAYS[BY_LAPI])]  # the hosts share a kernel: tasks could map each other's memory
        yield Job(HOSTS, BY_LAPI, lambda: self.over_hosts(lambda hosts: self.measure(
            context, HOSTS, hosts.mpi_command(starter.flavour.mpiexec, 2, command, [str(TOOL), "run", "--lapi"]), environment)))
        for column, waits in UCX.items():
            if can_be_compiled("dsm_ucx"):
                yield Job(HOSTS, column, lambda w=waits: self.over_hosts(lambda hosts: self.measure_ucx(context, hosts, w)))

    def over_hosts(self, measure):
        try:
            with two_hosts.TwoHosts() as hosts:
                return measure(hosts)
        except two_hosts.Unavailable as reason:
            return [Sample(row_of(OPS[0], SIZES[0], HOSTS), None, "ns", LOWER, note=str(reason))]

    def measure_ucx(self, context, hosts, waits):
        program = str(binary("dsm_ucx"))
        target = subprocess.Popen([*hosts.enter(1), program, waits, "listen"], stdin=subprocess.DEVNULL)
        try:
            return self.measure(context, HOSTS, [*hosts.enter(0), program, waits, two_hosts.ADDRESSES[1]])
        finally:
            target.kill()
            target.wait()

    def measure(self, context, cores, command, environment=None):
        core, calls = CORES.get(cores), context.scaled(CALLS, 2)
        environment = dict(environment or os.environ, SHIMA_BENCH_CALLS=str(calls))
        outcome = context.measure(["taskset", "-c", core, *command] if core else command, environment)
        samples = [Sample(row_of(record["op"], record["bytes"], cores), record["ns"], "ns", LOWER,
                          outcome.problem or ("WRONG DATA" if record["wrong_bytes"] else ""), self.loss(record, BATCHES * calls))
                   for record in outcome.records]
        return samples or [Sample(row_of(OPS[0], SIZES[0], cores), None, "ns", LOWER,
                                  outcome.problem or "no result")]

    def loss(self, record, calls):
        sent = calls * record["bytes"]
        return f"{record['lost_bytes'] / sent:.0%} of the bytes were lost" if record["lost_bytes"] else ""

    def has_lost(self, results, row, column):
        return any(sample.note for sample in results.samples[row].get(column, []))

    def ratio(self, results, row, column, base="dsm"):
        mine, other = (results.median(row, name) if row in results.samples else None
                       for name in (base, column))
        return other / mine if mine and other else None

    def require_ratio(self, results, row, other, needed, what, own="dsm"):
        if ratio := self.ratio(results, row, other, own):
            results.verdicts.append(Verdict(row, own, what, ratio, needed, HIGHER))

    def targets(self, results, context):
        for op in OPS:
            small, large = row_of(op, SIZES[0]), row_of(op, SIZES[-1])
            stock = [s.name for s in self.stock(context) if s.name in results.samples.get(small, {})]
            if stock:
                best = min(stock, key=lambda name: results.median(small, name) or float("inf"))
                self.require_ratio(results, small, best, 1.0, "the speed of the better stock MPI")
            for size in SIZES:
                if size >= 65536:
                    self.require_ratio(results, row_of(op, size), "copy", 0.9, "the speed of memcpy")
            self.require_ratio(results, small, "tcp, spinning", 100, "the speed by TCP, spinning")
            self.require_ratio(results, large, "tcp", 5, "the speed by TCP")
            for size in SIZES:
                self.require_ratio(results, row_of(op, size), "ucx", 1 / UCX_FACTOR, "the speed of UCX alone")
                for column, waits in UCX.items():
                    self.require_ratio(results, row_of(op, size, HOSTS), column, 1 / UCX_FACTOR,
                                       f"the speed of UCX alone, whose target {waits}", BY_LAPI)
            for size, factor in zip((SIZES[0], SIZES[-1]), PAPER[op]):
                if ratio := self.ratio(results, row_of(op, size), "tcp"):
                    results.add("dsm", [Sample(paper_row(op, size), ratio, "x")])
                    results.add("paper", [Sample(paper_row(op, size), factor, "x")])
