"""`muster.tune`: searches of Python functions, killed and continued, beside Optuna's words."""

from __future__ import annotations

import math
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from muster import MusterError, tune


def bowl(trial) -> float:
    x = trial.suggest_float("x", -10, 10)
    kind = trial.suggest_categorical("kind", ["flat", ("steep", 2)])
    depth = trial.suggest_int("depth", 1, 5)
    return (x - 2) ** 2 * (2 if kind == ("steep", 2) else 1) + abs(depth - 3)


def test_what_the_first_trial_asks_for_is_the_space() -> None:
    with tune.create_study() as study:
        study.optimize(bowl, n_trials=60)
        assert [trial.number for trial in study.trials] == list(range(60))
        assert {trial.state for trial in study.trials} == {"complete"}
        assert study.best_value < 3
        assert study.best_value == min(trial.value for trial in study.trials)
        assert abs(study.best_params["x"] - 2) < 2
        kinds = {trial.params["kind"] for trial in study.trials}
        assert kinds == {"flat", ("steep", 2)}, "choices are the caller's own objects"
        importance = tune.get_param_importances(study)
        assert max(importance, key=importance.get) == "x"
        folder = study.study_dir
        assert folder.is_dir()
    assert not folder.exists()


def test_the_same_seed_gives_the_same_study() -> None:
    points = []
    for seed in (5, 5, 6):
        with tune.create_study(seed=seed) as study:
            study.optimize(bowl, n_trials=15)
            points.append([trial.params for trial in study.trials])
    assert points[0] == points[1]
    assert points[0] != points[2]


def test_a_population_continues_from_its_best_members() -> None:
    # The distance falls by the rate, but not below it: see population_test.cc.
    distances: dict[int, float] = {}

    def interval(trial) -> float:
        rate = trial.suggest_float("rate", 0.001, 1, log=True)
        before = 10.0 if trial.parent is None else distances[trial.parent]
        distances[trial.number] = max(before - rate, rate)
        return distances[trial.number]

    space = {"rate": tune.FloatDistribution(0.001, 1, log=True)}
    with tune.create_study(space=space, pruner="pbt") as study:
        study.optimize(interval, n_trials=400)
        assert study.best_value < 10 / 41 / 2
        assert [trial.parent for trial in study.trials[:10]] == [None] * 10
        assert all(0 <= trial.parent < trial.number for trial in study.trials[10:])
    with pytest.raises(MusterError, match="must be random"):
        tune.create_study(space=space, pruner={"pbt": {"population": 4}}, sampler="grid")


def test_trials_are_asked_for_and_told() -> None:
    space = {"lr": tune.FloatDistribution(0.001, 1, log=True), "size": tune.IntDistribution(16, 64, step=16)}
    with tune.create_study(direction="maximize", space=space, sampler="random") as study:
        first, second = study.ask(), study.ask()
        assert (first.number, second.number) == (0, 1)
        assert 0.001 <= first.suggest_float("lr", 0.001, 1, log=True) <= 1
        assert first.suggest_int("size", 16, 64, step=16) in (16, 32, 48, 64)
        study.tell(second, 0.5)
        study.tell(first.number, 0.7)
        assert study.best_trial.number == 0
        with pytest.raises(ValueError, match="trial 0 has ended already"):
            study.tell(first, 0.9)
        third = study.ask()
        study.tell(third, math.nan)
        assert study.trials[2].value is None
        assert study.best_trial.number == 0


def test_a_trial_may_not_ask_for_something_else() -> None:
    space = {
        "kind": {"choice": ["a", "b"]},
        "depth": {"int": [1, 4], "when": {"kind": "b"}},
    }
    with tune.create_study(space=space, sampler="grid") as study:
        trial = study.ask()
        with pytest.raises(ValueError, match="dept is not in the study's space, which has kind, depth"):
            trial.suggest_int("dept", 1, 4)
        with pytest.raises(ValueError, match=r'asks for \{"int": \[1, 5\]\}, and the study\'s space has'):
            trial.suggest_int("depth", 1, 5)
        assert trial.suggest_categorical("kind", ["a", "b"]) == "a"
        with pytest.raises(ValueError, match="depth: it exists only where kind is b"):
            trial.suggest_int("depth", 1, 4)
        study.tell(trial, 1)
        seen = []
        study.optimize(lambda trial: seen.append(trial.params) or 0.0)
        assert seen == [{"kind": "b", "depth": depth} for depth in (1, 2, 3, 4)], "the grid ends"


def test_bad_trials_are_pruned() -> None:
    pruned = []

    def objective(trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for epoch in range(1, 10):
            trial.report(x + 1 / epoch, step=epoch)
            if trial.should_prune():
                pruned.append(trial.number)
                raise tune.TrialPruned()
        return x + 1 / 9

    with tune.create_study(pruner="asha", sampler="random") as study:
        study.optimize(objective, n_trials=20)
        states = [trial.state for trial in study.trials]
        assert states.count("stopped") == len(pruned) > 5
        assert study.best_trial.state == "complete"
        assert list(study.best_trial.intermediate_values) == list(range(1, 10))


def test_trials_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=60)

    def objective(trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number > 0:
            together.wait()
        return x

    with tune.create_study() as study:
        study.optimize(objective, n_trials=7, n_jobs=3)
        assert sorted(trial.number for trial in study.trials) == list(range(7))
        assert {trial.state for trial in study.trials} == {"complete"}


def test_an_exception_fails_its_trial() -> None:
    def objective(trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 2:
            raise RuntimeError("no memory")
        return x

    with tune.create_study() as study:
        with pytest.raises(RuntimeError, match="no memory"):
            study.optimize(objective, n_trials=5)
        assert study.trials[2].state == "failed"
        assert study.trials[2].error == "RuntimeError: no memory"
        study.optimize(objective, n_trials=3, catch=(RuntimeError,))
        assert len(study.trials) == 6


def test_a_killed_program_continues_its_study(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "study"
    program = tmp_path / "search.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import os, sys
            from muster import tune

            def objective(trial):
                x = trial.suggest_float("x", -10, 10)
                print(trial.number, x, flush=True)
                if trial.number == int(sys.argv[1]):
                    os.kill(os.getpid(), 9)
                return (x - 2) ** 2

            study = tune.create_study(study_dir={str(folder)!r})
            study.optimize(objective, n_trials=12 - len(study.trials))
            """
        )
    )

    def run(dies_at: int) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, str(program), str(dies_at)],
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            env=dict(os.environ, PYTHONPATH="python"),
        )
        return done.returncode, done.stdout.splitlines()

    code, before = run(7)
    assert code == -signal.SIGKILL
    assert len(before) == 8
    code, after = run(-1)
    assert code == 0
    assert after[0] == before[7], "the trial that ran is run again, at its point"
    with tune.create_study(study_dir=str(folder)) as study:
        assert [trial.number for trial in study.trials][:8] == list(range(8))
        assert {trial.state for trial in study.trials} == {"complete"}
    with pytest.raises(MusterError, match="begun with another 'metric'"):
        tune.create_study(study_dir=str(folder), direction="maximize")


def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="neither 'minimize' nor 'maximize'"):
        tune.create_study(direction="max")
    with pytest.raises(ValueError, match="x: 3 is no distribution"):
        tune.create_study(space={"x": 3})
    with pytest.raises(MusterError, match="lr"):
        tune.create_study(space={"lr": tune.FloatDistribution(0, 1, log=True)})
    with pytest.raises(MusterError, match="unknown 'tpee' .did you mean 'tpe'"):
        tune.create_study(space={"x": tune.FloatDistribution(0, 1)}, sampler="tpee")
    with tune.create_study() as study:
        with pytest.raises(ValueError, match="give n_trials or timeout"):
            study.optimize(bowl)
        with pytest.raises(ValueError, match="no trial has a value"):
            study.best_params
        study.ask()
        with pytest.raises(RuntimeError, match="the first trial"):
            study.ask()


def test_a_wrong_search_is_told_at_once() -> None:
    for words, says in (
        ({"sampler": "tpee"}, "unknown 'tpee' .did you mean 'tpe'"),
        ({"pruner": {"asha": {"factors": 2}}}, "unknown key 'factors'"),
        ({"seed": "x"}, "seed"),
    ):
        with pytest.raises(MusterError, match=says):
            tune.create_study(**words)
    with pytest.raises(TypeError, match="sampler: <object .*sampler= is a word, or a map with settings"):
        tune.create_study(sampler=object())


def test_words_of_optuna_that_are_absent_name_the_way_of_muster() -> None:
    for word in ("storage", "study_name", "load_if_exists"):
        with pytest.raises(TypeError, match=rf"has no '{word}': .*create_study\(study_dir=FOLDER\)"):
            tune.create_study(**{word: "x"})
    with pytest.raises(TypeError, match="has no 'directions': a study has one objective"):
        tune.create_study(directions=["minimize", "maximize"])
    with pytest.raises(TypeError, match="has no 'sede'$"):
        tune.create_study(sede=1)
    with pytest.raises(AttributeError, match="has no 'load_study': tune.create_study"):
        tune.load_study
    with tune.create_study(direction="maximize") as study:
        assert study.direction == "maximize"
        with pytest.raises(TypeError, match="has no 'callbacks': write the loop yourself"):
            study.optimize(bowl, n_trials=1, callbacks=[])
        with pytest.raises(AttributeError, match="has no 'trials_dataframe': pandas.DataFrame"):
            study.trials_dataframe()
        with pytest.raises(ValueError, match="a float cannot have steps: give its values as choices"):
            study.optimize(lambda trial: trial.suggest_float("x", 0, 1, step=0.1), n_trials=1)
        with pytest.raises(AttributeError, match="has no 'suggest_uniform': trial.suggest_float"):
            study.optimize(lambda trial: trial.suggest_uniform("x", 0, 1), n_trials=1)


@pytest.mark.parametrize("space", [None, {"x": tune.FloatDistribution(0, 1)}])
def test_enqueued_trials_are_the_next_ones(space) -> None:
    with tune.create_study(space=space) as study:
        study.enqueue_trial({"x": 0.25})
        study.enqueue_trial({"x": 0.75})
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        assert [trial.params["x"] for trial in study.trials[:2]] == [0.25, 0.75]
        assert len(study.get_trials()) == len(study.get_trials(states=("complete",))) == 3
        assert study.get_trials(states=["failed"]) == []
        study.enqueue_trial({"x": 2})
        with pytest.raises(ValueError, match="'x': 2 is not in the space"):
            study.ask()


def branch(trial) -> float:
    if trial.suggest_categorical("kind", ["flat", "deep"]) == "deep":
        return float(trial.suggest_int("depth", 1, 4))
    return 5.0


def test_a_parameter_of_a_branch_is_given_with_its_condition() -> None:
    space = {
        "kind": tune.CategoricalDistribution(("flat", "deep")),
        "depth": {"int": [1, 4], "when": {"kind": "deep"}},
    }
    with tune.create_study(space=space, sampler="random") as study:
        study.optimize(branch, n_trials=20)
        assert {("depth" in trial.params) for trial in study.trials} == {True, False}
        assert all(("depth" in t.params) == (t.params["kind"] == "deep") for t in study.trials)
        assert study.best_params["kind"] == "deep"


@pytest.mark.parametrize("first", ["flat", "deep"])
def test_without_a_space_a_parameter_of_a_branch_belongs_to_the_first_trial(first: str) -> None:
    with tune.create_study(sampler="random") as study:
        study.enqueue_trial({"kind": first})
        if first == "deep":  # it then has a value in all trials, also where nobody asks for it
            study.optimize(branch, n_trials=20)
            assert all("depth" in trial.params for trial in study.trials)
            return
        with pytest.raises(ValueError, match="depth is not in the study's space, which has kind; .*space=") as caught:
            study.optimize(branch, n_trials=20)
        assert "when" in str(caught.value)
        assert study.trials[-1].state == "failed"
