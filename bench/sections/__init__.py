"""The sections of the benchmark, one class each (see lib/section.py)."""

import dataclasses
import filecmp

import two_hosts
from lib import runner
from sections.delegated_net import DelegatedNet
from sections.delegation import Delegation
from sections.irregular import Irregular
from sections.mounted import Mounted
from sections.one_space import OneSpace
from sections.overlap import Overlap
from sections.pff_list import PffList
from lib.results import LOWER, Sample
from lib.section import OPS, Job, Section, limit_job, problem_of, rate
from sections.spaces import Spaces
from sections.strided_read import StridedRead
from sections.striped import Disks, Subfiles
from lib.subjects import TOOL, binary

WAYS = ("UT", "FV", "COL")

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


# Sizes from which pieces of a file are pulled, and cached pieces read by the ranks that need them
# (src/collective/plan.cpp).
PULL_PIECE_BYTES, OWN_READ_PIECE_BYTES = 2048, 4096


class Columns(Section):
    name = "columns"
    title = "An array by columns, 16 KiB pieces"
    lead = "MiB/s from open to close; a read reads the file just written"

    def row(self, np, way, op):
        return f"np {np} {way} {op}"

    def row_names(self, context):
        return [self.row(np, way, op) for np in context.nps([2, 4, 8]) for way in WAYS
                for op in OPS]

    def jobs(self, context):
        size_mib = context.size_mib(1024)
        for np in context.nps([2, 4, 8]):
            rows = {op: [self.row(np, way, op) for way in WAYS] for op in OPS}
            yield limit_job(context, f"np {np} COL", size_mib, rows)
            for way in WAYS:
                for subject in context.subjects:
                    yield Job(f"np {np} {way}", subject.name, lambda n=np, w=way, s=subject:
                              self.measure(context, s, n, w, size_mib))

    def measure(self, context, subject, np, way, size_mib):
        path = context.directory / "columns.dat"
        samples = []
        for op in OPS:
            outcome = context.start(subject, np, "columns", [
                "--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
            expected = COLLECTIVE_PATHS["large", op] if way == "COL" else frozenset()
            sample = rate(self.row(np, way, op), outcome, subject, expected)
            if subject.shima and way == "FV" and op == "write" and not sample.problem:
                sample.problem = runner.not_combined(outcome.stats)
            samples.append(sample)
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        stock = results.stock()
        for np in context.nps([2, 4, 8]):
            rows = {op: [self.row(np, way, op) for way in WAYS] for op in OPS}
            write, read = self.row(np, "COL", "write"), self.row(np, "COL", "read")
            results.require(write, 0.9, "the limit", [write], ["limit"])
            results.require(write, 1.0, "the best stock write", rows["write"], stock)
            results.require(read, 1.0, "the best stock read", rows["read"], stock)
            for op in OPS:
                fv, ut = self.row(np, "FV", op), self.row(np, "UT", op)
                results.require(fv, 1.0, "the best stock FV", [fv], stock)
                results.require(ut, 0.95, "the best stock UT", [ut], stock)


class Steps(Section):
    name = "steps"
    title = "A new file every step: MPI-IO against the naive program"
    lead = ("seconds for 100 steps of 100 000 doubles a rank, as the user timed it; less is better. "
            "Both halves draw random numbers at each step; 'drawing' is that alone")
    limit = False
    figures = (("MPI-IO half", "mpi_s", "s"), ("naive half", "naive_s", "s"),
               ("drawing", "drawing_s", "s"), ("MPI-IO / naive", "ratio", "ratio"))

    def row_names(self, context):
        return [f"np {np} {label}" for np in context.nps([2, 8, 24])
                for label, _, _ in self.figures]

    def jobs(self, context):
        for np in context.nps([2, 8, 24]):
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda n=np, s=subject: self.measure(context, s, n))

    def measure(self, context, subject, np):
        """Runs each half as its own job, so that the first does not slow down the second."""
        mpi, problem = self.half(context, subject, np, "mpi")
        naive, other_problem = self.half(context, subject, np, "naive")
        problem = problem or other_problem or self.difference(context)
        for left in context.directory.glob("step*"):
            left.unlink()
        if not mpi or not naive:
            return [Sample(f"np {np} {label}", None, unit, LOWER, problem)
                    for label, _, unit in self.figures]
        record = mpi | {"naive_s": naive["naive_s"], "ratio": mpi["mpi_s"] / naive["naive_s"]}
        return [Sample(f"np {np} {label}", record.get(key), unit, LOWER, problem)
                for label, key, unit in self.figures]

    def half(self, context, subject, np, half):
        steps = 20 if context.quick else 100
        outcome = context.start(subject, np, "steps", [
            "--steps", steps, "--dir", context.directory, "--half", half, "--sync-first", "--json"])
        record = outcome.records[0] if outcome.records else None
        return record, problem_of(outcome, record, subject, frozenset())

    def difference(self, context):
        for path in sorted(context.directory.glob("step*.mpi")):
            if not filecmp.cmp(path, path.with_suffix(".naive"), shallow=False):
                return f"WRONG DATA in {path.name}"
        return ""

    def targets(self, results, context):
        for np in context.nps([2, 8, 24]):
            if np in (2, 8, 24):
                results.require_below(f"np {np} MPI-IO / naive", 0.8 if np == 2 else 0.5,
                                      "the naive half")
        row = "np 24 MPI-IO half"
        results.require(row, 0.1, "stock MPICH", [row], ["mpich"], only="shima/mpich")
        results.require(row, 0.5, "stock Open MPI", [row], ["openmpi"], only="shima/openmpi")


class SmallPieces(Section):
    name = "small_pieces"
    title = "An array by columns, pieces of 64 bytes, collective, 256 MiB"
    lead = ("'/limit' is the share of the time that moving the bytes alone would take: the time of the "
            "limit for them, divided by the measured time")
    piece_bytes = 64

    def row_names(self, context):
        return [f"np {np} {op}{what}" for np in context.nps([8]) for op in OPS
                for what in ("", ", a piece")]

    def jobs(self, context):
        size_mib = context.size_mib(256)
        for np in context.nps([8]):
            rows = {op: [f"np {np} {op}"] for op in OPS}
            yield limit_job(context, f"np {np}", size_mib, rows)
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name, lambda n=np, s=subject:
                          self.measure(context, s, n, size_mib))

    def measure(self, context, subject, np, size_mib):
        path = context.directory / "small.dat"
        samples = []
        for op in OPS:
            outcome = context.start(subject, np, "columns", [
                "--way", "COL", "--op", op, "--size-mib", size_mib, "--piece", self.piece_bytes,
                "--file", path, "--json"])
            sample = rate(f"np {np} {op}", outcome, subject, COLLECTIVE_PATHS["small", op])
            ns = 1e9 * self.piece_bytes / (sample.value * 2**20) if sample.value else None
            samples += [sample, Sample(f"np {np} {op}, a piece", ns, "ns", LOWER)]
        path.unlink(missing_ok=True)
        return samples

    def targets(self, results, context):
        for row in (f"np {np} {op}" for np in context.nps([8]) for op in OPS):
            results.require(row, 1.0, "the best stock", [row], results.stock())


class Subarray3d(Section):
    name = "subarray3d"
    title = "A cube of 512^3 doubles in blocks, collective"
    lead = "MiB/s from open to close"

    def row_names(self, context):
        return [f"np {np} {op}" for np in context.nps([8]) for op in OPS]

    def jobs(self, context):
        n = 256 if context.quick else 512
        for np in context.nps([8]):
            rows = {op: [f"np {np} {op}"] for op in OPS}
            yield limit_job(context, f"np {np}", n**3 * 8 >> 20, rows)
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda p=np, s=subject: self.measure(context, s, p, n))

    def measure(self, context, subject, np, n):
        path = context.directory / "cube.dat"
        samples = []
        for op in OPS:
            outcome = context.start(subject, np, "subarray3d", [op, path, n])
            samples.append(rate(f"np {np} {op}", outcome, subject,
                                COLLECTIVE_PATHS["large", op] | COLLECTIVE_PATHS["small", op]))
        path.unlink(missing_ok=True)
        return samples

    targets = SmallPieces.targets


class Random(Section):
    name = "random"
    title = "Ten random patterns, collective"
    lead = "MiB/s from open to close; the pattern follows from its seed"
    kinds = ("nested vectors", "indexed", "indexed blocks", "subarray", "struct")
    patterns = 10

    def row_names(self, context):
        return [row for np in context.nps([3, 8]) for _, _, row in self.rows(context, np)]

    def rows(self, context, np):
        for seed in range(context.random_seed, context.random_seed + self.patterns):
            for op in OPS:
                yield seed, op, f"np {np} seed {seed} {self.kinds[seed % len(self.kinds)]} {op}"

    def jobs(self, context):
        size_mib = context.size_mib(128)
        for np in context.nps([3, 8]):
            rows = {o: [row for _, op, row in self.rows(context, np) if op == o] for o in OPS}
            yield limit_job(context, f"np {np}", size_mib, rows)
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name, lambda n=np, s=subject:
                          self.measure(context, s, n, size_mib))

    def measure(self, context, subject, np, size_mib):
        path = context.directory / "random.dat"
        outcome = context.start(subject, np, "random_patterns",
                                [path, context.random_seed, self.patterns, size_mib])
        path.unlink(missing_ok=True)
        by_row = {(record["seed"], record["op"]): record for record in outcome.records}
        # A job that failed keeps the figures of the patterns that it finished.
        # One file is closed per record, in the same order.
        stats_of = dict(zip(by_row, outcome.stats))
        return [self.sample(row, by_row.get((seed, op)), outcome, subject, stats_of.get((seed, op)))
                for seed, op, row in self.rows(context, np)]

    def expected(self, op, stats):
        """The path for these sizes of pieces; Shima counts adjacent pieces as one."""
        counters = stats["counters"]
        moved = counters["bytes_written" if op == "write" else "bytes_read"]
        if op == "read" and moved >= OWN_READ_PIECE_BYTES * counters["file_pieces"]:
            return {"independent"}
        pieces = max(counters["file_pieces"], counters["memory_pieces"])
        return {"pull"} if moved >= PULL_PIECE_BYTES * pieces else {"pack"}

    def sample(self, row, record, outcome, subject, stats):
        if record is None:
            return Sample(row, None, problem=outcome.problem or "no result")
        done = dataclasses.replace(outcome, problem="", stats=[stats] if stats else [])
        holes = record.get("hole_bytes_written", 0)
        note = f"writes {holes} bytes into holes" if holes and not subject.shima else ""
        return Sample(row, record["open_close_mib_s"], note=note,
                      problem=problem_of(done, record, subject,
                                         self.expected(record["op"], stats) if stats else set()))

    def targets(self, results, context):
        for np in context.nps([3, 8]):
            for _, _, row in self.rows(context, np):
                results.require(row, 1.0, "the best stock", [row], results.stock())


class TwoHosts(Section):
    name = "two_hosts"
    title = "The array by columns over two hosts, half the ranks on each, collective"
    lead = ("hosts are namespaces of this machine, the wire a veth pair; the hosts share a page cache, "
            "so a hint makes Shima use messages (shima_reach) where it would read from that cache")
    limit = False

    def row_names(self, context):
        return [f"np {np} {op}{what}" for np in context.nps([8]) for op in OPS
                for what in ("", ", on the wire")]

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def jobs(self, context):
        for np in context.nps([8]):
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda n=np, s=subject: self.measure(context, s, n))

    def measure(self, context, subject, np):
        path = context.directory / "hosts.dat"
        samples = []
        for op in OPS:
            outcome, wire_mib = self.run_over_hosts(context, subject, np, [
                "--way", "COL", "--op", op, "--size-mib", context.size_mib(1024), "--file", path,
                "--json"])
            sample = rate(f"np {np} {op}", outcome, subject, COLLECTIVE_PATHS["hosts", op])
            if subject.shima and wire_mib is not None and wire_mib < context.size_mib(1024) / 4:
                sample.problem = f"only {wire_mib:.0f} MiB went over the wire"
            samples += [sample, Sample(f"np {np} {op}, on the wire", wire_mib, "MiB", LOWER)]
        path.unlink(missing_ok=True)
        return samples

    def run_over_hosts(self, context, subject, np, arguments):
        program = [str(binary("columns", subject.flavour)), *map(str, arguments)]
        if subject.shima:
            program = [str(TOOL), "exec", *program]
        environment = (subject.flavour.environment() | two_hosts.ROOT_ENVIRONMENT
                       | {"SHIMA_HINTS": "shima_reach=message"})
        try:
            with two_hosts.TwoHosts() as hosts:
                command = hosts.mpi_command(subject.flavour.mpiexec, np, program)
                outcome = context.measure(command, environment)
                return outcome, hosts.bytes_on_wire() / 2**20
        except two_hosts.Unavailable as reason:
            return runner.Outcome([], [], 0.0, str(reason)), None

    def targets(self, results, context):
            # Every host's disk agent owns half the file, and half of that half comes from each host:
            # half of the file must cross.
        moved_mib = context.size_mib(1024) / 2
        for np in context.nps([8]):
            for op in OPS:
                row = f"np {np} {op}"
                results.require(row, 1.0, "the best stock", [row], results.stock())
                wire = f"{row}, on the wire"
                results.add("to move", [Sample(wire, moved_mib, "MiB", LOWER)])
                results.require(wire, 1.05, "what had to move", [wire], ["to move"])


class ListIo(Section):
    name = "list_io"
    title = "One process moves separate pieces of a cached file: one call each, or io_uring"
    lead = "nanoseconds a piece, every eighth place of the file; what independent access should use"
    limit = False
    methods = ("one call each", "io_uring")

    def columns(self, context):
        return list(self.methods)

    def row_names(self, context):
        return [self.row(size, op) for size in (64, 4096, 16384) for op in OPS]

    def row(self, piece_bytes, op):
        return f"pieces of {piece_bytes} bytes, {op}"

    def jobs(self, context):
        for size in (64, 4096, 16384):
            yield Job(f"pieces of {size} bytes", self.methods[0],
                      lambda s=size: self.measure(context, s))

    def measure(self, context, piece_bytes):
        path = context.directory / "list.dat"
        pieces = context.size_mib(64) * 2**20 // max(piece_bytes, 1024)
        outcome = context.measure([str(binary("list_io")), str(path), str(piece_bytes), str(pieces)])
        path.unlink(missing_ok=True)
        return [Sample(self.row(piece_bytes, record["op"]), record["ns_per_piece"], "ns", LOWER,
                       outcome.problem, subject=record["method"]) for record in outcome.records]

    def targets(self, results, context):
        pass


class SmallCosts(Section):
    name = "small_costs"
    title = "Small operations, one at a time"
    lead = "nanoseconds a call on a cached file, the slower rank's; median of 15 rounds in each job"
    limit = False
    things = ("open+close", "set_view", "write_at of 8 B", "read_at of 8 B", "seek",
              "write_shared of 8 B", "iwrite_at of 8 B + wait", "write_at_all of 8 B")

    def row(self, np, thing):
        return f"np {np} {thing}"

    def row_names(self, context):
        return [self.row(np, thing) for np in context.nps([2]) for thing in self.things]

    def jobs(self, context):
        for np in context.nps([2]):
            for subject in context.subjects:
                yield Job(f"np {np}", subject.name,
                          lambda n=np, s=subject: self.measure(context, s, n))

    def measure(self, context, subject, np):
        # No statistics: they would count and time each access, which would be measured too.
        environment = subject.flavour.environment() | {"SHIMA_STATS": ""}
        command = subject.command(np, "small_costs", [context.directory / "small.dat"])
        outcome = context.measure(command, environment)
        ns = {record["thing"]: record["ns"] for record in outcome.records}
        return [Sample(self.row(np, thing), ns.get(thing), "ns", LOWER,
                       outcome.problem or ("" if thing in ns else "no result"))
                for thing in self.things]

    def targets(self, results, context):
        for row in self.row_names(context):
            results.require(row, 1.2, "the better stock", [row], results.stock())


SECTIONS = [Columns(), Steps(), SmallPieces(), Irregular(), Subarray3d(), Random(), TwoHosts(), ListIo(),
            SmallCosts(), Overlap(), Subfiles(), OneSpace(), Disks(), PffList(), StridedRead(), Mounted(),
            Delegation(), DelegatedNet(), Spaces()]
