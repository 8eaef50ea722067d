"""Keras models for Muster: exported once, trained without Python, loaded back.

    import muster.keras
    muster.keras.export(model, optimizer, loss, "exported", label="clicked")
    muster.keras.write(table, "exported", "data.tfrecord")
    ...                                      # muster train exported --train data.tfrecord ...
    muster.keras.load("checkpoint", model)

Needs TensorFlow 2.16 or later with Keras 3.5 or later, which are imported when first used; only
`to_model_file` is for Keras 2. docs/keras.md
says which models can be exported, docs/formats/keras_export.md what is written.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union

from muster.keras.fields import Field
from muster.places import local_path

__all__ = ["Field", "export", "load", "to_model_file", "write"]

_Path = Union[str, "os.PathLike[str]"]


def export(
    model: Any,
    optimizer: Any,
    loss: Any,
    path: _Path,
    inputs: Any = None,
    label: Any = "label",
    sample_weight: Any = None,
    metrics: Any = None,
    loss_weights: Any = None,
    example: Any = None,
    key: Any = None,
) -> None:
    """Writes `model` to the new folder `path` as something that `muster train` trains.

    optimizer, loss, metrics, loss_weights: as in `model.compile`. loss=None is for a model whose
        layers add losses (add_loss), or that has a custom compute_loss.
    inputs: the arguments of the model as Fields, in their structure (one, a list, a dict). For a
        Sequential or functional model it may be None: each record field then has the name of its
        input. Or a dict by input name of those that differ, with a record field's name or a Field.
        Each input without a name needs one.
    label: the record field of the label, or a Field; a dict or list of them for several outputs, or
        as the model's custom compute_loss takes them. None if the loss needs no label.
    sample_weight: a record field with one number per row, or a Field with one for each step of a row.
    key: the record field that `muster predict` returns with each score: a name for strings, a Field
        with one value for another dtype.
    example: a batch on which the exported functions are compared with the model, (inputs, label) or
        (inputs, label, sample_weight), in the same structures; None: random values.

    The model's weights become the initial values; the model is not changed. Keras and the exported
    functions train three steps from the same weights and seeds; if the results differ, nothing is
    written. Raises ValueError for a model that cannot be exported, with the layer and what to do;
    FileExistsError if `path` exists.
    """
    _require()
    from muster.keras import exporting

    exporting.export(
        exporting.Request(
            model, optimizer, loss, local_path(path), inputs, label, sample_weight, key, metrics,
            loss_weights, example,
        )
    )  # fmt: skip


def load(path: _Path, model: Any, manifest: Optional[_Path] = None) -> None:
    """Loads the weights at `path` into `model`.

    path: a checkpoint that Muster wrote (its prefix, or the folder with it), a SavedModel that it
        exported, or the folder that `export` wrote.
    manifest: the folder that `export` wrote, if the names of the model's variables have changed since
        (Keras numbers unnamed layers): variables are then matched in order.

    Raises ValueError, which names the variable, if the weights are not this model's; nothing is
    changed then.
    """
    _require()
    from muster.keras import loading

    loading.load(
        local_path(path), model, None if manifest is None else local_path(manifest)
    )


def write(
    data: Any,
    export: _Path,
    out: _Path,
    shards: int = 1,
    class_weight: Optional[Mapping[Any, float]] = None,
    for_training: bool = True,
) -> int:
    """Writes rows as TFRecord files that fit the model that was exported to `export`; returns how many.

    data: a dict of columns or a pandas DataFrame, named as the record fields (or the model's inputs);
        or (inputs, labels) or (inputs, labels, sample_weight) as `fit` takes them; or a
        tf.data.Dataset of such, of batches or of rows. Columns that the model does not use are left
        out. Images are arrays or encoded bytes.
    out: the file, which is replaced when all rows are written. With `shards` above 1, the files
        OUT-00000-of-0000N, ..., which get rows in turn.
    class_weight: a factor of the rows' weights for each class number, as in `fit`; 1 for classes
        without a factor. The model needs a sample_weight.
    for_training: False leaves out labels and weights, for `muster predict`.

    If the model has a sample_weight, a row without one gets weight 1. Raises ValueError for data that
    does not fit, with the column, what the model needs and what was given; no file is left then.
    """
    _require()
    from muster.keras import writing

    writer = writing.Writer(local_path(export), class_weight, for_training)
    return writer.write(data, writing.paths_of(local_path(out), shards))


def to_model_file(model: Any, path: _Path, label: str = "label", batch_size: int = 32) -> None:
    """Writes a model folder for a compiled Keras 2 WideDeepModel: its model file, and a checkpoint with its
    weights and the state of its optimizers, from which `muster train` continues.

    model: a tf.keras.experimental.WideDeepModel whose two models are DenseFeatures of feature columns
        and layers that `linear` and `dnn` of a model file have (docs/keras.md). Works with any
        TensorFlow 2 with Keras 2.
    label: the record field with the label. batch_size: the training's, as in `fit`.

    Raises ValueError, which names the layer, the column, the loss or the optimizer, for what a model
    file cannot express; nothing is written then.
    """
    from muster.keras import wide_deep

    wide_deep.to_model_file(model, local_path(path), label, batch_size)


def _require() -> None:
    """Raises ImportError or ValueError unless TensorFlow and Keras are new enough for exports."""
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            "muster.keras needs TensorFlow 2.16 or later: pip install tensorflow-cpu"
        ) from error
    version = tuple(int(part) for part in tensorflow.__version__.split(".")[:2])
    if version < (2, 16):
        raise ImportError(
            f"muster.keras needs TensorFlow 2.16 or later with Keras 3; this is "
            f"{tensorflow.__version__}: pip install --upgrade tensorflow-cpu"
        )
    import keras

    if tuple(int(part) for part in keras.__version__.split(".")[:2]) < (3, 5):
        raise ImportError(
            f"muster.keras needs Keras 3.5 or later; this is {keras.__version__}: unset "
            "TF_USE_LEGACY_KERAS, pip install --upgrade keras"
        )
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"Keras runs on {keras.backend.backend()}: a model is exported from TensorFlow; set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )
