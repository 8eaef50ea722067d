"""Programs of muster.estimator as jobs: TF_CONFIG says who trains, serves, evaluates and predicts."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

from testbed.jobs import Jobs

PROGRAM = pathlib.Path("testbed/programs/muster_estimator.py").resolve()
ROWS, BATCH = 160, 4


class Programs:
    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        jobs.environment["PYTHONPATH"] = str(pathlib.Path("python").resolve())
        jobs.environment["MUSTER_BINARY"] = jobs.binary
        self.model = jobs.folder / "model"

    def run(self, verb: str, flags: list[object], *options: str) -> dict[str, dict[str, Any]]:
        """What each task wrote, by its name."""
        out = self.jobs.folder / f"out-{verb}"
        program = [sys.executable, PROGRAM, self.model, out, verb, *options]
        self.jobs.ok("run", "--name", f"job-{verb}", *flags, "--", *program)
        return {path.stem: json.loads(path.read_text()) for path in sorted(out.iterdir())}

    def step(self) -> int:
        state = (self.model / "checkpoint").read_text()
        found = re.search(r'model_checkpoint_path: "model.ckpt-(\d+)"', state)
        assert found is not None, state
        return int(found.group(1))


@pytest.fixture
def programs(jobs: Jobs) -> Programs:
    return Programs(jobs)


def test_chief_worker_and_evaluator(programs: Programs) -> None:
    flags = ["--chief", "--workers", 1, "--evaluator"]
    said = programs.run("train", flags, "max_steps=30")
    assert {name: task["about"] for name, task in said.items()} == {
        "chief-0": ["chief", 0, 2, 0],
        "worker-0": ["worker", 0, 2, 0],
        "evaluator-0": ["evaluator", 0, 0, 0],
    }
    assert programs.step() == 30
    for name in ("chief-0", "worker-0"):
        assert said[name]["metrics"] == {} and said[name]["exports"] == [None]
    evaluated = said["evaluator-0"]
    assert evaluated["metrics"]["global_step"] == 30
    assert (pathlib.Path(evaluated["exports"][0]) / "saved_model.pb").is_file()

    # What was trained predicts: each row once, by chief and worker.
    said = programs.run("predict", ["--chief", "--workers", 1, "--evaluator"])
    assert said["evaluator-0"]["rows"] == []
    first, second = said["chief-0"]["rows"], said["worker-0"]["rows"]
    assert len(first) == len(second) == ROWS // 2
    in_turn = []
    for start in range(0, ROWS // 2, BATCH):
        in_turn += first[start : start + BATCH] + second[start : start + BATCH]
    assert sorted(in_turn) == in_turn, "batches in turn, of rows whose predictions ascend"
    dealt = programs.run("predict", flags, "input=dealt")
    assert (dealt["chief-0"]["rows"], dealt["worker-0"]["rows"]) == (first, second)


def test_a_worker_that_dies_and_data_that_ends(programs: Programs) -> None:
    flags = ["--chief", "--workers", 1, "--evaluator", "--restart-scope", "task"]
    options = ("epochs=4", "input=dealt", "die=worker-0", "starts=3")
    said = programs.run("train", flags, *options)
    status = programs.jobs.status("job-train")
    restarts = {task["task"]: task["restarts"] for task in status["tasks"]}
    assert restarts["worker-0"] == 1 and restarts["chief-0"] == 0, restarts
    # Its replacement has the rows from the start again: the chief's 80 batches are the fewest steps.
    assert said["evaluator-0"]["metrics"]["global_step"] == programs.step() >= 80


def test_parameter_servers_and_no_evaluator(programs: Programs) -> None:
    said = programs.run("train", ["--chief", "--workers", 1, "--ps", 1], "max_steps=40")
    assert said["ps-0"]["about"] == ["ps", 0, 2, 1]
    assert all(task["metrics"] == {} for task in said.values())
    assert programs.step() >= 40


def test_a_cluster_of_one_chief_trains_and_one_process_evaluates(programs: Programs) -> None:
    jobs = programs.jobs
    alone = {"cluster": {"chief": ["localhost:1"]}, "task": {"type": "chief", "index": 0}}
    for tf_config, evaluates in ((json.dumps(alone), False), ("", True)):
        jobs.environment["TF_CONFIG"] = tf_config
        model, out = jobs.folder / f"m{evaluates}", jobs.folder / f"o{evaluates}"
        program = [sys.executable, PROGRAM, model, out, "train", "max_steps=20"]
        command = list(map(str, program))
        done = subprocess.run(command, env=jobs.environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        said = json.loads((out / "alone.json").read_text())
        assert bool(said["metrics"]) is evaluates
