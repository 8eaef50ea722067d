"""`muster tune` is killed again and again at random moments: the study ends as an undisturbed one."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from testbed.studies import checkpoint_bytes, read_events, read_trials, write_model

# Together 15 kills, or 201 with MUSTER_SOAK.
KILLS = 67 if os.environ.get("MUSTER_SOAK") else 5
END_SECONDS = 120
MARK = "MUSTER_KILLED_STUDY"

TRAINING = """
model: model.yaml
train: rows.csv
eval: rows.csv
space:
  model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.001, 1]}
  model.dnn.dropout: {uniform: [0, 0.5]}
  train.batch_size: {int: [16, 64], step: 16}
metric: {maximize: auc}
budget: {trials: 12}
"""
OBJECTIVE = """
import json, os, sys, time
with open("runs", "a") as runs: runs.write(os.environ["MUSTER_TRIAL"] + "\\n")
for epoch in (1, 2, 3):
    time.sleep(0.01)
    print(json.dumps({"epoch": epoch, "loss": float(sys.argv[1]) ** 2 + 1 / epoch}), flush=True)
"""
COMMAND = "space: {x: {uniform: [-1, 1]}}\nmetric: {minimize: loss}\nsampler: random\nbudget: {trials: 30}\n"


@dataclass(frozen=True)
class Case:
    name: str
    search: str
    flags: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


CASES = [
    Case("asha", TRAINING + "sampler: {tpe: {startup_trials: 4}}\nscheduler: {asha: {factor: 2}}\n"),
    Case("pbt", TRAINING + "scheduler: {pbt: {population: 4, interval: 150, truncation: 0.25}}\n", ("--processes",)),
    Case("command", COMMAND, ("--parallel", "3"), ("--", sys.executable, "-S", "objective.py", "{x}")),
]


def marked_processes(mark: str) -> list[str]:
    """The processes that have the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended, or is another user's
    return found


class Killed:
    """A study in one folder after the other, each until it has come to its end."""

    def __init__(self, binary: str, here: pathlib.Path, case: Case):
        self.binary, self.here, self.case = binary, here, case
        self.mark = f"{case.name}-{os.getpid()}-{random.randrange(2**32)}"
        self.studies = 0

    @property
    def study(self) -> pathlib.Path:
        return self.here / f"killed-{self.studies}"

    def start(self) -> subprocess.Popen[bytes]:
        words = [self.binary, "tune", "search.yaml", self.study.name, "--quiet", *self.case.flags, *self.case.command]
        return subprocess.Popen(words, cwd=self.here, env={**os.environ, MARK: self.mark},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip

    def run(self, seconds: float | None) -> bool:
        """Kills the study after some time; whether it had ended by itself. What had ended before is
        not begun again, and nothing is left running."""
        ended = {event["trial"] for event in read_events(self.study) if event["event"] == "end"}
        runs = self.here / "runs"
        before = len(runs.read_text().split()) if runs.exists() else 0
        process = self.start()
        if seconds is not None:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        _, error = process.communicate(timeout=END_SECONDS)
        assert process.returncode in (0, -9), error.decode()
        begun = set(map(int, runs.read_text().split()[before:])) if runs.exists() else set()
        assert not begun & ended, f"trials ran again that had ended: {begun & ended}"
        end = time.monotonic() + END_SECONDS
        while left := marked_processes(self.mark):
            assert time.monotonic() < end, left
            time.sleep(0.01)
        return process.returncode == 0

    def check(self, expected: list[dict], undisturbed: pathlib.Path) -> None:
        trials = read_trials(self.study)
        assert all(len(trial["ends"]) == 1 for trial in trials)
        assert trials == expected
        if self.case.command:
            return
        for number, trial in enumerate(trials):
            folder, step = f"trials/{number:04d}", trial["ends"][0]["step"]
            assert checkpoint_bytes(self.study / folder, step) == checkpoint_bytes(undisturbed / folder, step)
        weights = "best/variables/variables.data-00000-of-00001"
        assert (self.study / weights).read_bytes() == (undisturbed / weights).read_bytes()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_study_that_is_killed_ends_as_an_undisturbed_one(muster, tmp_path, case):
    seed = int(os.environ.get("MUSTER_SEED") or random.randrange(2**32))
    print(f"seed {seed} (MUSTER_SEED gives it back)")
    draw = random.Random(seed)
    write_model(tmp_path)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "search.yaml").write_text(case.search)
    killed = Killed(muster.binary, tmp_path, case)
    begun = time.monotonic()
    assert killed.run(None)
    whole = time.monotonic() - begun
    undisturbed = killed.study
    expected = read_trials(undisturbed)
    killed.studies += 1
    kills = 0
    while kills < KILLS:
        if killed.run(draw.uniform(0, whole / 2)):
            killed.check(expected, undisturbed)
            killed.studies += 1
        else:
            kills += 1
    assert killed.run(None)
    killed.check(expected, undisturbed)
    print(f"{kills} kills in {killed.studies} studies of {whole:.1f} s")
