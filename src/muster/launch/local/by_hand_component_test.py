"""`muster worker` started by hand: tasks that disagree, that are told to end, or whose job has ended."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
from typing import Any

from testbed.jobs import DEADLINE
from testbed.ports import free_address
from testbed.trainings import Trainings, write_rows


class ByHand:
    """A chief and a worker, each with what it is given."""

    def __init__(self, trainings: Trainings) -> None:
        self.trainings = trainings
        self.folder = trainings.jobs.folder
        self.cluster = {"chief": [free_address()], "worker": [free_address()]}
        key = self.folder / "key"
        key.write_text("0123456789abcdef" * 4)
        key.chmod(0o600)
        trainings.jobs.environment["MUSTER_KEY_FILE"] = str(key)

    def start(
        self, task: str, *flags: object, data: str = "train.csv", cluster: Any = None
    ) -> subprocess.Popen[str]:
        kind, index = task.split("-")
        self.trainings.jobs.environment["TF_CONFIG"] = json.dumps(
            {"cluster": cluster or self.cluster, "task": {"type": kind, "index": int(index)}}
        )
        command = ["worker", "spec.yaml", "--train", data, "--model-dir", "model", *flags]
        return self.trainings.jobs.start(*command)


def ended(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=DEADLINE)[1]


def test_tasks_that_disagree_train_nothing_and_say_in_what(trainings: Trainings) -> None:
    by_hand = ByHand(trainings)
    for folder, files in (("all", 2), ("some", 1)):
        (by_hand.folder / folder).mkdir()
        for i in range(files):
            write_rows(pathlib.Path(by_hand.folder / folder / f"part-{i}.csv"), 100)
    third = {**by_hand.cluster, "worker": [*by_hand.cluster["worker"], free_address()]}
    chief = by_hand.start("chief-0", "--epochs", 5, data="all/*")
    differences: list[tuple[str, tuple[object, ...], dict[str, Any]]] = [
        ("worker-0 has [epochs 1], chief-0 has [epochs 5]", ("--epochs", 1), {}),
        ("worker-0 has [shuffle no], chief-0 has [shuffle yes]", ("--no-shuffle",), {}),
        ("worker-0 has [drop remainder yes]", ("--drop-remainder",), {}),
        ("worker-0 has [data 1 file of", (), {"data": "some/*"}),
        ("worker-0 has [replicas 3], chief-0 has [replicas 2]", (), {"cluster": third}),
    ]
    for words, flags, what in differences:
        other = {"data": "all/*", **what}
        epochs = () if "--epochs" in flags else ("--epochs", 5)
        worker = by_hand.start("worker-0", *epochs, *flags, **other)
        said = ended(worker)
        assert worker.returncode == 1 and words in said
    chief.terminate()
    said = ended(chief)
    for words, _, _ in differences:
        assert words in said, "the chief says it too"
    assert not list((by_hand.folder / "model").glob("model.ckpt-*[1-9].index"))


def test_every_role_that_is_told_to_end_asks_to_be_started_again(trainings: Trainings) -> None:
    """Exit code 143, whether a task works or waits for those that have gone: none has finished."""
    by_hand = ByHand(trainings)
    by_hand.cluster["ps"] = [free_address()]
    flags = ("--strategy", "ps-sync", "--epochs", 1_000_000, "--eval", "train.csv", "--evaluator")
    tasks = ("evaluator-0", "ps-0", "worker-0", "chief-0")
    running = {task: by_hand.start(task, *flags) for task in tasks}
    checkpoint = by_hand.folder / "model/checkpoint"
    trainings.jobs.wait(checkpoint.exists, "for the training to begin")
    for task in tasks:
        running[task].terminate()
        said = ended(running[task])
        assert running[task].returncode == 143, (task, said)


def test_a_task_of_a_job_that_has_ended_waits_for_nobody(trainings: Trainings) -> None:
    by_hand = ByHand(trainings)
    tasks = [by_hand.start(task) for task in ("chief-0", "worker-0")]
    for task in tasks:
        said = ended(task)
        assert task.returncode == 0, said
    weights = trainings.weights("model")
    for name in ("chief-0", "worker-0"):
        again = by_hand.start(name, "--rendezvous-timeout", 2)
        said = ended(again)
        assert again.returncode == 0, said
        assert "job 'training' has ended before" in said and "nothing is left to do" in said
    assert trainings.weights("model") == weights


def test_a_signal_in_a_slow_step_ends_all_tasks_after_it(trainings: Trainings) -> None:
    by_hand = ByHand(trainings)
    slow = ("--set", "model.dnn.hidden_units=[2000, 2000]", "--batch-size", 1500, "--epochs", 100_000)
    flags = (*slow, "--save-steps", 1, "--keep-checkpoints", 2)
    chief, worker = (by_hand.start(task, *flags) for task in ("chief-0", "worker-0"))
    trainings.jobs.wait(lambda: trainings.step("model") >= 2, "for steps")
    worker.send_signal(signal.SIGINT)
    ended(worker)
    said = ended(chief)
    assert "stopped by a signal at step" in said, said


def test_the_last_step_is_saved_when_a_worker_stays_away(trainings: Trainings) -> None:
    by_hand = ByHand(trainings)
    epochs = ("--epochs", 200)
    flags = (*epochs, "--save-steps", 500, "--rendezvous-timeout", 10)
    chief, worker = (by_hand.start(task, *flags) for task in ("chief-0", "worker-0"))
    trainings.jobs.wait(lambda: trainings.step("model") >= 500, "for steps")
    worker.kill()
    said = ended(chief)
    ended(worker)
    step = trainings.step("model")
    assert chief.returncode == 1 and "waited 10 s for worker-0" in said
    assert f"step {step} is saved, from which the same command continues" in said
    for task in [by_hand.start(task, *flags) for task in ("chief-0", "worker-0")]:
        said = ended(task)
        assert task.returncode == 0, said
    trainings.ok("whole", "--workers", 2, *epochs)
    assert trainings.weights("model") == trainings.weights("whole")
