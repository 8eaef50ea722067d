"""`muster tune`: searches of a model file and of a command, killed, continued and reproduced."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from testbed.studies import checkpoint_bytes, read_trials, write_model
from testbed.tensorboard import serve

SEARCH = """
model: model.yaml
train: rows.csv
eval: rows.csv
space:
  model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.001, 1]}
  model.dnn.hidden_units: {choice: [[8, 4], [16]]}
  train.batch_size: {int: [16, 64], step: 16}
metric: {maximize: auc}
sampler: {tpe: {startup_trials: 4}}
scheduler: {asha: {factor: 2}}
budget: {trials: 10}
"""


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    (tmp_path / "search.yaml").write_text(SEARCH)
    return tmp_path


def test_the_printed_command_reproduces_the_best_trial(muster, here):
    events = muster.json("tune", "search.yaml")
    trials, study = events[:-1], events[-1]
    assert len(trials) == 10 and study["event"] == "study"
    assert {trial["state"] for trial in trials} == {"complete", "stopped"}
    best = study["best"]
    assert best["auc"] == max(t["auc"] for t in trials if t["state"] == "complete")
    words = shlex.split(study["command"])
    assert words[0] == "muster"
    muster.run(*words[1:])
    trial = here / f"search-study/trials/{best['trial']:04d}"
    again = here / "best-model"
    assert checkpoint_bytes(trial, best["step"]) == checkpoint_bytes(again, best["step"])
    assert (here / "search-study/best/saved_model.pb").is_file()
    assert set(study["importance"]) == set(best["parameters"])


def test_threads_and_processes_do_the_same(muster, here):
    search = SEARCH.replace("{tpe: {startup_trials: 4}}", "random").replace("{asha: {factor: 2}}", "none")
    (here / "search.yaml").write_text(search)
    found = []
    for folder, flags in (("one", ()), ("threads", ("--parallel", 3)),
                          ("processes", ("--parallel", 2, "--processes"))):  # fmt: skip
        muster.run("tune", "search.yaml", folder, *flags)
        trials = read_trials(here / folder)
        found.append([(t["point"], np.float32(t["ends"][0]["value"]), t["ends"][0]["records"]) for t in trials])
        assert all(trial["ends"][0]["records"] > 0 for trial in trials)
        for number, trial in enumerate(trials):
            step = trial["ends"][0]["step"]
            trial_folder = f"trials/{number:04d}"
            own = checkpoint_bytes(here / folder / trial_folder, step)
            assert own == checkpoint_bytes(here / "one" / trial_folder, step)
    assert found[0] == found[1] == found[2]


OBJECTIVE = """
import json, os, sys, time
with open("runs", "a") as runs: runs.write(os.environ["MUSTER_TRIAL"] + "\\n")
time.sleep(0.01)
print(json.dumps({"loss": float(sys.argv[1]) ** 2}))
"""
COMMAND_SEARCH = """
space: {x: {uniform: [-1, 1]}}
metric: {minimize: loss}
sampler: random
budget: {trials: 20}
"""


def test_a_command_is_searched(muster, here):
    (here / "objective.py").write_text(OBJECTIVE)
    (here / "command.yaml").write_text(COMMAND_SEARCH)
    words = ["tune", "command.yaml", "--parallel", 4, "--json", "--",
             sys.executable, "objective.py", "{x}"]  # fmt: skip
    events = [json.loads(line) for line in muster.run(*words).splitlines()]
    assert sorted(map(int, (here / "runs").read_text().split())) == list(range(20))
    for event in events[:-1]:
        assert event["loss"] == pytest.approx(event["parameters"]["x"] ** 2)
    best = events[-1]["best"]
    assert events[-1]["command"] == f"{sys.executable} objective.py {best['parameters']['x']!r}"
    # Nothing is left to do.
    assert len(muster.run(*words).splitlines()) == 1
    assert len((here / "runs").read_text().split()) == 20


FAILING = """
import json, sys
x = int(sys.argv[1])
if x == 2: sys.exit("no room for 2")
print(json.dumps({"loss": float("nan") if x == 3 else x}))
"""
FAILING_SEARCH = """
space: {x: {int: [1, 3]}}
metric: {minimize: loss}
sampler: grid
"""


def test_the_table_has_failed_trials_and_no_step_that_is_not_known(muster, here):
    (here / "objective.py").write_text(FAILING)
    (here / "search.yaml").write_text(FAILING_SEARCH)
    words = ["tune", "search.yaml", "--quiet", "--", sys.executable, "objective.py", "{x}"]
    rows = [line.split(maxsplit=5) for line in muster.run(*words).splitlines()[1:4]]
    assert [row[:4] for row in rows] == [
        ["0", "1", "complete", "-"], ["2", "nan", "complete", "-"], ["1", "-", "failed", "-"]
    ]  # fmt: skip
    assert rows[2][5] == "x=2: exit code 1: no room for 2; its output is in search-study/logs/0001.log"
    words[1:2] = ["search.yaml", "again", "--json"]
    *trials, study = [json.loads(line) for line in muster.run(*words).splitlines()]
    assert [trial["step"] for trial in trials] == [None] * 3
    assert study["failed"] == 1
    assert trials[2]["loss"] is None
    assert trials[2]["why_null"] == "loss is nan, which is no number of JSON"


def test_failures_and_signals(muster, here):
    (here / "command.yaml").write_text(COMMAND_SEARCH)
    errors = muster.fail("tune", "command.yaml", "failing", "--quiet", "--",
                         "sh", "-c", "echo no {x} >&2; exit 3")  # fmt: skip
    assert errors.startswith("muster: the first 5 trials failed, trial 0 with: exit code 3: no ")
    assert len(read_trials(here / "failing")) == 5
    words = ["tune", "command.yaml", "slow", "--", "sleep", "10{x}"]
    process = subprocess.Popen([muster.binary, *words], stderr=subprocess.PIPE, text=True)
    journal = here / "slow/study.log"
    end = time.monotonic() + 30
    while not journal.exists() or journal.read_text().count("\n") < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "is run by another process" in muster.fail(*words)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "the same command continues" in errors
    assert read_trials(here / "slow")[0]["ends"] == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("train.batch_size", "train.batchsize", "unknown key 'batchsize'"),
        ("maximize: auc", "maximize: acu", "did you mean 'auc'"),
        ("budget: {trials: 10}", "", "has no budget"),
        ("space:", "spaces:", "unknown key 'spaces'"),
        ("model: model.yaml", "model: absent.yaml", "absent.yaml"),
        ("train: rows.csv", "train: row-*", "train: no file matches 'row-*'"),
        ("eval: rows.csv", "eval: none.csv", "none.csv"),
        ("sampler: {tpe: {startup_trials: 4}}", "sampler: grid",
         "search.yaml:6: space.model.dnn.optimizer.adagrad.learning_rate: a grid cannot try all"),
        ("budget:", 'flags: [--epoch, "2"]\nbudget:', "search.yaml: flags: muster train: unknown flag '--epoch' "
         "(did you mean '--epochs'?)"),
    ],
)  # fmt: skip
def test_wrong_searches_are_refused_in_one_line(muster, here, old, new, says):
    assert old in SEARCH
    (here / "search.yaml").write_text(SEARCH.replace(old, new))
    result = muster.call("tune", "search.yaml")
    assert result.returncode in (1, 2)
    assert says in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not os.path.exists("search-study")


def test_another_search_is_refused_and_a_larger_budget_continues(muster, here):
    muster.run("tune", "search.yaml", "--trials", 2)
    (here / "search.yaml").write_text(SEARCH.replace("maximize", "minimize"))
    assert "begun with another 'metric'" in muster.fail("tune", "search.yaml")
    (here / "search.yaml").write_text(SEARCH)
    events = muster.json("tune", "search.yaml", "--trials", 4)
    assert [event["trial"] for event in events[:-1]] == [2, 3]


def test_tensorboard_shows_the_study(muster, here):
    events = muster.json("tune", "search.yaml")
    trials = {f"trial-{e['trial']:04d}": e for e in events if e["event"] == "trial"}
    body = {
        "experimentName": "", "colParams": [], "startIndex": 0, "sliceSize": 50,
        "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
    }  # fmt: skip
    with serve(here / "search-study/hparams") as board:

        def groups():
            found = board.post("plugin/hparams/session_groups", body).get("sessionGroups", [])
            return found if len(found) == len(trials) else None

        shown = board.wait(groups)
        wanted = {"experimentName": "", "includeMetrics": True}
        experiment = board.post("plugin/hparams/experiment", wanted)
    infos = {info["name"]: info for info in experiment["hparamInfos"]}
    rate = "model.dnn.optimizer.adagrad.learning_rate"
    assert set(infos) == {rate, "model.dnn.hidden_units", "train.batch_size"}
    assert all(info["differs"] for info in infos.values())
    assert [info["name"]["tag"] for info in experiment["metricInfos"]] == ["auc"]
    for group in shown:
        (session,) = group["sessions"]
        trial = trials[session["name"]]
        assert session["status"] == "STATUS_SUCCESS"
        (value,) = session["metricValues"]
        assert value["value"] == pytest.approx(trial["auc"], rel=1e-6)
        assert group["hparams"][rate] == trial["parameters"][rate]


def test_a_study_and_a_training_share_no_folder(muster, here):
    muster.run("tune", "search.yaml", "study")
    trial = here / "study/trials/0000"
    assert "is a model folder: give the study a folder of its own" in muster.fail("tune", "search.yaml", trial)
    model = ["train", "model.yaml", "--train", "rows.csv"]
    assert "is the folder of a study" in muster.fail(*model, "--model-dir", here / "study")
