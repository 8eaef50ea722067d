"""`muster tune --on kubernetes`: each trial is a job, whose pods are processes of this machine."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Any, Sequence

import pytest

from testbed.jobs import Jobs
from testbed.kubernetes.native_jobs import make_claim
from testbed.kubernetes.operators import Space, wait_for
from testbed.kubernetes.process_space import ProcessSpace
from testbed.studies import checkpoint_bytes, read_trials, write_model

DATA = "/muster-test/data"
MODELS = f"{DATA}/studies"
CLUSTER = ("--on", "kubernetes", "--image", "image", "--volume", f"data:{DATA}")
ON = (*CLUSTER, "--model-dir", MODELS)
SEARCH = f"""
model: model.yaml
train: {DATA}/rows.csv
eval: {DATA}/rows.csv
flags: FLAGS
space:
  model.dnn.optimizer.adagrad.learning_rate: {{loguniform: [0.001, 1]}}
  train.batch_size: {{int: [16, 64], step: 16}}
metric: {{maximize: auc}}
sampler: random
budget: {{trials: 4}}
"""


def write_search(user: Jobs, flags: Sequence[str] = ("--epochs", "3"), more: str = "") -> None:
    (user.folder / "search.yaml").write_text(SEARCH.replace("FLAGS", json.dumps(flags)) + more)


@pytest.fixture
def data(process_space: ProcessSpace, process_user: Jobs) -> pathlib.Path:
    """The claim's folder, with rows.csv."""
    data = make_claim(process_space, "data")
    write_model(process_user.folder)
    (data / "rows.csv").write_bytes((process_user.folder / "rows.csv").read_bytes())
    return data


def tune(user: Jobs, *flags: object) -> list[dict[str, Any]]:
    lines = user.ok("tune", "search.yaml", *ON, "--json", *flags).splitlines()
    return [json.loads(line) for line in lines]


def test_a_study_is_that_of_this_machine(
    process_space: ProcessSpace, process_user: Jobs, data: pathlib.Path
) -> None:
    write_search(process_user)
    process_space.start_operator()
    *_, study = tune(process_user, "--parallel", 2)
    folder = process_user.folder / "search-study"
    trials = read_trials(folder)
    assert [trial["ends"][0]["state"] for trial in trials] == ["complete"] * 4
    # No job is left, and the models are on the volume.
    assert process_space.api.items(process_space.jobs) == [] and process_user.ok("list") == ""
    best = pathlib.Path(study["model_dir"])
    assert best.parent == pathlib.Path(MODELS) and study["saved_model"] is None
    assert "--on kubernetes" in study["command"] and "--detach" not in study["command"]
    assert all((folder / "logs" / f"{n:04d}.log").read_text() for n in range(4))

    local = process_user.folder / "local.yaml"
    local.write_text((process_user.folder / "search.yaml").read_text().replace(f"{DATA}/", ""))
    process_user.ok("tune", "local.yaml")
    for here, there in zip(read_trials(process_user.folder / "local-study"), trials, strict=True):
        assert here["point"] == there["point"]
        assert here["ends"][0]["records"] == there["ends"][0]["records"] > 0
        assert here["ends"][0]["value"] == pytest.approx(there["ends"][0]["value"], abs=1e-6)
    number, step = study["best"]["trial"], study["best"]["step"]
    model = process_user.folder / "local-study" / "trials" / f"{number:04d}"
    assert checkpoint_bytes(data / "studies" / best.name, step) == checkpoint_bytes(model, step)


def test_a_killed_study_follows_the_jobs_that_it_had(
    process_space: ProcessSpace, process_user: Jobs, data: pathlib.Path
) -> None:
    write_search(process_user, ("--epochs", "600"), "scheduler: {asha: {factor: 2}}\n")
    folder = process_user.folder / "search-study"
    study = process_user.start("tune", "search.yaml", *ON, "--parallel", 2)
    # No operator runs yet: both jobs wait.
    wait_for(lambda: len(process_space.api.items(process_space.jobs)) == 2)
    wait_for(lambda: len(list((process_user.home / "jobs").glob("search-study-*"))) == 2)
    study.send_signal(signal.SIGINT)
    _, said = study.communicate(timeout=60)
    assert "the same command continues, and the jobs of its trials do meanwhile" in said
    before = {job["metadata"]["name"]: job["metadata"]["uid"]
              for job in process_space.api.items(process_space.jobs)}  # fmt: skip
    process_space.start_operator()
    study = process_user.start("tune", "search.yaml", *ON, "--parallel", 2)
    # The job of a trial that has just been told to stop is still there: nobody follows it again.
    wait_for(lambda: any("stop" in report for trial in read_trials(folder) for report in trial["reports"]))
    study.kill()
    study.communicate(timeout=60)
    tune(process_user, "--parallel", 2)
    trials = read_trials(folder)
    assert [len(trial["ends"]) for trial in trials] == [1] * 4
    states = {trial["ends"][0]["state"] for trial in trials}
    assert states == {"complete", "stopped"}, trials
    for trial in trials:
        resources = [report["resource"] for report in trial["reports"]]
        assert resources == sorted(set(resources))
    assert process_space.api.items(process_space.jobs) == [] and process_user.ok("list") == ""
    made = {path.name for path in (data / "studies").iterdir()}
    assert set(before) <= made and len(made) == 4


def test_two_workers_train_each_trial(
    process_space: ProcessSpace, process_user: Jobs, data: pathlib.Path
) -> None:
    write_search(process_user)
    process_space.start_operator()
    *_, study = tune(process_user, "--trials", 1, "--workers", 2)
    assert study["best"]["state"] == "complete"
    step = study["best"]["step"]
    words = ("--train", "rows.csv", "--epochs", 3, "--workers", 2)
    settings = [f"{name}={value}" for name, value in study["best"]["parameters"].items()]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    process_user.ok("train", "model.yaml", "alone", *words, *flags)
    there = data / "studies" / pathlib.Path(study["model_dir"]).name
    assert checkpoint_bytes(there, step) == checkpoint_bytes(process_user.folder / "alone", step)


def test_a_population_is_that_of_this_machine(
    process_space: ProcessSpace, process_user: Jobs, data: pathlib.Path
) -> None:
    write_search(process_user, (), "scheduler: {pbt: {population: 2, interval: 150, truncation: 0.5}}\n")
    process_space.start_operator()
    *_, study = tune(process_user, "--trials", 6)  # in parallel their order would count
    trials = read_trials(process_user.folder / "search-study")
    assert [trial["ends"][0]["state"] for trial in trials] == ["complete"] * 6
    assert any(trial["parent"] is not None for trial in trials)
    local = process_user.folder / "local.yaml"
    local.write_text((process_user.folder / "search.yaml").read_text().replace(f"{DATA}/", ""))
    process_user.ok("tune", "local.yaml", "--trials", 6)
    for here, there in zip(read_trials(process_user.folder / "local-study"), trials, strict=True):
        assert [here[name] for name in ("point", "member", "parent")] == \
            [there[name] for name in ("point", "member", "parent")]
        assert here["ends"][0]["value"] == pytest.approx(there["ends"][0]["value"], abs=1e-6)
    assert study["command"].count("--on kubernetes") == study["command"].count(" && ") + 1


def test_a_job_that_fails_is_a_failed_trial_and_stays(
    process_space: ProcessSpace, process_user: Jobs, data: pathlib.Path
) -> None:
    (data / "rows.csv").unlink()
    write_search(process_user)
    process_space.start_operator()
    result = process_user.call("tune", "search.yaml", *ON, "--trials", 6, "--parallel", 3)
    assert result.returncode == 1
    assert "rows.csv" in result.stderr.splitlines()[-1]
    failed = process_space.api.items(process_space.jobs)
    assert len(failed) >= 5
    logs = process_user.folder / "search-study" / "logs"
    assert "rows.csv" in (logs / "0000.log").read_text()


def test_what_a_cluster_cannot_have_is_said_before_the_first_trial(space: Space, user: Jobs) -> None:
    space.make_claim("data")
    write_model(user.folder)

    def refuse(*given: object, flags: Sequence[str] = (), more: str = "") -> str:
        write_search(user, flags, more)
        result = user.call("tune", "search.yaml", *given)
        assert result.returncode in (1, 2), (result.returncode, result.stderr)
        assert not (user.folder / "search-study").exists()
        return result.stderr.splitlines()[0]

    assert "--model-dir" in refuse(*CLUSTER)
    assert "lies on no volume" in refuse(*CLUSTER, "--model-dir", "/other")
    pbt = "scheduler: {pbt: {population: 2, interval: 100}}\n"
    assert "give --workers one number" in refuse(*ON, "--workers", "1:2", more=pbt)
    assert "there is no claim lost" in refuse(
        *CLUSTER, "--volume", "lost:/lost", "--model-dir", "/lost/m"
    )
    assert "--image" in refuse("--on", "kubernetes", "--model-dir", MODELS)
    assert "neither a number" in refuse(*ON, "--workers", "two")
    assert "--processes" in refuse(*ON, "--processes")
    assert "a command's trials run here" in refuse(*ON, "--", "echo", "{x}")
    assert "requires" in refuse("--workers", 2)
    assert "--evaluator takes the evaluations" in refuse(*ON, flags=["--evaluator"])
    assert space.api.items(space.jobs) == []
