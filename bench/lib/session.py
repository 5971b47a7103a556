"""Runs the jobs of sections, repeatedly and in random order, and keeps each result.

In each repetition the groups of a section run in a random order, and inside a group all jobs run in direct
succession, in random order too, so that a slow minute of the machine affects all equally. A job that takes long
is not repeated. Each result is a line of a file, from which a later run continues an interrupted one.
"""

import dataclasses
import json
import pathlib
import random
import time

from lib import runner
from lib.noise import NOISY, Others
from lib.results import Results, Sample


class Mismatch(Exception):
    """The file is of another run; the message says how they differ."""


class State:
    """Results by key. The first line is the run that they belong to; without a path nothing is kept."""

    def __init__(self, path, run, resume=False):
        self.path, self.run, self.results = path and pathlib.Path(path), run, {}
        if resume:
            self._load()
        if self.path and not self.results:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.run) + "\n")

    def _load(self):
        if not self.path.exists():
            raise Mismatch(f"{self.path}: there is no such file, so no run to continue; leave --resume out")
        lines = runner.json_lines(self.path.read_text())  # the last line may be incomplete
        first = lines[0] if lines else {}
        for name, value in self.run.items():
            if name != "seed" and first.get(name) != value:
                raise Mismatch(f"{self.path}: the run there has {name} {json.dumps(first.get(name))}, this one "
                               f"{json.dumps(value)}; give the same options")
        self.run = first
        self.results = {entry["job"]: entry for entry in lines[1:]}
        text = self.path.read_text()
        if not text.endswith("\n"):
            self.path.write_text(text[:text.rfind("\n") + 1])

    def put(self, key, entry):
        self.results[key] = entry
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps({"job": key, **entry}) + "\n")


@dataclasses.dataclass
class Numbered:
    key: str
    job: object
    label: str


class Session:
    def __init__(self, context, state, repetitions, slow_s):
        self.context, self.state, self.repetitions, self.slow_s = context, state, repetitions, slow_s
        self.done = self.total = 0
        self.started, self.measured_jobs = time.monotonic(), 0

    def jobs(self, section, repetition):
        """In the same order each time."""
        context = self.context if section.is_warmed else dataclasses.replace(self.context, warm_mib=0)
        numbered = [Numbered(f"{section.name} {repetition} {i}", job, f"{section.name} {repetition + 1}/"
                             f"{self.repetitions}  {job.group}  {job.subject}")
                    for i, job in enumerate(section.jobs(context)) if job.subject != "limit" or section.limit]
        groups = {}
        for each in numbered:
            groups.setdefault(each.job.group, []).append(each)
        dice = random.Random(f"{self.state.run['seed']} {section.name} {repetition}")
        names = list(groups)
        dice.shuffle(names)
        for name in names:
            dice.shuffle(groups[name])
        return [each for name in names for each in groups[name]]

    def announce(self, sections):
        """Counts the jobs, for the progress."""
        self.total = sum(len(self.jobs(section, 0)) for section in sections) * self.repetitions

    def measure(self, section):
        results, slow = Results(section.title, section.columns(self.context)), set()
        for repetition in range(self.repetitions):
            for each in self.jobs(section, repetition):
                self.done += 1
                place = (each.job.group, each.job.subject)
                if place in slow:
                    continue
                entry = self.state.results.get(each.key) or self.run(each)
                samples = [Sample(**fields) for fields in entry["samples"]]
                results.add(each.job.subject, samples)
                if entry["others"] > NOISY:
                    results.noisy.append((each.label, entry["others"]))
                if entry["seconds"] > self.slow_s:
                    slow.add(place)
        results.arrange(section.row_names(self.context))
        section.targets(results, self.context)
        return results

    def run(self, each):
        runner.say(f"  [{self.done}/{self.total}] {each.label}{self.remaining()}")
        others, started = Others(), time.monotonic()
        samples = each.job.run()
        entry = {"seconds": round(time.monotonic() - started, 3), "others": round(others.share(), 3),
                 "samples": [dataclasses.asdict(sample) for sample in samples]}
        self.measured_jobs += 1
        self.state.put(each.key, entry)
        return entry

    def remaining(self):
        if self.measured_jobs < 3:
            return ""
        each_s = (time.monotonic() - self.started) / self.measured_jobs
        minutes = (self.total - self.done + 1) * each_s / 60
        return f"  (about {minutes:.0f} min left)" if minutes >= 1 else ""
