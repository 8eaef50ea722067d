"""The folders of an estimator: its model_dir with checkpoints, and those of exports."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from typing import Any, Optional, Tuple

from muster import places, storage
from muster.estimator.run_config import RunConfig

logger = logging.getLogger("muster")


def configured(config: Optional[RunConfig], model_dir: Any) -> Tuple[RunConfig, str]:
    """Returns the configuration and the model_dir, which is a temporary folder if none is given."""
    if config is None:
        config = RunConfig()
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    given = None if model_dir is None else places.any_path(model_dir)
    told = None if config.model_dir is None else places.any_path(config.model_dir)
    if given is not None and told is not None and told != given:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
            f"In constructor: '{given}', in `RunConfig`: '{config.model_dir}' "
        )
    folder = given or told
    if folder is None and config.task.in_cluster:
        raise ValueError("model_dir: tasks of a cluster meet in one folder, which all can reach")
    if folder is None:
        folder = tempfile.mkdtemp()
        logger.warning("Using temporary folder as model directory: %s", folder)
    return config.replace(model_dir=folder), folder


def timestamped(base: str) -> str:
    """Makes the folder `base`, and returns a path BASE/<10 digits> that does not exist yet."""
    storage.make_folder(base)
    stamp = int(time.time())
    while storage.exists(os.path.join(base, f"{stamp:010d}")):
        stamp += 1
    return os.path.join(base, f"{stamp:010d}")


def checkpoint_value(prefix: str, name: str) -> Any:
    """Reads a tensor of a checkpoint. Raises ValueError if TensorFlow is not installed."""
    try:
        import tensorflow
    except ImportError as error:
        raise ValueError(f"get_variable_value: TensorFlow reads it, and is not here: {error}") from None
    with storage.fetched(f"{prefix}.*") as folder:
        local = os.path.join(folder, os.path.basename(prefix))
        return tensorflow.train.load_checkpoint(local).get_tensor(name)
