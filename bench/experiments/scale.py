"""What planning a collective call costs as the ranks grow to a million, by `shima simulate`: no rank runs."""

import json
import subprocess

from lib.places import TOOL
from lib.results import LOWER, Sample
from lib.section import Job, Section

RANKS = (512, 4096, 32768, 262144, 1048576)
SUBJECT = "simulate"


def largest_of(members, *names):
    """The largest of a figure of the sampled ranks."""
    values = []
    for member in members:
        for name in names:
            member = member[name]
        values.append(member)
    return max(values, default=None)


# What is reported of a number of ranks: its label, its unit, and where the report has it.
FIGURES = {
    "planning of a rank": ("ns", lambda scale: scale["member_median_ns"]),
    "memory that a rank keeps": ("B", lambda scale: scale["topology_bytes"]),
    "messages of a node's leader": ("messages", lambda scale: largest_of(scale["leaders"], "messages")),
    "requests of a subgroup's master": ("requests", lambda scale: largest_of(scale["masters"], "requests")),
    "messages to an agent": ("messages", lambda scale: largest_of(scale["sampled_agents"], "messages")),
    "estimate of the call": ("s", lambda scale: scale["estimate"]["seconds"]),
}


class Scale(Section):
    name = "scale"
    title = "Planning a collective write of up to a million ranks (`shima simulate`)"
    lead = "1 MiB a rank in pieces of 4 KiB, by columns, 128 ranks a node; of sampled ranks the largest figure"
    limit = False

    def columns(self, context):
        return [SUBJECT]

    def ranks(self, context):
        return context.nps(RANKS)

    def row(self, ranks, figure):
        return f"{ranks} ranks: {figure}"

    def row_names(self, context):
        return [self.row(ranks, figure) for figure in FIGURES for ranks in self.ranks(context)] + ["limits missed"]

    def jobs(self, context):
        yield Job("scale", SUBJECT, lambda: self.measure(context))

    def measure(self, context):
        command = [str(TOOL), "simulate", "--ranks", ",".join(map(str, self.ranks(context))), "--json", "-"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=context.timeout_s)
            problem = "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"no end after {context.timeout_s:.0f} s"
        if problem:
            return [Sample("limits missed", None, "limits", LOWER, problem)]
        report = json.loads(done.stdout)
        samples = [Sample(self.row(scale["ranks"], figure), value, unit, LOWER)
                   for scale in report["scales"] for figure, (unit, find) in FIGURES.items()
                   if (value := find(scale)) is not None]
        missed = [limit["name"] for limit in report["limits"] if not limit["reached"]]
        return samples + [Sample("limits missed", float(len(missed)), "limits", LOWER, note=", ".join(missed))]

    def targets(self, results, context):
        """`shima simulate` judges its limits itself."""
