"""What differs between versions of TensorFlow 2."""

from __future__ import annotations

import os
import tempfile
from typing import Any


def export_saved_model(model: Any, export_dir: str, is_chief: bool = False) -> None:
    """Writes a Keras model as a SavedModel. All nodes must call it; what the others write is removed."""
    if is_chief:
        _save(model, export_dir)
        return
    with tempfile.TemporaryDirectory(prefix="muster-worker-model-") as folder:
        _save(model, os.path.join(folder, "model"))


def _save(model: Any, folder: str) -> None:
    import tensorflow

    version = getattr(tensorflow.keras, "__version__", "2")  # Keras 2 in TensorFlow has none
    if version.startswith("3."):
        model.export(folder)
    else:
        model.save(folder, save_format="tf")


def disable_auto_shard(options: Any) -> None:
    """Of tf.data.Options: each worker reads all of its dataset."""
    import tensorflow

    policies = tensorflow.data.experimental.AutoShardPolicy
    options.experimental_distribute.auto_shard_policy = policies.OFF


def is_gpu_available() -> bool:
    import tensorflow

    return len(tensorflow.config.list_physical_devices("GPU")) > 0
