"""Convolutional and recurrent Keras models: every step is Keras's, from the same weights and slots."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from testbed import keras_checks
from testbed.jobs import Jobs
from testbed.trainings import KerasTrainings

PROGRAM = "keras_steps.py"
STEPS, BATCH = 20, 40


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make(PROGRAM, tmp_path_factory.mktemp("keras"))


def compare(jobs: Jobs, models: pathlib.Path, name: str, workers: int) -> None:
    """Every weight, state and slot after each step: weights and states within 1e-6 of the largest of
    their tensor, of several workers at least of 0.1 (a bias begins with 0, and where its gradient is
    nearly nothing an optimizer that divides by it makes much of the order of sums); slots, among them
    squares of gradients, within 5e-6 of their largest."""
    jobs.environment["MUSTER_TENSORFLOW"] = os.environ["MUSTER_PYTHON_TENSORFLOW"]
    trainings = KerasTrainings(jobs, models / name)
    flags: list[object] = ["--batch-size", BATCH // workers, "--no-shuffle"]
    flags += ["--save-steps", 1, "--keep-checkpoints", 0]
    if workers == 1:
        trainings.data = str(models / name / "data.tfrecord")
    else:
        flags += ["--workers", workers]
    trainings.ok("model", *flags)
    keras_checks.run_program(PROGRAM, models, name, jobs.folder / "model")
    steps = json.loads((jobs.folder / "model/compared.json").read_text())
    assert len(steps) == STEPS
    for number, tensors in enumerate(steps):
        assert len(tensors) > 8
        for tensor, found in tensors.items():
            is_slot = tensor.startswith("training/")
            least = 0 if is_slot or workers == 1 else 0.1
            within = (5e-6 if is_slot else 1e-6) * max(found["largest"], least)
            assert found["differs"] <= within, f"step {number}: {tensor}: {found}"
    for tensor in steps[0]:
        moved = [found[tensor]["moved"] / found[tensor]["largest"] for found in steps]
        assert max(moved) > 1e-4, f"{tensor} stands still"


@pytest.mark.parametrize("name", keras_checks.keys(f"../programs/{PROGRAM}", "MODELS"))
def test_a_step_is_that_of_train_on_batch(name: str, jobs: Jobs, models: pathlib.Path) -> None:
    compare(jobs, models, name, workers=1)


@pytest.mark.parametrize("name", ["cnn", "lstm", "lstm_with_adam"])
def test_a_step_of_two_workers_is_that_of_both_batches(
    name: str, jobs: Jobs, models: pathlib.Path
) -> None:
    """Not with a BatchNormalization, which is over a worker's own rows."""
    compare(jobs, models, name, workers=2)
