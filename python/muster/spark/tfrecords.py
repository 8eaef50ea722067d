"""DataFrames to TFRecord files and back: a file, with its index, for each partition."""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

from muster import binary, places, storage
from muster.spark import columns, hadoop, reading, sessions, staging

_WRITTEN = "partition int, attempt long, rows long, bytes long, error string"
_SUFFIXES = {"none": "", "gzip": ".gz", "zlib": ".zlib"}
# What _cast says, or Spark where spark.sql.ansi.enabled is set, as by default in Spark 4.
_LOST_VALUE = re.compile(r"""column '[^\n]* as the schema has it|The value '[^\n]*? cannot be cast to "[^"]*\"""")
_PART = "part-00000-of-00001.tfrecord"  # what the program calls the only file of a set


class Written(NamedTuple):
    """What write_tfrecords has written."""

    rows: int
    bytes: int
    files: int


class _Job(NamedTuple):
    """What a task must know."""

    staging: str
    features: List[columns.Column]
    compression: str
    names: str

    def file_name(self, partition: int) -> str:
        return self.names.format(partition) + _SUFFIXES[self.compression]


def write_tfrecords(
    df: Any,
    path: Any,
    *,
    schema: Any = None,
    model: Optional[str] = None,
    mode: str = "error",
    compression: str = "none",
    names: str = "part-{:05d}.tfrecord",
) -> Written:
    """Writes one file part-P.tfrecord of tf.Examples, with its index, for each partition P.

    path: a folder that the driver and all executors reach: HDFS, a shared one, or of this machine where
    Spark runs only here. It appears at once when all partitions are written, or not at all, however
    often tasks are repeated.
    schema: columns with types (a StructType or DDL text) to which they are cast; all columns as they
    are if it is absent. Nulls become features without values.
    model: a model file, a model's folder or an exported model: the columns are its inputs, in their
    types, and nulls its defaults.
    mode: "error", or "overwrite", which replaces the folder. compression: "none", "gzip" or "zlib".
    names: of the files, with a place for the partition's number.

    Raises ValueError for what does not fit, before a job is started where that can be known.
    """
    hadoop.complete(os.environ)
    target = places.any_path(path).rstrip("/")
    if mode not in ("error", "overwrite"):
        raise ValueError(f"mode '{mode}': it is 'error' or 'overwrite'")
    if compression not in _SUFFIXES:
        raise ValueError(f"compression '{compression}': it is one of {', '.join(_SUFFIXES)}")
    if names.format(0) == names.format(1):
        raise ValueError(f"names '{names}': a place for the partition's number is wanted: part-{{:05d}}")
    if schema is not None and model is not None:
        raise ValueError("schema and model: give one of them")
    if not places.is_remote(target):
        target = os.path.abspath(target)
    df, features = _prepared(df, schema, model)
    _check_free(target, mode)
    with staging.folder(target) as folder:
        return _write(df, target, _Job(folder, features, compression, names))


def _prepared(df: Any, schema: Any, model: Optional[str]) -> Any:
    """The DataFrame with the columns that are written, and their features."""
    if schema is not None:
        df = _cast(df, schema)
    if model is not None:
        wanted = columns.inputs_of(model)
        names = [c["name"] for c in wanted.inputs if c["name"] in df.columns]
        if not names:
            raise ValueError(columns.missing(wanted.inputs[0]["name"], df.columns))
        df = columns.without_vectors(df, names)
        # Rows that are to be predicted have no label.
        return df, columns.for_model(df.schema, wanted.inputs, [wanted.label, wanted.weight])
    names = df.columns
    df = columns.without_vectors(df, names)
    return df, columns.of_schema(df.schema)


def _cast(df: Any, schema: Any) -> Any:
    from pyspark.sql import functions

    given = reading.schema_of(schema)
    chosen = []
    for field in given.fields:
        if field.name not in df.columns:
            raise ValueError(columns.missing(field.name, df.columns, "which the schema names"))
        column = columns.single(df, field.name)
        cast = column.cast(field.dataType)
        why = functions.concat(
            functions.lit(f"column '{field.name}': the value '"), column.cast("string"),
            functions.lit(f"' is no {field.dataType.simpleString()}, as the schema has it"),
        )  # fmt: skip
        # Spark makes a null of what it cannot cast.
        is_lost = column.isNotNull() & cast.isNull()
        chosen.append(functions.when(is_lost, functions.raise_error(why).cast(field.dataType)).otherwise(cast).alias(field.name))
    return df.select(*chosen)


def _check_free(target: str, mode: str) -> None:
    if mode == "error" and storage.names(target):
        raise ValueError(f"{target} is there already: choose another path, or mode='overwrite'")


def _write(df: Any, target: str, job: _Job) -> Written:
    try:
        with sessions.naming_unfit_python(df.sparkSession.sparkContext):
            rows = df.mapInArrow(_writer(job), _WRITTEN).collect()
    except Exception as error:
        lost = _LOST_VALUE.search(str(error))
        if lost is not None:
            raise ValueError(lost[0]) from None
        raise
    errors = sorted((row.partition, row.error) for row in rows if row.error)
    if errors:
        raise ValueError(errors[0][1])
    _commit(rows, target, job)
    return Written(sum(row.rows for row in rows), sum(row.bytes for row in rows), len(rows))


def _commit(rows: Sequence[Any], target: str, job: _Job) -> None:
    """Publishes the files of those attempts whose results Spark has taken: one for each partition."""
    done = posixpath.join(job.staging, "done")
    storage.make_folder(done)
    files = []
    for row in rows:
        name = job.file_name(row.partition)
        folder = staging.attempt_folder(job.staging, row.partition, row.attempt)
        files += [posixpath.join(folder, f".{name}.index"), posixpath.join(folder, name)]
    storage.move(files, done)
    storage.remove_folder(target)
    storage.rename(done, target)


def _writer(job: _Job) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that a task runs on the batches of its partition."""

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        partition, attempt = context.partitionId(), context.taskAttemptId()
        rows, size, error = 0, 0, None
        try:
            rows, size = write_partition(batches, job, partition, attempt)
        except ValueError as unfit:  # the same in each attempt, so Spark need not repeat the task
            error = str(unfit)
        yield pyarrow.RecordBatch.from_pydict(
            {
                "partition": pyarrow.array([partition], pyarrow.int32()),
                "attempt": pyarrow.array([attempt], pyarrow.int64()),
                "rows": pyarrow.array([rows], pyarrow.int64()),
                "bytes": pyarrow.array([size], pyarrow.int64()),
                "error": pyarrow.array([error], pyarrow.string()),
            }
        )

    return write


def write_partition(batches: Iterator[Any], job: _Job, partition: int, attempt: int) -> Any:
    """Writes a partition's file into the attempt's folder; returns its rows and bytes.

    Raises Unfit, a ValueError, for a value that does not fit.
    """
    from muster.arrow_stream import StreamWriter

    hadoop.complete(os.environ)

    def feed(write: binary.Write) -> None:
        def write_all(parts: List[Any]) -> None:
            for part in parts:
                write(part)

        writer = StreamWriter(write_all, job.features, f"partition {partition}")
        for batch in batches:
            if batch.num_rows > 0:
                writer.write(batch, {})
        writer.end()

    suffix = _SUFFIXES[job.compression]
    name = job.file_name(partition)
    with staging.attempt(job.staging, partition, attempt) as folder:
        command = ["records", "from-batches", "-", "--out", folder, "--json"]
        done = binary.run([*command, "--compression", job.compression], feed)[-1]
        for old, new in ((f".{_PART}{suffix}.index", f".{name}.index"), (_PART + suffix, name)):
            storage.rename(posixpath.join(folder, old), posixpath.join(folder, new))
    return done["rows"], done["bytes"]


def read_tfrecords(
    spark: Any, path: Any, schema: Any = None, *, binary_features: Sequence[str] = ()
) -> Any:
    """A DataFrame of the tf.Examples in TFRecord files: a partition for each file.

    path: a folder, a file or a glob, or a list of them. schema: columns with types, a StructType or DDL
    text; if it is absent, it is inferred from the first records: int64 is bigint, float is float, bytes
    string, or binary if the name is in binary_features or a value is not UTF-8; an array where a record
    has more than one value. A feature without values is null.
    """
    hadoop.complete(os.environ)
    files = reading.find_files(path)
    given = schema if schema is not None else reading.infer(files, binary_features)
    return reading.read(spark, files, reading.schema_of(given))
