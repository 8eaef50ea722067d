"""Click models by several processes: parameter servers give what all-reduce gives, and repeat it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from testbed.trainings import SPEC, Trainings

COLUMNS, TRAIN = SPEC.split("model:")[0], SPEC.split("dropout: 0.1, batch_norm: true}")[1]
MODELS = {
    "deepfm": """model:
  type: deepfm
  linear: {columns: [hashed, x]}
  fm: {columns: [e, x, z]}
  dnn: {columns: [x, z, e], hidden_units: [16, 8]}""",
    "dcn": """model:
  type: dcn
  cross: {layers: 2, rank: 2, structure: parallel}
  dnn: {columns: [x, z, e], hidden_units: [16, 8]}""",
    "two_tower": """model:
  type: two_tower
  query: {columns: [x, z], hidden_units: [16]}
  item: {columns: [e], hidden_units: [16]}
  dimension: 4""",
}


def tensors(trainings: Trainings, model_dir: str) -> dict[str, np.ndarray]:
    loaded = tf.train.load_checkpoint(trainings.newest(model_dir))
    names = loaded.get_variable_to_shape_map()
    return {name: loaded.get_tensor(name) for name in names if not name.startswith("muster/")}


@pytest.mark.parametrize("kind", MODELS)
def test_servers_and_all_reduce_give_the_same(kind: str, trainings: Trainings) -> None:
    spec = trainings.jobs.folder / "spec.yaml"
    spec.write_text(COLUMNS + MODELS[kind] + TRAIN)
    flags = ("--workers", 2, "--max-steps", 40)
    for folder in ("allreduce", "again"):
        trainings.ok(folder, *flags)
    trainings.ok("served", *flags, "--ps", 2, "--strategy", "ps-sync")
    assert trainings.weights("allreduce") == trainings.weights("again")
    served = tensors(trainings, "served")
    for name, value in tensors(trainings, "allreduce").items():
        difference = np.abs(served[name] - value).max()
        assert difference <= 2e-5 * np.abs(value).max(), name
