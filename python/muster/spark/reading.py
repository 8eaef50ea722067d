"""TFRecord files as DataFrames: which files, with which columns, and their rows as Arrow."""

from __future__ import annotations

import glob
import json
import os
import posixpath
import subprocess
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set

from pyspark.sql import types as spark_types

from muster import binary, places, storage
from muster.spark import columns, hadoop

_SAMPLE = 1000  # records from which a schema is inferred
_TYPES = {"int64": "int", "float": "float", "bytes": "string"}
_SPARK_TYPES = {
    "int": spark_types.LongType(),
    "float": spark_types.FloatType(),
    "string": spark_types.StringType(),
}


def find_files(path: Any) -> List[str]:
    """The files of a folder, a file, a glob or a list of them. Raises ValueError if there is none."""
    if isinstance(path, (list, tuple)):
        return [file for one in path for file in find_files(one)]
    text = places.any_path(path)
    inside = storage.names(text)
    if inside is not None:
        found = [posixpath.join(text, name) for name in inside]
    elif places.is_remote(text):
        found = _remote_files(text)
    else:
        found = sorted(glob.glob(text))
    found = [file for file in found if posixpath.basename(file)[:1] not in ("", ".", "_")]
    if not found:
        raise ValueError(f"{text}: no file is there")
    return found if places.is_remote(text) else [os.path.abspath(file) for file in found]


def _remote_files(pattern: str) -> List[str]:
    lines = _output("fs", "ls", "--json", pattern).splitlines()
    return [json.loads(line)["path"] for line in lines]


def schema_of(given: Any) -> Any:
    """A StructType from one, or from DDL text ("age int, job string")."""
    if isinstance(given, spark_types.StructType):
        return given
    parse = getattr(spark_types.DataType, "fromDDL", None)  # Spark 3.5 and later have it
    found = parse(given) if parse is not None else spark_types._parse_datatype_string(given)
    if not isinstance(found, spark_types.StructType):
        raise ValueError(f"schema '{given}': columns with types are wanted: age int, job string")
    return found


def infer(files: Sequence[str], binary_features: Sequence[str]) -> Any:
    """The schema of the first records of these files."""
    kinds: Dict[str, str] = {}
    lists: Set[str] = set()
    left = _SAMPLE
    for file in files:
        if left <= 0:
            break
        for line in _output("records", "inspect", file, "--limit", left, "--json").splitlines():
            features = json.loads(line).get("features", {})
            left -= 1
            for name, feature in features.items():
                _add(name, feature, file, kinds, lists)
    if not kinds:
        raise ValueError(f"{files[0]}: there is no feature with values to infer a schema from")
    strings = [name for name, kind in kinds.items() if kind == "string"]
    raw = set(binary_features) | _not_utf8(files, strings)
    fields = []
    for name in sorted(kinds):
        kind = spark_types.BinaryType() if name in raw else _SPARK_TYPES[kinds[name]]
        fields.append(
            spark_types.StructField(name, spark_types.ArrayType(kind) if name in lists else kind)
        )
    return spark_types.StructType(fields)


def _add(name: str, feature: Any, file: str, kinds: Dict[str, str], lists: Set[str]) -> None:
    if len(feature["values"]) > 1:
        lists.add(name)
    kind = _TYPES.get(feature["kind"])
    if kind is None:
        return
    if kinds.setdefault(name, kind) != kind:
        raise ValueError(
            f"{file}: feature '{name}' is {kind} in one record and {kinds[name]} in another: give a schema"
        )


def _not_utf8(files: Sequence[str], names: Sequence[str]) -> Set[str]:
    if not names:
        return set()
    found: Set[str] = set()
    for batch in _batches(files[:1], {name: "string" for name in names}, limit=_SAMPLE):
        for name, (values, _) in batch.items():
            try:
                values.cast("string")
            except ValueError:  # pyarrow.ArrowInvalid
                found.add(name)
    return found


def read(spark: Any, files: Sequence[str], schema: Any) -> Any:
    """A DataFrame with a partition for each file."""
    features = {column["name"]: column["type"] for column in columns.of_schema(schema)}
    wanted = [(field.name, arrow_type(field.dataType)) for field in schema.fields]
    numbers = spark.range(0, len(files), 1, len(files))
    return numbers.mapInArrow(_reader(list(files), features, wanted), schema)


def arrow_type(given: Any) -> Any:
    """Arrow's type of a Spark type that a feature can be read as."""
    import pyarrow

    if isinstance(given, spark_types.ArrayType):
        return pyarrow.list_(arrow_type(given.elementType))
    if isinstance(given, spark_types.DecimalType):
        return pyarrow.decimal128(given.precision, given.scale)
    made = {
        spark_types.BooleanType: pyarrow.bool_(),
        spark_types.ByteType: pyarrow.int8(),
        spark_types.ShortType: pyarrow.int16(),
        spark_types.IntegerType: pyarrow.int32(),
        spark_types.LongType: pyarrow.int64(),
        spark_types.FloatType: pyarrow.float32(),
        spark_types.DoubleType: pyarrow.float64(),
        spark_types.StringType: pyarrow.string(),
        spark_types.BinaryType: pyarrow.binary(),
        spark_types.DateType: pyarrow.date32(),
        spark_types.TimestampType: pyarrow.timestamp("us", tz="UTC"),
        spark_types.TimestampNTZType: pyarrow.timestamp("us"),
    }
    return next(arrow for kind, arrow in made.items() if isinstance(given, kind))


def _reader(
    files: List[str], features: Dict[str, str], schema: Sequence[Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def read_files(numbers: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        wanted = pyarrow.schema(schema)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                found = _batches([files[number]], features)
                next(found)
                for one in found:
                    arrays = [_array(one[f.name], f, files[number]) for f in wanted]
                    yield pyarrow.RecordBatch.from_arrays(arrays, schema=wanted)

    return read_files


def _array(column: Any, field: Any, file: str) -> Any:
    """A column of a batch in the type of the schema's field."""
    import pyarrow
    from pyarrow import compute, types

    from muster.arrow_stream import offsets_of

    values, lengths = column
    listed = types.is_list(field.type)
    element = field.type.value_type if listed else field.type
    try:
        if types.is_boolean(element):
            values = compute.not_equal(values, pyarrow.scalar(0, pyarrow.int64()))
        elif types.is_timestamp(element) or types.is_date(element):
            values = values.cast(pyarrow.timestamp("s")).cast(element)
        else:
            values = values.cast(element)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{file}: feature '{field.name}': {error}") from None
    if listed:
        return pyarrow.ListArray.from_arrays(offsets_of(lengths), values).cast(field.type)
    present = compute.equal(lengths, pyarrow.scalar(1, pyarrow.int32()))
    if compute.max(lengths).as_py() > 1:
        raise ValueError(
            f"{file}: feature '{field.name}' has {compute.max(lengths).as_py()} values in a record, "
            f"but the schema says one: make it an array in the schema"
        )
    if len(values) == len(lengths):
        return values
    # A row's place among the values, which rows without a value do not have.
    places_of_rows = offsets_of(lengths).slice(0, len(lengths))
    return values.take(compute.if_else(present, places_of_rows, pyarrow.scalar(None, pyarrow.int32())))


def _batches(files: Sequence[str], features: Dict[str, str], limit: int = 0) -> Iterator[Any]:
    """The batches of muster.arrow_stream.read_stream of these files. Raises MusterError."""
    from muster.arrow_stream import Unfit, read_stream

    hadoop.complete(os.environ)
    command = ["records", "cat", *files, "--data-format", "tfrecord", "--batches", json.dumps(features)]
    command += ["--limit", str(limit)] if limit else []
    with subprocess.Popen(
        [binary.find(), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            yield from read_stream(process.stdout.read)
        except Unfit:
            said = process.stderr.read().decode(errors="replace").strip()
            raise binary.MusterError(said or f"muster records cat {files} gave no rows") from None
        finally:
            process.kill()


def _output(*words: Any) -> str:
    done = subprocess.run([binary.find(), *map(str, words)], capture_output=True, check=False)
    if done.returncode != 0:
        raise binary.MusterError(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")
