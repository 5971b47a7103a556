"""The array by columns over two hosts (two_hosts.py): what the wire carries, and how fast."""

import two_hosts
from lib.results import LOWER, Sample
from lib.section import COLLECTIVE_PATHS, OPS, Job, Section, rate


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
