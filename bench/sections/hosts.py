"""The array by columns over two hosts (two_hosts.py): what the wire carries, and how fast."""

import two_hosts
from lib.results import LOWER, Sample
from lib.section import COLLECTIVE_PATHS, OPS, Job, Section, over_hosts, rate
from lib.throttled_disk import NotHere, ThrottledDisks, reason_why_not


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
            outcome, wire_mib = context.start_over_hosts(subject, np, "columns", [
                "--way", "COL", "--op", op, "--size-mib", context.size_mib(1024), "--file", path,
                "--json"])
            sample = rate(f"np {np} {op}", outcome, subject, COLLECTIVE_PATHS["hosts", op])
            if subject.shima and wire_mib is not None and wire_mib < context.size_mib(1024) / 4:
                sample.problem = f"only {wire_mib:.0f} MiB went over the wire"
            samples += [sample, Sample(f"np {np} {op}, on the wire", wire_mib, "MiB", LOWER)]
        path.unlink(missing_ok=True)
        return samples

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


class SlowWire(Section):
    """Whether the wire works while the disk does, if both need equally long."""

    name = "slow_wire"
    title = "The same over a wire that is as slow as the disk"
    lead = ("time with both slow, divided by the longer of the times with one of them slow; 1 is full overlap, "
            "2 none. O_DIRECT, which the stock MPIs cannot do")
    limit = False
    ranks, size_mib = 8, 256
    # A quarter of the file crosses the wire each way while the disk takes all of it.
    disk_mib_s, wire_mib_s = 100, 25
    fast_mib_s, fast_iops, slow_iops = 8000, 1_000_000, 400

    def skip_reason(self):
        return two_hosts.why_unavailable() or reason_why_not()

    def columns(self, context):
        return [subject.name for subject in context.subjects if subject.shima]

    def row_names(self, context):
        return [f"{op}{what}" for op in OPS for what in ("", ", slow disk", ", slow wire", ", both slow")]

    def jobs(self, context):
        for subject in context.subjects:
            if subject.shima:
                yield Job("slow wire", subject.name, lambda s=subject: self.measure(context, s))

    def measure(self, context, subject):
        disk = self.rates(context, subject, self.disk_mib_s, None)
        wire = self.rates(context, subject, None, self.wire_mib_s)
        both = self.rates(context, subject, self.disk_mib_s, self.wire_mib_s)
        samples = []
        for i, op in enumerate(OPS):
            three = (disk[i], wire[i], both[i])
            seconds = [self.size_mib / one.value if one.value else None for one in three]
            problem = next((one.problem for one in three if one.problem), "")
            ratio = seconds[2] / max(seconds[:2]) if all(seconds) else None
            samples += [Sample(op, ratio, "ratio", LOWER, problem)]
            samples += [Sample(f"{op}, {what}", each, "s", LOWER) for what, each in
                        zip(("slow disk", "slow wire", "both slow"), seconds)]
        return samples

    def rates(self, context, subject, disk_mib_s, wire_mib_s):
        """Writes the file and reads it."""
        try:
            with (ThrottledDisks(context.directory, 1, disk_mib_s or self.fast_mib_s,
                                 self.slow_iops if disk_mib_s else self.fast_iops) as disks,
                  two_hosts.TwoHosts() as hosts):
                if wire_mib_s:
                    hosts.limit_wire(wire_mib_s)
                return [self.rate(context, subject, disks, hosts, op) for op in OPS]
        except (NotHere, two_hosts.Unavailable) as reason:
            return [Sample(op, None, note=str(reason)) for op in OPS]

    def rate(self, context, subject, disks, hosts, op):
        command, environment = over_hosts(subject, "columns", [
            "--way", "COL", "--op", op, "--size-mib", self.size_mib,
            "--file", disks.directories[0] / "slow.dat", "--json"],
            {"SHIMA_HINTS": "shima_reach=message;direct_read=true;direct_write=true"})
        command = disks.inside(hosts.mpi_command(subject.flavour.mpiexec, self.ranks, command))
        return rate(op, context.measure(command, environment), subject, COLLECTIVE_PATHS["hosts", op])

    def targets(self, results, context):
        for op in OPS:
            results.add("full overlap", [Sample(op, 1.0, "ratio", LOWER)])
            results.require(op, 1.15, "full overlap", [op], ["full overlap"])
