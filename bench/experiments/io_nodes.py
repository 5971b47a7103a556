"""S1's array over I/O nodes (`shima iod`) that own throttled disks (lib/throttled_disk.py), used with O_DIRECT.

IoNodes is the experiment of the paper: 8 I/O nodes with a disk each, blocks of 64 KiB, 2, 4 and 8 processes.
The daemons run on this machine, and the disks are slower than its processors and its network, so that the disks
decide as they did there. DaemonDisks has two hosts (two_hosts.py) with a daemon and two disks each.
"""

import contextlib

import two_hosts
from lib.io_nodes import IoNodes, NoNode
from lib.results import Sample
from lib.section import OPS, Job, Section, over_hosts, rate
from lib.throttled_disk import NotHere, ThrottledDisks, reason_why_not

WAYS = ("UT", "FV", "COL")
DISK_MIB_S, DISK_IOPS = 25, 100
IMAGE_MIB = 256
DIRECT = "direct_read=true;direct_write=true"
# A request of a disk may be one piece of 16 KiB: the whole array would take minutes.
MIB_A_DISK = {"UT": 8, "FV": 8, "COL": 64}
# Hints, and which ways they concern. The paper's system did not combine independent requests.
MODES = {"not combined": ("shima_combine=disable", WAYS), "default": ("", ("FV", "COL"))}


class IoNodesSection(Section):
    """Shima's part of a benchmark with disks."""

    is_warmed = False  # nothing goes through the page cache

    def columns(self, context):
        return ["limit", *(subject.name for subject in context.subjects if subject.shima)]

    def disks_limit(self, group, count, rows):
        return Job(group, "limit", lambda: [Sample(row, float(count * DISK_MIB_S)) for row in rows])


class NodeDisks(IoNodesSection):
    name = "io_nodes"
    title = f"An array by columns over I/O nodes with a disk of {DISK_MIB_S} MiB/s and {DISK_IOPS} requests/s each"
    lead = ("MiB/s from open to close, blocks of 64 KiB, O_DIRECT at the node; 'not combined': with the hint "
            "shima_combine=disable; 'limit' is the sum of the disks")

    def skip_reason(self):
        return reason_why_not()

    def row(self, np, way, op, mode="not combined"):
        return f"np {np} {way} {op}, {mode}"

    def cells(self, context):
        return [(np, mode, way) for np in context.nps([2, 4, 8]) for mode, (_, ways) in MODES.items() for way in ways]

    def row_names(self, context):
        return [self.row(np, way, op, mode) for np, mode, way in self.cells(context) for op in OPS]

    def jobs(self, context):
        for np in context.nps([2, 4, 8]):
            yield self.disks_limit(f"np {np}", context.node_count, [
                self.row(n, way, op, mode) for n, mode, way in self.cells(context) if n == np for op in OPS])
        for np, mode, way in self.cells(context):
            for subject in context.subjects:
                if subject.shima:
                    yield Job(f"np {np}", subject.name, lambda n=np, m=mode, w=way, s=subject:
                              self.measure(context, s, n, m, w))

    def measure(self, context, subject, np, mode, way):
        path = context.directory / "nodes.dat"
        try:
            with (ThrottledDisks(context.directory, context.node_count, DISK_MIB_S, DISK_IOPS, IMAGE_MIB) as disks,
                  IoNodes(context.directory) as nodes):
                for i, directory in enumerate(disks.directories):
                    nodes.add("127.0.0.1", {f"d{i}": directory}, disks.inside([]))
                return [self.run(context, subject, nodes, np, (mode, way, op), path) for op in OPS]
        except (NotHere, NoNode) as reason:
            return [Sample(self.row(np, way, op, mode), None, problem=str(reason)) for op in OPS]
        finally:
            path.unlink(missing_ok=True)

    def run(self, context, subject, nodes, np, what, path):
        mode, way, op = what
        hints = f"striping_factor={context.node_count};striping_unit=64K;{DIRECT};{MODES[mode][0]}"
        size_mib = context.disk_mib(MIB_A_DISK[way]) * context.node_count
        command = subject.command(np, "columns", ["--way", way, "--op", op, "--size-mib", size_mib, "--file", path, "--json"])
        environment = subject.flavour.environment() | nodes.environment() | {"SHIMA_HINTS": hints.rstrip(";")}
        return rate(self.row(np, way, op, mode), context.measure(command, environment), subject)

    def targets(self, results, context):
        for np in context.nps([8]):
            ut, fv = self.row(np, "UT", "write"), self.row(np, "FV", "write", "default")
            for name in results.shima():
                results.require(fv, 5.2, "UT", [ut], [name], only=name)
            results.require(self.row(np, "COL", "write", "default"), 0.93, "the sum of the disks",
                            [self.row(np, "COL", "write", "default")], ["limit"])


class DaemonDisks(IoNodesSection):
    name = "daemon_disks"
    title = f"The array by columns over two hosts, each with an I/O node and two disks of {DISK_MIB_S} MiB/s"
    lead = ("MiB/s from open to close, collective, 8 ranks, half on each host, O_DIRECT at the nodes; slow cable: what "
            "crosses it takes as long as the disks; 'limit' is the sum of the disks")
    ranks, disks = 8, 4
    # A quarter of the file crosses the cable each way while the disks take all of it.
    cables = {"": (None, 0.93), ", slow cable": (DISK_MIB_S, 0.9)}

    def skip_reason(self):
        return two_hosts.why_unavailable() or reason_why_not()

    def row_names(self, context):
        return [f"{op}{cable}" for cable in self.cables for op in OPS]

    def jobs(self, context):
        yield self.disks_limit("nodes", self.disks, self.row_names(context))
        for cable in self.cables:
            for subject in context.subjects:
                if subject.shima:
                    yield Job("nodes", subject.name, lambda c=cable, s=subject: self.measure(context, s, c))

    def measure(self, context, subject, cable):
        path = context.directory / "nodes.dat"
        try:
            with contextlib.ExitStack() as stack:
                disks = stack.enter_context(ThrottledDisks(context.directory, self.disks, DISK_MIB_S, DISK_IOPS, IMAGE_MIB))
                hosts = stack.enter_context(two_hosts.TwoHosts())
                nodes = stack.enter_context(IoNodes(context.directory))
                for host in range(2):
                    served = {f"d{i}": disks.directories[i] for i in (2 * host, 2 * host + 1)}
                    nodes.add(two_hosts.ADDRESSES[host], served, disks.inside(hosts.enter(host)))
                if self.cables[cable][0]:
                    hosts.limit_wire(self.cables[cable][0])
                return [self.run(context, subject, (hosts, nodes), f"{op}{cable}", op, path) for op in OPS]
        except (NotHere, NoNode, two_hosts.Unavailable) as reason:
            return [Sample(f"{op}{cable}", None, problem=str(reason)) for op in OPS]
        finally:
            path.unlink(missing_ok=True)

    def run(self, context, subject, where, row, op, path):
        hosts, nodes = where
        command, environment = over_hosts(subject, "columns", [
            "--way", "COL", "--op", op, "--size-mib", context.disk_mib(64) * self.disks, "--file", path, "--json"],
            nodes.environment() | {"SHIMA_HINTS": f"striping_factor={self.disks};striping_unit=1M;{DIRECT}"})
        return rate(row, context.measure(hosts.mpi_command(subject.flavour.mpiexec, self.ranks, command), environment), subject)

    def targets(self, results, context):
        for cable, (_, needed) in self.cables.items():
            for op in OPS:
                results.require(f"{op}{cable}", needed, "the sum of the disks", [f"{op}{cable}"], ["limit"])
