"""Collective calls on files striped over two I/O nodes, one on each of two hosts (two_hosts.py).

The stock MPIs use a plain file that both hosts see.
"""

import shutil
import subprocess
import time

import two_hosts
from experiments.irregular import CALLS
from lib.io_nodes import IoNodes
from lib.programs import binary
from lib.results import LOWER, Sample
from lib.section import OPS, Job, Section, over_hosts, problem_of, rate

RANKS, RAW_PORT = 8, 7100
# Half of each host's part of a row, so that half of its bytes belong to the node of the other host.
HINTS = "shima_targets=a,b;striping_factor=2;striping_unit=32768"


def start(context, subject, program, words):
    """The outcome of a job with half the ranks on each host, and the MiB on the wire. Shima's nodes keep their files."""
    with two_hosts.TwoHosts() as hosts, IoNodes(files_of(context)) as nodes:
        for host, name in enumerate("ab"):
            target = files_of(context) / name
            target.mkdir(exist_ok=True)
            nodes.add(two_hosts.ADDRESSES[host], {name: target}, hosts.enter(host))
        command, job_environment = over_hosts(subject, program, words, nodes.environment() | {"SHIMA_HINTS": HINTS})
        hosts.bytes_on_wire()
        outcome = context.inside(files_of(context)).measure(hosts.mpi_command(subject.flavour.mpiexec, RANKS, command), job_environment)
        return outcome, hosts.bytes_on_wire() / 2**20


def files_of(context):
    directory = context.directory / "iod"
    directory.mkdir(exist_ok=True)
    return directory


def wire_of(op):
    return f"{op}, on the wire"


def move_raw(context, op, size_mib):
    """A process on each host moves half the bytes, by plain TCP, into or out of two files, one on each host."""
    program = str(binary("tcp_copy"))
    files = [context.directory / f"raw.{host}" for host in range(2)]
    places = [f"{two_hosts.ADDRESSES[host]}:{RAW_PORT}" for host in range(2)]
    if op == "write":
        for file in files:
            file.unlink(missing_ok=True)
    with two_hosts.TwoHosts() as hosts, context.warmed():
        servers = [subprocess.Popen([*hosts.enter(host), program, "serve", *places[host].split(":"), str(files[host]), "2",
                                     str(size_mib // 2)], stdout=subprocess.PIPE, text=True) for host in range(2)]
        for server in servers:
            server.stdout.readline()
        clients = [subprocess.Popen([*hosts.enter(host), program, "move", op, str(host), "2", str(size_mib), *places],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for host in range(2)]
        for client in clients:
            client.stdout.readline()
        hosts.bytes_on_wire()
        began = time.perf_counter()
        for client in clients:
            client.stdin.write("\n")
            client.stdin.flush()
        failed = any([process.wait(120) for process in (*clients, *servers)])
        seconds = time.perf_counter() - began
        wire_mib = hosts.bytes_on_wire() / 2**20
    return [Sample(op, None if failed else size_mib / seconds, problem="failed" if failed else ""),
            Sample(wire_of(op), wire_mib, "MiB", LOWER)]


class IodColumns(Section):
    name = "iod_columns"
    title = "The array by columns over two I/O nodes, one on each of two hosts, pieces of 16 KiB, collective"
    lead = "raw TCP: a process a host moves as many bytes into or out of two files, one on each host (bench/machine/tcp_copy.cpp)"
    limit = False
    usual_mib, piece_bytes = 2048, 16384

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def row_names(self, context):
        return [row for op in OPS for row in (op, wire_of(op))]

    def columns(self, context):
        return ["raw TCP", *super().columns(context)]

    def jobs(self, context):
        size_mib = context.size_mib(self.usual_mib)
        yield Job("iod", "raw TCP", lambda: [sample for op in OPS for sample in move_raw(context, op, size_mib)])
        yield from self.subject_jobs(context)

    def subject_jobs(self, context):
        for subject in context.subjects:
            yield Job("iod", subject.name, lambda s=subject: self.measure(context, s, context.size_mib(self.usual_mib)))

    def measure(self, context, subject, size_mib):
        samples = []
        for op in OPS:
            outcome, wire_mib = start(context, subject, "columns", [
                "--way", "COL", "--op", op, "--size-mib", size_mib, "--piece", self.piece_bytes, "--file",
                files_of(context) / "columns.dat", "--json"])
            samples += [rate(op, outcome, subject), Sample(wire_of(op), wire_mib, "MiB", LOWER)]
        shutil.rmtree(files_of(context))
        return samples

    def targets(self, results, context):
        # Half of each host's bytes belong to the other's node.
        moved_mib = context.size_mib(self.usual_mib) / 2
        for op in OPS:
            results.require(op, 0.8, "raw TCP", [op], ["raw TCP"])
            results.require(op, 1.5, "the better stock", [op], results.stock())
            results.add("to move", [Sample(wire_of(op), moved_mib, "MiB", LOWER)])
            results.require(wire_of(op), 1.05, "what had to move", [wire_of(op)], ["to move"])


class IodSmallPieces(IodColumns):
    name = "iod_pieces"
    title = "The same with pieces of 64 bytes"
    lead = ""
    usual_mib, piece_bytes = 512, 64

    def columns(self, context):
        return super().columns(context)[1:]

    def jobs(self, context):
        yield from self.subject_jobs(context)

    def targets(self, results, context):
        for op in OPS:
            results.require(op, 2.0, "the better stock", [op], results.stock())


class IodIrregular(Section):
    name = "iod_irregular"
    title = "Irregular: 2 million pieces of 1 to 12 doubles, dealt at random over 8 ranks, over the same nodes"
    lead = "the stock MPIs run on one host, on a local file; wall time of the collective call divided by the pieces, in ns"
    limit = False

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def row_names(self, context):
        return list(CALLS)

    def jobs(self, context):
        for subject in context.subjects:
            yield Job("iod", subject.name, lambda s=subject: self.measure(context, s))

    def measure(self, context, subject):
        pieces = 250_000 if context.quick else 2_000_000
        words = [files_of(context) / "irregular.dat", "list", pieces]
        if subject.shima:
            outcome, _ = start(context, subject, "irregular", words)
        else:
            outcome = context.start(subject, RANKS, "irregular", words)
        record = outcome.records[0] if outcome.records else None
        problem = problem_of(outcome, record, subject, frozenset())
        shutil.rmtree(files_of(context))
        return [Sample(call, record[call] if record else None, "ns", LOWER, problem) for call in CALLS]

    def targets(self, results, context):
        for call in CALLS:
            results.require(call, 1.0, "the better stock on a local file", [call], results.stock())
