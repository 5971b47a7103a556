"""Collective calls over two hosts: what subgroups gain, and what the smallest call costs."""

import two_hosts
from lib.results import LOWER, Sample
from lib.section import COLLECTIVE_PATHS, OPS, Job, Section, rate

MESSAGES = "shima_reach=message"  # the hosts share a page cache
OFF = ", subgroups off"
WIRE = ", on the wire"


class HostPieces(Section):
    name = "host_pieces"
    title = "The array by columns in pieces of 64 B and 1 MiB over two hosts, collective"
    lead = ("half of the ranks on each host; a node's ranks exchange data as one subgroup (shima_subgroup=auto), or each "
            "for itself (off)")
    limit = False
    # Name: ranks, bytes of a piece, MiB of the file, the least speed relative to `off`.
    cells = {"np 32, 64 B": (32, 64, 64, 2.0), "np 8, 1 MiB": (8, 2**20, 1024, 0.97)}

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def row_names(self, context):
        return [f"{cell} {op}{what}" for cell in self.cells for op in OPS for what in ("", OFF, WIRE)]

    def jobs(self, context):
        for cell in self.cells:
            for subject in context.subjects:
                yield Job(cell, subject.name, lambda c=cell, s=subject: self.measure(context, s, c))

    def measure(self, context, subject, cell):
        samples = []
        for op in OPS:
            samples += self.measure_op(context, subject, cell, op, "")
            if subject.shima:
                samples += self.measure_op(context, subject, cell, op, OFF)[:1]
        (context.directory / "pieces.dat").unlink(missing_ok=True)
        return samples

    def measure_op(self, context, subject, cell, op, what):
        np, piece_bytes, size_mib, _ = self.cells[cell]
        hints = f"{MESSAGES};shima_subgroup=off" if what == OFF else MESSAGES
        outcome, wire_mib = context.start_over_hosts(subject, np, "columns", [
            "--way", "COL", "--op", op, "--size-mib", context.size_mib(size_mib), "--piece", piece_bytes,
            "--file", context.directory / "pieces.dat", "--json"], {"SHIMA_HINTS": hints})
        return [rate(f"{cell} {op}{what}", outcome, subject, COLLECTIVE_PATHS["hosts", op]),
                Sample(f"{cell} {op}{WIRE}", wire_mib, "MiB", LOWER)]

    def targets(self, results, context):
        for cell, (_, _, size_mib, gain) in self.cells.items():
            for op in OPS:
                row, wire = f"{cell} {op}", f"{cell} {op}{WIRE}"
                results.require(row, 1.0, "the best stock", [row], results.stock())
                for name in results.shima():
                    results.require(row, gain, "subgroups off", [row + OFF], [name], only=name)
                # Each host's agent owns half of the file, and half of that half comes from the other host.
                results.add("to move", [Sample(wire, context.size_mib(size_mib) / 2, "MiB", LOWER)])
                results.require(wire, 1.05, "what had to move", [wire], ["to move"])


class SmallestCall(Section):
    name = "smallest_call"
    title = "The smallest collective call: 8 B a rank"
    lead = "nanoseconds a call on a cached file, the slowest rank's; median of 15 rounds in each job"
    limit = False
    is_warmed = False
    call = "write_at_all of 8 B"
    on_one_host, over_hosts, by_messages = "8 ranks, one host", "32 ranks, two hosts", "32 ranks, two hosts, messages"
    # Ranks, hints over hosts. Without any, each rank writes its own bytes before it meets the others, as where the
    # nodes' caches are coherent; the messages are those of nodes with separate caches.
    rows = {on_one_host: (8, None), over_hosts: (32, ""), by_messages: (32, MESSAGES)}

    def row_names(self, context):
        return list(self.rows)

    def skip_reason(self):
        return two_hosts.why_unavailable()

    def jobs(self, context):
        for row in self.rows:
            for subject in context.subjects:
                if subject.shima or row != self.by_messages:  # a stock has no such hint
                    yield Job(row, subject.name, lambda r=row, s=subject: self.measure(context, s, r))

    def measure(self, context, subject, row):
        np, hints = self.rows[row]
        arguments = [context.directory / "small.dat", "--calls", 300 if hints is None else 10, self.call]
        if hints is not None:
            outcome, _ = context.start_over_hosts(subject, np, "small_costs", arguments,
                                                  {"SHIMA_STATS": "", "SHIMA_HINTS": hints})
        else:
            outcome = context.measure(subject.command(np, "small_costs", arguments),
                                      subject.flavour.environment() | {"SHIMA_STATS": ""})
        ns = outcome.records[0]["ns"] if outcome.records else None
        return [Sample(row, ns, "ns", LOWER, outcome.problem or ("" if ns else "no result"))]

    def targets(self, results, context):
        for row in self.rows:
            of_stock = self.over_hosts if row == self.by_messages else row
            results.require(row, 1.0, "the better stock", [of_stock], results.stock())
        for name in results.shima():
            for row in (self.over_hosts, self.by_messages):
                results.require(row, 4.0, "the call of 8 ranks", [self.on_one_host], [name], only=name)
