"""Exported Keras models trained by several tasks, some of which die."""

from __future__ import annotations

import itertools
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest

from testbed import keras_checks
from testbed.drills import Drill, break_training, interrupt_training, kill_in_training
from testbed.jobs import Jobs
from testbed.measure import resident_bytes
from testbed.trainings import KerasTrainings

HALF = 20
RULES = ["adagrad", "momentum"]
NORMALIZED = ["normalized", "own_normalized"]  # by a rule, and by a function
FUNCTIONS = ["adamax", "nadam", "own", "own_schedule"]  # optimizers and a schedule
LONG = ("--epochs", 60, "--batch-size", HALF, "--save-secs", 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("keras")
    names = (*RULES, *FUNCTIONS, *NORMALIZED, "large")
    return keras_checks.make_trainings(folder, *names)


@pytest.fixture
def plain(jobs: Jobs, models: pathlib.Path) -> KerasTrainings:
    return of(jobs, models / "adagrad")


@pytest.fixture
def normalized(jobs: Jobs, models: pathlib.Path) -> KerasTrainings:
    return of(jobs, models / "normalized")


def of(jobs: Jobs, folder: pathlib.Path) -> KerasTrainings:
    jobs.environment["MUSTER_TENSORFLOW"] = os.environ["MUSTER_PYTHON_TENSORFLOW"]
    return KerasTrainings(jobs, folder)


def tensors(
    trainings: KerasTrainings, model_dir: str, dtype: type = np.float32
) -> dict[str, np.ndarray]:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(trainings.newest(model_dir))
    types = reader.get_variable_to_dtype_map()
    return {name: reader.get_tensor(name) for name, t in types.items() if t == dtype}


def assert_close(ours: dict[str, np.ndarray], wanted: dict[str, np.ndarray], within: float) -> None:
    assert len(ours) >= 8
    for name, value in wanted.items():
        difference = np.abs(ours[name] - value).max()
        assert difference <= within * max(1.0, np.abs(value).max()), f"{name}: {difference}"


STRATEGIES = {
    "allreduce": ("--workers", 2),
    "ps_sync": ("--workers", 2, "--ps", 2, "--strategy", "ps-sync"),
}


def test_servers_refuse_what_they_cannot_compute(jobs: Jobs, models: pathlib.Path) -> None:
    for model, what in (("own", "optimizer of Counting"), ("own_schedule", "learning rate of Adam")):
        for flags in (STRATEGIES["ps_sync"], ("--workers", 2, "--ps", 1)):
            done = of(jobs, models / model).run("refused", *flags)
            assert done.returncode == 1
            assert f"the {what} is a function of TensorFlow" in done.stderr
            assert "train by --strategy allreduce" in done.stderr
    assert not (jobs.folder / "refused").exists()


@pytest.mark.parametrize(
    ("strategy", "model"),
    [*itertools.product(STRATEGIES, RULES), *(("allreduce", model) for model in FUNCTIONS)],
)
def test_two_workers_are_one_with_twice_the_batch(
    strategy: str, model: str, jobs: Jobs, models: pathlib.Path
) -> None:
    trainings = of(jobs, models / model)
    steps = ("--no-shuffle", "--max-steps", 20)
    trainings.ok("two", "--batch-size", HALF, *steps, *STRATEGIES[strategy])
    trainings.data = str(models / model / "data.tfrecord")
    trainings.ok("one", "--batch-size", 2 * HALF, *steps)
    assert_close(tensors(trainings, "two"), tensors(trainings, "one"), 1e-5)


@pytest.mark.parametrize("flags", [("--workers", 2), STRATEGIES["ps_sync"]])
def test_the_same_job_gives_the_same_bytes(
    flags: tuple[object, ...], normalized: KerasTrainings
) -> None:
    for model_dir in ("first", "second"):
        normalized.ok(model_dir, "--batch-size", HALF, *flags)
    assert normalized.weights("first") == normalized.weights("second")


def test_servers_without_order_train_it_too(plain: KerasTrainings) -> None:
    said = plain.ok("model", "--workers", 2, "--ps", 1, "--epochs", 3, "--batch-size", HALF)
    assert "Trained" in said
    assert plain.step("model") == 600  # 3 epochs of 4,000 rows


@pytest.mark.parametrize("model", NORMALIZED)
@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_a_killed_replica_changes_no_byte(
    victim: str, model: str, jobs: Jobs, models: pathlib.Path
) -> None:
    trainings = of(jobs, models / model)
    flags = ("--workers", 2, *LONG)
    trainings.ok("unbroken", *flags)
    kill_in_training(trainings, flags, victim)
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_replicas_may_leave_and_come(jobs: Jobs, models: pathlib.Path) -> None:
    """A worker that joins is also given the slots of an optimizer that is a function."""
    trainings = of(jobs, models / "own_normalized")
    flags = ("--workers", "2:3", "--evaluator", "--eval", trainings.data, *LONG)
    said = kill_in_training(trainings, flags, "worker-1", step=0)
    assert "Trained" in said
    counts = [v for v in tensors(trainings, "broken", np.int64).values() if v.shape == ()]
    assert 2 * trainings.step("broken") in counts


def test_a_killed_server_changes_no_byte(normalized: KerasTrainings) -> None:
    flags = (*STRATEGIES["ps_sync"], *LONG[:-2], "--save-steps", 200)
    normalized.ok("unbroken", *flags)
    kill_in_training(normalized, flags, "ps-0", step=0)
    assert normalized.weights("broken") == normalized.weights("unbroken")


def hosts_of(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid), "-x", "muster-tensorfl"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    return [int(line) for line in found.stdout.split()]


@pytest.mark.parametrize("model", NORMALIZED)
def test_a_killed_host_process_changes_no_byte(
    model: str, jobs: Jobs, models: pathlib.Path
) -> None:
    trainings = of(jobs, models / model)
    flags = ("--workers", 2, *LONG)
    trainings.ok("unbroken", *flags)
    killed: list[int] = []

    def kill_host(drill: Drill) -> None:
        def find() -> list[int]:
            task = drill.task("worker-0")
            return hosts_of(int(task["pid"])) if task.get("phase") == "running" else []

        drill.wait_step(0)
        drill.wait(find, "for the worker's host process")
        for pid in find():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    code, said = break_training(trainings, flags, kill_host, "Trained")
    assert code == 0, said
    assert killed
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.mark.parametrize("model", NORMALIZED)
def test_an_interrupted_training_goes_on_where_it_stood(
    model: str, jobs: Jobs, models: pathlib.Path
) -> None:
    trainings = of(jobs, models / model)
    flags = ("--workers", 2, *LONG)
    trainings.ok("unbroken", *flags)
    interrupt_training(trainings, flags)
    trainings.ok("broken", *flags)
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_tables_lie_on_the_servers_alone(jobs: Jobs, models: pathlib.Path) -> None:
    """But for the chief, which writes the checkpoints."""
    large = of(jobs, models / "large")
    table_bytes = 4 * 1_000_000 * (4 + 1) * 4
    servers = ("--workers", 2, "--ps", 2, "--strategy", "ps-sync", "--save-steps", 50)
    training = jobs.start(*large.flags("model", *servers, *LONG[:4], "--job", "large"))
    jobs.wait(lambda: large.step("model") >= 50, "for a checkpoint")
    resident = {name: resident_bytes(jobs.running("large", name)["pid"])
                for name in ("chief-0", "worker-0", "ps-0", "ps-1")}  # fmt: skip
    training.send_signal(signal.SIGINT)
    training.communicate(timeout=60)
    assert resident["worker-0"] < table_bytes / 4, resident
    for name, least in (("chief-0", 2), ("ps-0", 1), ("ps-1", 1)):  # with slots as large
        assert resident[name] > 0.9 * least * table_bytes, resident
    reached = large.step("model")
    large.ok("model", *servers, *LONG[:4], "--max-steps", reached + 5)
    assert large.step("model") == reached + 5
