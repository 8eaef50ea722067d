"""Makes random arguments for exported functions from the manifest, and runs a session as a worker
does."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from muster.keras.verify import Session

ROWS, LENGTH = 6, 4


def arguments(export: pathlib.Path, seed: int = 1) -> dict[str, Any]:
    """Returns arguments of `step`, `step_whole`, `predict` and `evaluate`: initial weights, ids
    within the tables."""
    manifest = json.loads((export / "model.json").read_text())
    random = np.random.default_rng(seed)
    reader = tf.train.load_checkpoint(str(export / "weights"))
    made: dict[str, Any] = {"denominator": np.float32(0)}
    for i, variable in enumerate(manifest["variables"]):
        made[f"var_{i:03d}"] = made[f"whole_{i:03d}"] = reader.get_tensor(variable["name"])
    for kind in ("inputs", "labels"):
        for port in manifest[kind]:
            made[f"{kind[:-1]}_{port['name']}"] = _values(port, random)
    # the weight of a row, for `train --class-weight`
    weight = manifest["sample_weight"] or {"shape": []}
    made["sample_weight"] = np.ones((ROWS, *weight["shape"]), np.float32)
    with Session(str(export)) as session:
        ids = session.run("ids", made) if session.has("ids") else {}
    for lookup in manifest["lookups"]:
        source = lookup["source"]
        name = lookup["argument"]
        ((kind, of),) = source.items()
        true = ids[of] if kind == "computed" else made[f"{kind}_{of}"]
        assert true.max() < manifest["variables"][lookup["table"]]["shape"][0]
        made[name] = true.astype(np.int32)
    return made


def run_as_a_worker(export: pathlib.Path, signature: str, made: dict[str, Any]) -> dict[str, Any]:
    """Runs a signature with TensorFlow's loader and its optimizations, in one thread."""
    manifest = json.loads((export / "model.json").read_text())
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
        use_per_session_threads=True,
    )
    config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    with tf.compat.v1.Session(graph=tf.Graph(), config=config) as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(export / "step"))
        places = manifest["signatures"][signature]
        feed = {tensor: made[name] for name, tensor in places["inputs"].items()}
        return dict(session.run(places["outputs"], feed))


def _values(port: dict[str, Any], random: Any) -> Any:
    shape = [ROWS, *(LENGTH if length is None else length for length in port["shape"])]
    if port["dtype"] == "string":
        return random.choice(np.array([b"a", b"zz"], object), shape)
    dtype = tf.as_dtype(port["dtype"]).as_numpy_dtype
    if port["dtype"].startswith("float"):
        return random.uniform(0, 1, shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)
