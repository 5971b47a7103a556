"""The speed of cp through `shima mount`, compared with cp on the underlying file system and cp through a file
system in user space that only passes calls on (bench/mount_job.py)."""

import os
import shutil
import subprocess
import sys

from lib.results import Sample
from lib.section import Job, Section
from lib import places
from lib.places import ROOT


class Mounted(Section):
    name = "mount"
    title = "cp of 1 GiB into a mounted directory and out of it, over a file of that size"
    lead = "MiB/s; the copy in the directory is striped over 4 subfiles, or plain without Shima"
    limit = False
    ways = {"cp": "cp", "pass-through": "pass-through", "shima/mount": "shima"}

    def skip_reason(self):
        if not (places.PREFIX / "lib/shima/shima-fuse").exists():
            return "built without libfuse3"
        if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("pkg-config"):
            return "no /dev/fuse, or no pkg-config"
        private = ["unshare", "--mount", "true"]
        return "no right to mount" if subprocess.run(private, capture_output=True).returncode else None

    def columns(self, context):
        return list(self.ways)

    def row_names(self, context):
        return ["in", "out"]

    def jobs(self, context):
        for column, way in self.ways.items():
            yield Job("cp", column, lambda w=way: self.measure(context, w))

    def measure(self, context, way):
        outcome = context.measure([sys.executable, str(ROOT / "bench/mount_job.py"), way,
                                   str(context.directory), str(context.size_mib(1024))])
        found = {record["op"]: record for record in outcome.records}
        return [Sample(row, found.get(row, {}).get("mib_s"), problem=self.problem(outcome, found.get(row)))
                for row in self.row_names(context)]

    def problem(self, outcome, record):
        if outcome.problem or record is None:
            return outcome.problem or "no result"
        return "WRONG DATA" if record["different_files"] else ""

    def targets(self, results, context):
        for row in self.row_names(context):
            results.require(row, 0.5, "cp", [row], ["cp"])
            results.require(row, 0.9, "the pass-through", [row], ["pass-through"])
