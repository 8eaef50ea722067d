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

    optimizer, loss, metrics, loss_weights: what `model.compile` takes. loss=None is for a model whose
        layers add losses (add_loss), or that has its own compute_loss.
    inputs: what the model is called with, as its structure (one, a list, a dict) of Fields. A
        Sequential or functional model has them already, each record field being called like its
        input: None, or a dict of those that differ, by input name: a record field's name or a
        Field. Inputs without names want one each.
    label: the record field of the label, or a Field; a dict or list of them for several outputs, or
        as the model's own compute_loss takes them. None where the loss needs none.
    sample_weight: a record field of one number a row, or a Field of one for each step of a row.
    key: the record field that `muster predict` returns with each score: a name for strings, a Field
        of one value for another dtype.
    example: a batch to compare the exported functions with the model on, (inputs, label) or
        (inputs, label, sample_weight), in the same structures; None: made up.

    The model's weights are the initial values, and stay as they are. Three steps are trained by
    Keras and by what was exported, from the same weights and seeds; nothing is written when they
    differ. Raises ValueError for a model that cannot be exported, naming the layer and what to do;
    FileExistsError when there is something at `path`.
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
    """Gives `model` the weights at `path`.

    path: a checkpoint that Muster wrote (its prefix, or the folder with it), a SavedModel that it
        exported, or what `export` wrote.
    manifest: what `export` wrote, for a model whose variables are called otherwise than then (Keras
        numbers unnamed layers): variables are matched in order.

    Raises ValueError when the weights are not this model's, naming the variable; nothing is
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
    out: the file, replaced when all rows are written. With `shards` above 1 these are
        OUT-00000-of-0000N, ..., which get rows in turn.
    class_weight: by number of a class, what its rows' weights are multiplied by, as `fit` has it; 1
        for classes that it leaves out. The model needs a sample_weight.
    for_training: False leaves labels and weights out: for `muster predict`.

    A row without a sample_weight, of a model that has one, gets weight 1. Raises ValueError for what
    does not fit, with the column, what the model wants and what was given; no file is left then.
    """
    _require()
    from muster.keras import writing

    writer = writing.Writer(local_path(export), class_weight, for_training)
    return writer.write(data, writing.paths_of(local_path(out), shards))


def to_model_file(model: Any, path: _Path, label: str = "label", batch_size: int = 32) -> None:
    """Writes a model folder for a compiled Keras 2 WideDeepModel: its model file, and a checkpoint with its
    weights and the state of its optimizers, from which `muster train` goes on.

    model: a tf.keras.experimental.WideDeepModel whose two models are DenseFeatures of feature columns
        and what `linear` and `dnn` of a model file have (docs/keras.md). It works with any TensorFlow 2
        with Keras 2.
    label: the record field with the label. batch_size: of the training, as `fit` takes it.

    Raises ValueError for what a model file cannot say, with the layer, the column, the loss or the
    optimizer; nothing is written then.
    """
    from muster.keras import wide_deep

    wide_deep.to_model_file(model, local_path(path), label, batch_size)


def _require() -> None:
    """Raises ImportError or ValueError without a TensorFlow and Keras that export can work with."""
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
