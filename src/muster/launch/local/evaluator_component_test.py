"""muster train --evaluator: a task that evaluates what the others train, and deaths of it."""

from __future__ import annotations

import pathlib
import re
import signal

import pytest
import tensorflow as tf

from testbed.drills import Drill, break_training
from testbed.jobs import Jobs
from testbed.trainings import Trainings, write_rows

FLAGS = (
    "--evaluator", "--eval", "eval.csv", "--eval-start-delay-secs", 0, "--eval-throttle-secs", 0,
    "--exporter", "best", "--exporter", "final", "--keep-checkpoints", 2,
)  # fmt: skip


@pytest.fixture
def trainings(jobs: Jobs) -> Trainings:
    write_rows(jobs.folder / "eval.csv", 100_000)
    return Trainings(jobs)


def evaluations(folder: pathlib.Path) -> dict[int, float]:
    """Step -> loss, as TensorBoard reads them."""
    losses = {}
    for path in sorted((folder / "eval").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag == "loss":
                    losses[event.step] = value.simple_value
    return losses


def check_folder(trainings: Trainings, name: str, evaluated: int = 1) -> None:
    """All that a training with an evaluator leaves, and nothing else."""
    folder = trainings.jobs.folder / name
    newest = trainings.newest(name)
    last = int(tf.train.load_checkpoint(newest).get_tensor("global_step"))
    losses = evaluations(folder)
    assert max(losses) == last and len(losses) >= evaluated, losses
    # One more that was the best, and one that the evaluator read when the last one was saved.
    assert len(list(folder.glob("model.ckpt-*.index"))) in (2, 3, 4)
    assert not list(folder.glob("*.lease-*")) and not list(folder.glob("**/.*.tmp-*"))
    for exporter in ("best", "final"):
        exports = sorted((folder / "export" / exporter).iterdir())
        assert exports, exporter
        assert "serving_default" in tf.saved_model.load(str(exports[-1])).signatures
    assert len(list((folder / "export/final").iterdir())) == 1


def leases(folder: pathlib.Path) -> list[pathlib.Path]:
    """Of the evaluator, while it reads a checkpoint."""
    return list(folder.glob("model.ckpt-*.lease-evaluator-0"))


def kill_in_evaluation(trainings: Trainings, flags: tuple[object, ...], victim: str) -> None:
    """A training into `broken` that ends well although `victim` is killed in an evaluation."""

    def harm(drill: Drill) -> None:
        drill.wait(lambda: leases(trainings.jobs.folder / "broken"), "for a lease")
        drill.send(victim, signal.SIGKILL)

    code, said = break_training(trainings, flags, harm, f"{victim} failed: killed by SIGKILL")
    assert code == 0, said


@pytest.mark.parametrize("workers", [(), ("--workers", 2)])
def test_the_evaluator_evaluates_the_last_checkpoint(
    trainings: Trainings, workers: tuple[object, ...]
) -> None:
    flags = ("--epochs", 100, "--save-steps", 500)
    output = trainings.ok("model", *FLAGS, *workers, *flags)
    check_folder(trainings, "model")
    assert re.search(r"chief-0.*Trained at step", output)
    assert re.search(r"evaluator-0.*Evaluated 100,?000 examples", output)
    assert not re.search(r"chief-0.*Evaluated", output)
    # Who evaluates changes nothing of what is trained.
    trainings.ok("alone", *workers, *flags)
    assert trainings.weights("model") == trainings.weights("alone")


@pytest.mark.parametrize("victim", ["evaluator-0", "chief-0"])
def test_one_that_is_killed_in_an_evaluation_goes_on(trainings: Trainings, victim: str) -> None:
    flags = ("--workers", 2, "--max-steps", 60_000, "--save-steps", 1000)
    kill_in_evaluation(trainings, (*FLAGS, *flags), victim)
    check_folder(trainings, "broken", evaluated=2)


@pytest.mark.parametrize("end", [("--max-steps", 2000), ("--epochs", 40)])
def test_a_chief_that_is_killed_while_the_last_one_is_evaluated(
    trainings: Trainings, end: tuple[object, ...]
) -> None:
    # Long enough to be killed in: the data many times over.
    slow = ("--evaluator", "--eval-start-delay-secs", 1000, "--eval", *["eval.csv"] * 30)
    flags = ("--workers", 2, *end, "--save-secs", 0, "--exporter", "best", "--exporter", "final")
    kill_in_evaluation(trainings, (*slow, *flags), "chief-0")
    losses = evaluations(trainings.jobs.folder / "broken")
    last = tf.train.load_checkpoint(trainings.newest("broken")).get_tensor("global_step")
    assert list(losses) == [last]
    assert len(list((trainings.jobs.folder / "broken/export/final").iterdir())) == 1


SERVED = ("--workers", 2, "--ps", 2, "--strategy")


@pytest.mark.parametrize("strategy", ["ps-sync", "ps-async"])
def test_it_evaluates_what_parameter_servers_have(trainings: Trainings, strategy: str) -> None:
    flags = (*SERVED, strategy, "--epochs", 100, "--save-steps", 500, "--job", "job")
    output = trainings.ok("model", *FLAGS, *flags)
    check_folder(trainings, "model")
    assert re.search(r"evaluator-0.*Evaluated 100,?000 examples", output)
    assert not re.search(r"chief-0.*Evaluated", output)
    trainings.jobs.wait_nothing_runs()


@pytest.mark.parametrize("victim", ["evaluator-0", "chief-0", "ps-1"])
def test_one_that_is_killed_beside_parameter_servers(trainings: Trainings, victim: str) -> None:
    flags = (*SERVED, "ps-async", "--max-steps", 60_000, "--save-steps", 1000)
    kill_in_evaluation(trainings, (*FLAGS, *flags), victim)
    check_folder(trainings, "broken", evaluated=2)
    trainings.jobs.wait_nothing_runs()


@pytest.mark.parametrize("victim", ["evaluator-0", "chief-0"])
def test_one_that_is_killed_while_the_last_one_of_parameter_servers_is_evaluated(
    trainings: Trainings, victim: str
) -> None:
    slow = ("--evaluator", "--eval-start-delay-secs", 1000, "--eval", *["eval.csv"] * 30)
    flags = (*SERVED, "ps-sync", "--max-steps", 2000, "--save-secs", 0, "--exporter", "final")
    kill_in_evaluation(trainings, (*slow, *flags), victim)
    assert list(evaluations(trainings.jobs.folder / "broken")) == [2000]
    assert len(list((trainings.jobs.folder / "broken/export/final").iterdir())) == 1
    trainings.jobs.wait_nothing_runs()


def test_its_evaluations_stop_the_training(trainings: Trainings) -> None:
    flags = ("--workers", 2, "--max-steps", 100_000_000, "--save-steps", 500)
    output = trainings.ok("model", *FLAGS, *flags, "--early-stop", "loss:higher:0.0001")
    assert re.search(r"metric 'loss' is .*, higher than 0.0001", output)
    check_folder(trainings, "model")


def test_ctrl_c_ends_all(trainings: Trainings) -> None:
    flags = ("--workers", 2, "--max-steps", 100_000_000, "--save-steps", 500, "--job", "job")
    running = trainings.jobs.start(*trainings.flags("model", *FLAGS, *flags))
    trainings.jobs.wait(lambda: leases(trainings.jobs.folder / "model"), "for a lease")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 1, said
    trainings.jobs.wait_nothing_runs()


def test_an_evaluator_without_data_is_wrong_use(trainings: Trainings) -> None:
    result = trainings.run("model", "--evaluator")
    assert result.returncode == 2
    assert "--eval" in result.stderr
    assert not (trainings.jobs.folder / "model").exists()
