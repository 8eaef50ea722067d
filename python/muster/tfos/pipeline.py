"""Spark ML's Estimator and Model around a program of a cluster: TFEstimator and TFModel."""

from __future__ import annotations

import argparse
import copy
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Params
from pyspark.sql import types

from muster.tfos import TFCluster
from muster.tfos.pipeline_params import (
    HasBatchSize,
    HasClusterSize,
    HasEpochs,
    HasExportDir,
    HasGraceSecs,
    HasInputMapping,
    HasInputMode,
    HasMasterNode,
    HasModelDir,
    HasNumPS,
    HasOutputMapping,
    HasProtocol,
    HasReaders,
    HasSignatureDefKey,
    HasSteps,
    HasTFRecordDir,
    HasTagSet,
    HasTensorboard,
    TFTypeConverters,
)

__all__ = [
    "Namespace", "TFEstimator", "TFModel", "TFParams", "HasBatchSize", "HasClusterSize",
    "HasEpochs", "HasExportDir", "HasGraceSecs", "HasInputMapping", "HasInputMode", "HasMasterNode",
    "HasModelDir", "HasNumPS", "HasOutputMapping", "HasProtocol", "HasReaders",
    "HasSignatureDefKey", "HasSteps", "HasTFRecordDir", "HasTagSet", "HasTensorboard",
    "TFTypeConverters",
]  # fmt: skip
_MODELS: Dict[Tuple[str, str, str], Any] = {}  # loaded by this Python worker


class Namespace:
    """Arguments by name, from a dict, an argparse.Namespace or another one; or, in `argv`, a list."""

    argv: Optional[List[str]] = None

    def __init__(self, given: Any) -> None:
        if isinstance(given, list):
            self.argv = given
        elif isinstance(given, dict):
            self.__dict__.update(given)
        elif isinstance(given, (argparse.Namespace, Namespace)):
            self.__dict__.update(vars(given))
        else:
            raise TypeError(f"arguments: a list, a dict or a Namespace is wanted, not {given!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.argv or self.__dict__)

    def __repr__(self) -> str:
        items = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"Namespace({items})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Namespace) else self.argv == other


class TFParams(Params):
    """Params that a program gets beside its own arguments."""

    args: Any = None

    def merge_args_params(self) -> Namespace:
        """The arguments with all params."""
        merged: Namespace = copy.copy(self.args)
        for param in self.params:
            setattr(merged, param.name, self.getOrDefault(param.name))
        return merged


class TFEstimator(
    Estimator, TFParams, HasInputMapping, HasClusterSize, HasNumPS, HasInputMode, HasMasterNode, HasProtocol,
    HasGraceSecs, HasTensorboard, HasModelDir, HasExportDir, HasTFRecordDir, HasBatchSize, HasEpochs,
    HasReaders, HasSteps,
):  # fmt: skip
    """fit(df) feeds the columns of input_mapping, in the order of their names, to train_fn(args, ctx).

    tf_args: arguments of train_fn, which gets the params as well; a list of words is passed on alone.
    """

    def __init__(self, train_fn: Any, tf_args: Any, export_fn: Any = None) -> None:
        super().__init__()
        if export_fn is not None:
            raise ValueError("export_fn is of TensorFlow 1: train_fn exports the model itself")
        self.train_fn = train_fn
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={}, cluster_size=1, num_ps=0, driver_ps_nodes=False,
            input_mode=TFCluster.InputMode.SPARK, master_node="chief", protocol="grpc", tensorboard=False,
            model_dir=None, export_dir=None, tfrecord_dir=None, batch_size=100, epochs=1, readers=1,
            steps=1000, grace_secs=30,
        )  # fmt: skip

    def _fit(self, dataset: Any) -> TFModel:
        merged = self.merge_args_params()
        columns = sorted(self.getInputMapping())
        _check_columns(columns, dataset)
        cluster = TFCluster.run(
            dataset.sparkSession.sparkContext, self.train_fn, self.args.argv or merged, self.getClusterSize(),
            self.getNumPS(), self.getTensorboard(), TFCluster.InputMode.SPARK,
            master_node=self.getMasterNode(), driver_ps_nodes=self.getDriverPSNodes(),
        )  # fmt: skip
        try:
            chosen = dataset.select(columns)
            plain = all(_is_plain(field.dataType) for field in chosen.schema.fields)
            cluster.train(chosen if plain else chosen.rdd, self.getEpochs())
        except BaseException:
            cluster.stop()
            raise
        cluster.shutdown(grace_secs=self.getGraceSecs())
        made: TFModel = self._copyValues(TFModel(self.args))
        return made


class TFModel(
    Model, TFParams, HasInputMapping, HasOutputMapping, HasBatchSize, HasModelDir, HasExportDir,
    HasSignatureDefKey, HasTagSet,
):  # fmt: skip
    """transform(df) runs the SavedModel in export_dir on executors; each Python worker loads it once.

    The result has the columns of output_mapping, in the order of the outputs' names, and no others.
    """

    def __init__(self, tf_args: Any) -> None:
        super().__init__()
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={}, output_mapping={}, batch_size=100, model_dir=None, export_dir=None,
            signature_def_key=None, tag_set=None,
        )  # fmt: skip

    def _transform(self, dataset: Any) -> Any:
        if not self.getExportDir():
            raise ValueError("TFModel needs export_dir, the folder of a SavedModel")
        inputs, outputs = self.getInputMapping(), self.getOutputMapping()
        columns = sorted(inputs)
        _check_columns(columns, dataset)
        scoring = _Scoring(
            self.getExportDir(), self.getTagSet() or "serve", self.getSignatureDefKey() or "serving_default",
            [inputs[column] for column in columns], sorted(outputs), self.getBatchSize(),
        )  # fmt: skip
        names = [outputs[tensor] for tensor in sorted(outputs)]
        argv = self.args.argv

        def score(rows: Iterator[Any]) -> Iterator[Any]:
            if argv:
                sys.argv = argv
            return scoring.score(rows)

        return dataset.sparkSession.createDataFrame(dataset.select(columns).rdd.mapPartitions(score), names)


class _Scoring(NamedTuple):
    """What a task of Spark must know to score rows."""

    folder: str
    tags: str
    signature: str
    inputs: List[str]
    outputs: List[str]
    batch_size: int

    def score(self, rows: Iterator[Any]) -> Iterator[Tuple[Any, ...]]:
        batch: List[Any] = []
        for row in rows:
            batch.append(row)
            if len(batch) == self.batch_size:
                yield from self._score_batch(batch)
                batch = []
        if batch:
            yield from self._score_batch(batch)

    def _score_batch(self, rows: Sequence[Any]) -> Iterator[Tuple[Any, ...]]:
        import tensorflow

        signature = self._load().signatures[self.signature]
        wanted = signature.structured_input_signature[1]
        fed = {}
        for number, name in enumerate(self.inputs):
            values = [bytes(r[number]) if isinstance(r[number], bytearray) else r[number] for r in rows]
            tensor = tensorflow.constant(values, dtype=wanted[name].dtype)
            # Spark has flat arrays only.
            fed[name] = tensorflow.reshape(tensor, [len(rows), *wanted[name].shape[1:]])
        predicted = signature(**fed)
        columns = [self._column(predicted, name, len(rows)) for name in self.outputs]
        return zip(*columns)

    def _column(self, predicted: Mapping[str, Any], name: str, rows: int) -> List[Any]:
        if name not in predicted:
            raise ValueError(f"{self.folder}: output '{name}' is none of {', '.join(sorted(predicted))}")
        values: List[Any] = predicted[name].numpy().tolist()
        if len(values) != rows:
            raise ValueError(f"{self.folder}: output '{name}' has {len(values)} values for {rows} rows")
        return values

    def _load(self) -> Any:
        key = (self.folder, self.tags, self.signature)
        if key not in _MODELS:
            import tensorflow

            _MODELS.clear()
            _MODELS[key] = tensorflow.saved_model.load(self.folder, tags=self.tags.split(","))
        return _MODELS[key]


def _is_plain(given: Any) -> bool:
    """Whether programs get the same objects of this type from a DataFrame and from its .rdd."""
    if isinstance(given, types.ArrayType):
        return _is_plain(given.elementType)
    return isinstance(given, (types.IntegralType, types.FractionalType, types.BooleanType, types.StringType))


def _check_columns(columns: Sequence[str], dataset: Any) -> None:
    if not columns:
        raise ValueError("input_mapping is needed: {column: input}")
    for column in columns:
        if column not in dataset.columns:
            raise ValueError(
                f"the DataFrame has no column '{column}' of input_mapping; it has: {', '.join(dataset.columns)}"
            )
