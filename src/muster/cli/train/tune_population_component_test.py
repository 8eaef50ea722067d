"""Population based training by `muster tune`: of a model file, of a command, reproduced and refused."""

from __future__ import annotations

import json
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

from testbed.studies import checkpoint_bytes, read_trials, write_model

POPULATION, TRIALS, INTERVAL = 4, 20, 150
SEARCH = f"""
model: model.yaml
train: rows.csv
eval: rows.csv
space:
  model.dnn.optimizer.adagrad.learning_rate: {{loguniform: [0.0003, 1]}}
  model.linear.optimizer.ftrl.l1: {{loguniform: [0.0001, 0.1]}}
  model.dnn.dropout: {{uniform: [0, 0.5]}}
  train.batch_size: {{int: [16, 64], step: 16}}
metric: {{maximize: auc}}
scheduler: {{pbt: {{population: {POPULATION}, interval: {INTERVAL}, truncation: 0.25}}}}
budget: {{trials: {TRIALS}}}
"""


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    (tmp_path / "search.yaml").write_text(SEARCH)
    return tmp_path


def test_a_trial_continues_from_its_parent_and_the_best_is_reproduced(muster, here):
    events = muster.json("tune", "search.yaml")
    trials, study = events[:-1], events[-1]
    assert [trial["trial"] for trial in trials] == list(range(TRIALS))
    changed = 0
    for trial in trials:
        assert trial["state"] == "complete"
        assert trial["member"] == trial["trial"] % POPULATION
        assert trial["generation"] == trial["trial"] // POPULATION
        own = trial["parameters"]
        steps = -(-INTERVAL // own["train.batch_size"])
        folder = here / f"search-study/trials/{trial['trial']:04d}"
        if trial["generation"] == 0:
            assert trial["parent"] is None and trial["step"] == steps
            continue
        parent = trials[trial["parent"]]
        assert parent["generation"] == trial["generation"] - 1
        assert trial["step"] == parent["step"] + steps
        # The trial's first checkpoint is its parent's last one.
        before = here / f"search-study/trials/{parent['trial']:04d}"
        assert checkpoint_bytes(folder, parent["step"]) == checkpoint_bytes(before, parent["step"])
        if parent["member"] == trial["member"]:
            assert parent["parameters"] == own
        else:
            changed += 1
    assert changed == TRIALS // POPULATION - 1  # the worst of each generation but the last
    best = study["best"]
    assert best["auc"] == max(trial["auc"] for trial in trials)
    for command in study["command"].split(" && "):
        words = shlex.split(command)
        assert words[:2] == ["muster", "train"]
        muster.run(*words[1:])
    trial = here / f"search-study/trials/{best['trial']:04d}"
    assert checkpoint_bytes(trial, best["step"]) == checkpoint_bytes(here / "best-model", best["step"])
    assert (here / "search-study/best/saved_model.pb").is_file()


def test_processes_do_the_same_and_the_table_names_parents(muster, here):
    muster.run("tune", "search.yaml", "threads")
    shown = muster.run("tune", "search.yaml", "processes", "--processes")
    wanted, found = read_trials(here / "threads"), read_trials(here / "processes")
    for ours, theirs in zip(wanted, found):
        assert (ours["point"], ours["parent"]) == (theirs["point"], theirs["parent"])
        assert ours["ends"][0]["step"] == theirs["ends"][0]["step"]
        assert ours["ends"][0]["records"] == theirs["ends"][0]["records"] > 0
    assert len(wanted) == len(found) == TRIALS
    assert " from trial " in shown and "--continue-from best-model-1" in shown


# A model whose distance from its best weights falls by its rate in an interval, but not below its
# rate. population_test.cc shows that a search beats every fixed rate.
TOY = """
import json, os, pathlib, sys
rate, parent = float(sys.argv[1]), os.environ["MUSTER_PARENT"]
distance = float(pathlib.Path("models", parent).read_text()) if parent else 10.0
distance = max(distance - rate, rate)
pathlib.Path("models", os.environ["MUSTER_TRIAL"]).write_text(str(distance))
print(json.dumps({"distance": distance}))
"""
TOY_SEARCH = """
space: {rate: {loguniform: [0.001, 1]}}
metric: {minimize: distance}
scheduler: {pbt: {population: 4}}
budget: {trials: 12}
"""


def test_a_command_continues_from_its_parent_and_is_reproduced(muster, here):
    (here / "toy.py").write_text(TOY)
    (here / "toy.yaml").write_text(TOY_SEARCH)
    (here / "models").mkdir()
    output = muster.run("tune", "toy.yaml", "--json", "--quiet", "--", sys.executable, "-S", "toy.py", "{rate}")
    *trials, study = map(json.loads, output.splitlines())
    for trial in trials:
        rate = trial["parameters"]["rate"]
        before = 10.0 if trial["parent"] is None else trials[trial["parent"]]["distance"]
        assert trial["distance"] == max(before - rate, rate)
    shutil.rmtree(here / "models")
    (here / "models").mkdir()
    again = subprocess.run(["sh", "-c", study["command"]], capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(again.stdout.splitlines()[-1])["distance"] == study["best"]["distance"]
    assert len(again.stdout.splitlines()) == study["best"]["generation"] + 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("model.dnn.dropout: {uniform: [0, 0.5]}", "model.dnn.hidden_units: {choice: [[8], [16]]}",
         "space.model.dnn.hidden_units: pbt continues a trial with the weights of another one"),
        ("model.dnn.dropout: {uniform: [0, 0.5]}", "train.seed: {int: [1, 9]}", "space.train.seed"),
        ("model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.0003, 1]}",
         "model.dnn.optimizer: {choice: [{sgd: {learning_rate: 0.1}}, {adagrad: {learning_rate: 0.1}}]}",
         "space.model.dnn.optimizer: "),
        ("model.dnn.optimizer.adagrad.learning_rate: {loguniform: [0.0003, 1]}",
         "model.dnn.optimizer.sgd.momentum: {choice: [0, 0.9]}",
         "its optimizer has other slots with some of these values"),
        ("interval: 150, ", "", "needs the records that a trial reads"),
        ("budget:", "sampler: tpe\nbudget:", "must be random, or absent"),
        ("budget:", 'flags: [--epochs, "3"]\nbudget:', "remove --epochs"),
    ],
)  # fmt: skip
def test_what_may_not_change_is_refused_by_name(muster, here, old, new, says):
    assert old in SEARCH
    if "sgd.momentum" in new:
        model = here / "model.yaml"
        model.write_text(model.read_text().replace("adagrad: {learning_rate: 0.05}", "sgd: {learning_rate: 0.05}"))
    (here / "search.yaml").write_text(SEARCH.replace(old, new))
    result = muster.call("tune", "search.yaml")
    assert result.returncode in (1, 2)
    assert says in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (here / "search-study").exists()


def test_a_training_continues_from_another_folder(muster, here):
    data = ["--train", "rows.csv", "--epochs", "3", "--quiet"]
    muster.run("train", "model.yaml", "whole", *data)
    muster.run("train", "model.yaml", "first", *data, "--max-steps", "50")
    muster.run("train", "model.yaml", "second", *data, "--continue-from", "first")
    assert checkpoint_bytes(here / "second", 114) == checkpoint_bytes(here / "whole", 114)
    # The folder's own checkpoint counts once there is one.
    result = muster.run("train", "model.yaml", "second", *data, "--continue-from", "nowhere")
    assert "Nothing left to do" in result
    rate = "model.dnn.optimizer.adagrad.learning_rate=0.01"
    muster.run("train", "model.yaml", "slower", *data, "--continue-from", "first/model.ckpt-50", "--set", rate)
    assert checkpoint_bytes(here / "slower", 114) != checkpoint_bytes(here / "whole", 114)
    units = "model.dnn.hidden_units=[4]"
    errors = muster.fail("train", "model.yaml", "other", *data, "--continue-from", "first", "--set", units)
    assert errors.startswith("muster: continuing from first: ") and "kernel" in errors
    errors = muster.fail("train", "model.yaml", "other", *data, "--continue-from", "nowhere")
    assert "continuing from nowhere" in errors


def test_the_journal_is_json_a_program_can_read(muster, here):
    muster.run("tune", "search.yaml", "--trials", 5)
    trials = read_trials(here / "search-study")
    assert [(trial["member"], trial["parent"]) for trial in trials[:4]] == [(i, None) for i in range(4)]
    assert trials[4]["member"] == 0 and json.dumps(trials[4]["parent"]) in "0123"
