"""MusterEstimator and MusterModel: training and scoring as Spark ML's Estimator and Transformer."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import uuid
from typing import Any, Dict, Iterator, List, Optional

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from muster import binary, places, storage
from muster.spark import columns, model_files, scoring, sessions, training
from muster.spark.own_folder import OwnFolder
from muster.spark.params import OutputParams
from muster.spark.staging import spool
from muster.spark.tfrecords import write_tfrecords


# What the program's flags are called here, for errors.
_PARAMS = {
    "--batch-size": "batchSize",
    "--epochs": "epochs",
    "--model-dir": "modelDir",
    "--seed": "seed",
    "--threads": "threads",
    "--workers": "workers",
}
# What the program says of a record that is not good, and what a fit does not have.
_LEAVE_OUT = "; to leave out up to N such records and continue, give --max-bad-records N"


def _param(name: str, doc: str, converter: Any) -> Param[Any]:
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class MusterEstimator(Estimator, OutputParams, DefaultParamsReadable, DefaultParamsWritable):
    """Trains a model of Muster on a DataFrame.

        model = MusterEstimator(model="titanic.yaml", label="survived").fit(df)
        model.transform(df)

    model: a model file (docs/spec.md), its text, or the folder of an exported Keras model.
    label: the column that is the model's label; by default the one with the name in the model file.
    settings: changes of the model file by path, {"train.epochs": 3} (muster train --set).
    epochs, batchSize, seed, threads: those of `muster train`; absent: the model file's.
    workers: processes that train together on the driver's machine; 0: one process alone.
    onExecutors: they run on executors instead, each in a slot of Spark; staging and modelDir are then reached
        by all of these.
    staging: a folder that the driver and all executors reach, for the rows while a model is trained.
    modelDir: a folder for the model with its checkpoints; absent: the model is kept in MusterModel.
    """

    model = _param("model", "model file, its text, or exported Keras model", TypeConverters.toString)
    label = _param("label", "column of the label", TypeConverters.toString)
    settings = _param("settings", "changes of the model file by path", TypeConverters.identity)
    epochs = _param("epochs", "passes over the rows", TypeConverters.toInt)
    batchSize = _param("batchSize", "rows a step, of each worker", TypeConverters.toInt)
    seed = _param("seed", "of the first weights and of the shuffle", TypeConverters.toInt)
    threads = _param("threads", "threads of each process that trains", TypeConverters.toInt)
    workers = _param("workers", "processes that train together", TypeConverters.toInt)
    onExecutors = _param("onExecutors", "whether executors train", TypeConverters.toBoolean)
    staging = _param("staging", "folder that all machines reach", TypeConverters.toString)
    modelDir = _param("modelDir", "folder of the model", TypeConverters.toString)

    _input_kwargs: Dict[str, Any]

    @keyword_only
    def __init__(
        self,
        *,
        model: Optional[str] = None,
        label: Optional[str] = None,
        settings: Optional[Dict[str, Any]] = None,
        epochs: Optional[int] = None,
        batchSize: Optional[int] = None,
        seed: Optional[int] = None,
        threads: Optional[int] = None,
        workers: int = 0,
        onExecutors: bool = False,
        staging: Optional[str] = None,
        modelDir: Optional[str] = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
        outputCols: Optional[List[str]] = None,
        keptCols: Optional[List[str]] = None,
    ) -> None:
        super().__init__()
        self._setDefault(workers=0, onExecutors=False, settings={})
        self._set(**{k: v for k, v in self._input_kwargs.items() if v is not None})

    @keyword_only
    def setParams(self, **kwargs: Any) -> MusterEstimator:
        self._set(**{k: v for k, v in self._input_kwargs.items() if v is not None})
        return self

    def _optional(self, param: Any) -> Any:
        return self.getOrDefault(param) if self.isDefined(param) else None

    def _fit(self, dataset: Any) -> MusterModel:
        spark = sessions.session_of(dataset)
        with OwnFolder() as own:
            folder = str(own.path)
            spec = self._model_path(folder)
            wanted = columns.inputs_of(spec)
            with self._spooled(dataset, spec, wanted, folder) as place:
                try:
                    model = self._train(spark, spec, place, folder)
                except binary.MusterError as error:
                    raise binary.MusterError(_in_words_of_rows(str(error))) from None
        self._copyValues(model)
        return model

    def _train(self, spark: Any, spec: str, place: str, folder: str) -> MusterModel:
        """place: the folder of the rows; folder: one of this machine alone."""
        on_executors = self.getOrDefault(self.onExecutors)
        model_dir = self._optional(self.modelDir)
        trained = model_dir or posixpath.join(place if on_executors else folder, "model")
        data, workers = posixpath.join(place, "rows", "part-*"), self.getOrDefault(self.workers)
        if on_executors:
            training.train(
                spark, spec, data, _absolute(trained), self._flags(), workers=max(workers, 1), shared=place
            )
        else:
            together = ["--workers", workers] if workers > 0 else []
            command: List[object] = ["train", spec, "--train", data, "--model-dir", trained]
            binary.call([*command, *self._flags(), *together], _PARAMS)
        if model_dir is not None:
            return MusterModel(folder=_absolute(trained))
        with storage.fetched(posixpath.join(trained, "*")) as found:
            return MusterModel(files=model_files.collect(found))

    def _model_path(self, folder: str) -> str:
        given = self._optional(self.model)
        if given is None:
            raise ValueError("MusterEstimator has no model: model='titanic.yaml'")
        if "\n" not in given and not given.lstrip().startswith("{"):
            return places.any_path(given)
        path = os.path.join(folder, "model-file.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(given)
        return path

    @contextlib.contextmanager
    def _spooled(self, df: Any, spec: str, wanted: columns.Inputs, folder: str) -> Iterator[str]:
        """Writes the rows as TFRecord files, into the folder rows of a folder that is there as long as they are
        needed."""
        staging = self._optional(self.staging)
        if staging is None:
            _check_local(df)
            staging = folder
        with spool(places.any_path(staging).rstrip("/")) as place:
            rows = posixpath.join(place, "rows")
            if write_tfrecords(self._with_label(df, wanted), rows, model=spec).rows == 0:
                raise ValueError("the DataFrame has no rows to train on")
            yield place

    def _with_label(self, df: Any, wanted: columns.Inputs) -> Any:
        label = self._optional(self.label) or wanted.label
        for name in (label, wanted.weight):
            if name and name not in df.columns:
                why = "which label= names" if name == self._optional(self.label) else "which the model needs"
                raise ValueError(columns.missing(name, df.columns, why))
            if name:
                columns.single(df, name)  # or there are several
        if not wanted.label or label == wanted.label:
            return df
        if wanted.label in df.columns:
            df = df.drop(wanted.label)
        return df.withColumnRenamed(label, wanted.label)

    def _flags(self) -> List[object]:
        flags: List[object] = []
        for param, flag in (
            (self.epochs, "--epochs"),
            (self.batchSize, "--batch-size"),
            (self.seed, "--seed"),
            (self.threads, "--threads"),
        ):
            value = self._optional(param)
            flags += [] if value is None else [flag, value]
        for path, value in self.getOrDefault(self.settings).items():
            flags += ["--set", f"{path}={json.dumps(value)}"]
        return flags


def _in_words_of_rows(error: str) -> str:
    """An error that names a record of the spooled rows: its file is gone when the error is read."""
    named = r"\S*/rows/part-(\d+)\.tfrecord: record at byte \d+"
    error = re.sub(named, lambda found: f"a row of partition {int(found[1])} of the DataFrame", error)
    advice = "df.replace(float('nan'), None) makes nulls of NaN, for which the model may have a default"
    return error.replace(_LEAVE_OUT, f"; {advice}" if "the value nan" in error else "")


def _check_local(df: Any) -> None:
    master = df.sparkSession.sparkContext.master
    if not master.startswith("local"):
        raise ValueError(
            f"staging is needed with Spark's master {master}: MusterEstimator(staging=FOLDER), a folder "
            "that the driver and all executors reach, such as hdfs://NAMENODE/tmp"
        )


def _absolute(folder: str) -> str:
    text = places.any_path(folder)
    return text if places.is_remote(text) else os.path.abspath(text)


class MusterModel(Model, OutputParams, MLReadable, MLWritable):
    """A trained model: transform adds its predictions to each row, in the same order.

    files: the model's files by name; or folder: where the model lies, reached by all executors.
    """

    def __init__(
        self, files: Optional[Dict[str, bytes]] = None, folder: Optional[str] = None
    ) -> None:
        super().__init__()
        self.files = files
        self.folder = folder
        self._broadcast: Any = None
        self._name = ""  # of what is broadcast

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_broadcast": None}

    def _transform(self, dataset: Any) -> Any:
        sessions.session_of(dataset)
        return scoring.transform(dataset, self._place(dataset), self)

    def _place(self, df: Any) -> model_files.Place:
        if self.files is None:
            assert self.folder is not None
            return model_files.Place(self.folder, None, "")
        if self._broadcast is None:
            self._broadcast = df.sparkSession.sparkContext.broadcast(self.files)
            self._name = uuid.uuid4().hex
        return model_files.Place(None, self._broadcast, self._name)

    def export(self, folder: str) -> None:
        """Writes the model as a model's folder of `muster`, for its other verbs."""
        if self.files is None:
            raise ValueError(f"the model is in the folder {self.folder} already")
        os.makedirs(folder, exist_ok=True)
        model_files.unpack(self.files, folder)

    def write(self) -> MLWriter:
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[MusterModel]:
        return _ModelReader()


class _ModelWriter(MLWriter):
    """Metadata as Spark ML has it, and the model's files as pairs of name and bytes."""

    def __init__(self, instance: MusterModel) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        model = self._instance
        DefaultParamsWriter.saveMetadata(model, path, self.sc, {"folder": model.folder})
        if model.files is not None:
            pairs = sorted(model.files.items())
            self.sc.parallelize(pairs, 1).saveAsPickleFile(posixpath.join(path, "files"))


class _ModelReader(MLReader[MusterModel]):
    def load(self, path: str) -> MusterModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        files = None
        if metadata["folder"] is None:
            files = dict(self.sc.pickleFile(posixpath.join(path, "files")).collect())
        model = MusterModel(files=files, folder=metadata["folder"])
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
