"""LAPI's calls without data within a host, for 2 to 16 tasks: what they take, the memory of a task, and a job that waits."""

from lib.places import TOOL
from lib.programs import binary
from lib.results import LOWER, Sample, Verdict
from lib.section import Job, Section

TASKS = (2, 4, 8, 16)
IDLE_MS = 2000
MOST_SLEEPS = 5  # in a second: a timer that ticks would make more
THINGS = {"rmw": ("Rmw", "us"), "fence": ("Put of 8 B and Fence", "us"), "message": ("active message of 8 B and back", "us"),
          "gfence": ("Gfence", "us"), "memory": ("memory of a task (Pss)", "KiB"), "idle": ("a task that waits", "% of a core"), "sleeps": ("a task that waits: sleeps", "a second")}


def column_of(tasks):
    return f"{tasks} tasks"


class LapiCalls(Section):
    name = "lapi_calls"
    title = "LAPI's calls without data, between the tasks of a host"
    lead = ("us a call, while every task calls its neighbour, median of 1 001; the share of memory of a task after these calls; "
            "the processor time of a task that waits for 2 s")
    limit = False

    def columns(self, context):
        return [column_of(tasks) for tasks in TASKS]

    def row_names(self, context):
        return [row for row, _ in THINGS.values()]

    def jobs(self, context):
        for tasks in TASKS:
            yield Job("calls", column_of(tasks), lambda n=tasks: self.measure(context, n))

    def measure(self, context, tasks):
        command = [str(TOOL), "run", "--lapi", "-n", str(tasks), str(binary("lapi_calls")), str(IDLE_MS)]
        outcome = context.measure(command)
        return [Sample(row, record["value"], unit, LOWER, outcome.problem or ("WRONG DATA" if record["wrong"] else ""))
                for record in outcome.records for row, unit in [THINGS[record["thing"]]]] or \
            [Sample(THINGS["rmw"][0], None, "us", LOWER, outcome.problem or "no result")]

    def targets(self, results, context):
        row, _ = THINGS["sleeps"]
        for tasks in TASKS:
            sleeps = results.median(row, column_of(tasks)) if row in results.samples else None
            if sleeps is not None:
                results.verdicts.append(Verdict(row, column_of(tasks), f"{MOST_SLEEPS} a second", sleeps / MOST_SLEEPS, 1.0, LOWER))
