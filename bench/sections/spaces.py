"""Benefits and costs of a space: reading another task's memory, and starting many tasks."""

from lib import places
from lib.places import TOOL
from lib.programs import binary
from lib.results import HIGHER, LOWER, Sample, Verdict
from lib.section import Job, Section

COPIES = {(data, size): f"copying {size >> 10} KiB, {data}"
          for size in (16 << 10, 1 << 20) for data in ("kept", "new")}
WANTED = {16 << 10: 8, 1 << 20: 3}
COUNTS = (1, 16, 64, 300)
FIGURES = {"call_us": ("starting one", "us"), "ready_us": ("until it runs", "us"),
           "tables_kb": ("page tables of each", "KiB"), "share_kb": ("memory of each (Pss)", "KiB"),
           "resident_kb": ("resident set of each", "KiB")}


class Spaces(Section):
    name = "spaces"
    title = "Tasks of one space compared with processes"
    lead = ("copying another task's memory: nanoseconds, median of single copies, reader and owner on two "
            "cores, 'new': written again before each; many programs: median of all starts, and the memory "
            "of each on average when all run")
    limit = False
    is_warmed = False

    def skip_reason(self):
        return places.why_no_spaces()

    def columns(self, context):
        return ["one space", "processes"]

    def row_names(self, context):
        return list(COPIES.values()) + [self.row(count, figure) for count in COUNTS
                                        for figure in FIGURES]

    def row(self, count, figure):
        return f"{count} programs: {FIGURES[figure][0]}"

    def jobs(self, context):
        copy, many = str(binary("task_copy")), str(binary("many_tasks"))
        yield Job("copy", "one space", lambda: self.copies(
            context, [str(TOOL), "pvas", "run", "-n", "2", copy], "one space"))
        yield Job("copy", "processes", lambda: self.copies(context, [copy], "processes"))
        for count in COUNTS:
            for column, way in (("one space", "tasks"), ("processes", "processes")):
                yield Job(f"many {count}", column, lambda w=way, n=count:
                          self.many(context, [many, w, str(n)], n))

    def copies(self, context, command, column):
        outcome = context.measure(command)
        if not outcome.records:
            return [Sample(COPIES["kept", 16 << 10], None, "ns", LOWER,
                           outcome.problem or "no result", subject=column)]
        return [Sample(COPIES[record["data"], record["bytes"]], record["ns"], "ns", LOWER,
                       outcome.problem or ("WRONG DATA" if record["wrong_bytes"] else ""))
                for record in outcome.records]

    def many(self, context, command, count):
        outcome = context.measure(command)
        record = outcome.records[0] if outcome.records else {}
        return [Sample(self.row(count, figure), record.get(figure), unit, LOWER,
                       outcome.problem or ("" if record else "no result"))
                for figure, (_, unit) in FIGURES.items()]

    def targets(self, results, context):
        for (data, size), row in COPIES.items():
            if data != "kept" or row not in results.samples:
                continue
            mine, theirs = (results.median(row, column) for column in self.columns(context))
            if mine and theirs:
                results.verdicts.append(Verdict(row, "one space", "the speed of process_vm_readv",
                                                theirs / mine, WANTED[size], HIGHER))
