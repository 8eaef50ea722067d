"""DataFrames as TFRecord files of tf.Examples, by muster.spark: there is no jar and no TensorFlow in it."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any, Callable, Iterator, List, Sequence, Tuple

from muster.spark import reading
from muster.spark.tfrecords import read_tfrecords, write_tfrecords
from muster.tfos import TFNode
from muster.tfos.TFCluster import default_fs

loadedDF: Any = weakref.WeakKeyDictionary()  # where DataFrames of loadTFRecords() come from

_FLOATS = ("float", "double")
_INTS = ("boolean", "tinyint", "smallint", "int", "bigint", "long")


def isLoadedDF(df: Any) -> bool:
    """Whether this very DataFrame is one of loadTFRecords()."""
    return df in loadedDF


def saveAsTFRecords(df: Any, output_dir: str) -> None:
    """Writes a file part-r-P for each partition P into a folder that must not exist.

    Other than in TensorFlowOnSpark the folder appears when all is written, and a null is a feature without
    values. Raises ValueError for a type that no feature holds.
    """
    # Programs find the files by this name, which Hadoop gives them.
    write_tfrecords(df, _path(df.sparkSession.sparkContext, output_dir), names="part-r-{:05d}")


def loadTFRecords(sc: Any, input_dir: str, binary_features: Sequence[str] = ()) -> Any:
    """A DataFrame whose columns are the features of the first records, in the order of their names.

    int64 is bigint, float is double, bytes are string, or binary where binary_features names the feature
    or a value is not UTF-8; an array where a record has several values.
    """
    from pyspark.sql import SparkSession

    files = reading.find_files(_path(sc, input_dir))
    schema = _with_doubles(reading.infer(files, binary_features))
    df = read_tfrecords(SparkSession.builder.getOrCreate(), files, schema)
    loadedDF[df] = input_dir
    return df


def _path(sc: Any, path: str) -> str:
    """As Hadoop reads it: without a scheme it is in fs.defaultFS."""
    root = default_fs(sc)
    if root.startswith("file:"):
        return path
    return TFNode.hdfs_path(SimpleNamespace(defaultFS=root), path)


def _with_doubles(schema: Any) -> Any:
    from pyspark.sql import types

    def of(given: Any) -> Any:
        if isinstance(given, types.ArrayType):
            return types.ArrayType(of(given.elementType))
        return types.DoubleType() if isinstance(given, types.FloatType) else given

    return types.StructType([types.StructField(f.name, of(f.dataType)) for f in schema.fields])


def infer_schema(example: Any, binary_features: Sequence[str] = ()) -> Any:
    """The schema that a tf.train.Example gives a DataFrame."""
    from pyspark.sql import types

    def of(name: str, feature: Any) -> Any:
        if name in binary_features:
            return types.BinaryType()
        kind, values = _values(feature)
        made = {"int64_list": types.LongType(), "float_list": types.DoubleType()}
        element = made.get(kind, types.StringType())
        return types.ArrayType(element) if len(values) > 1 else element

    features = sorted(example.features.feature.items())
    return types.StructType([types.StructField(name, of(name, one)) for name, one in features])


def toTFExample(dtypes: Sequence[Tuple[str, str]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For RDD.mapPartitions: rows become (bytes of a tf.train.Example, None). dtypes: DataFrame.dtypes.

    Needs TensorFlow on executors. Raises ValueError for a type that no feature holds.
    """
    makers = [(name, _maker(name, dtype)) for name, dtype in dtypes]

    def convert(rows: Iterator[Any]) -> Iterator[Any]:
        from tensorflow import train

        for row in rows:
            features = {name: train.Feature(**make(train, row[name])) for name, make in makers}
            example = train.Example(features=train.Features(feature=features))
            yield bytearray(example.SerializeToString()), None

    return convert


def _maker(name: str, dtype: str) -> Callable[[Any, Any], Any]:
    """What turns a value of a column into the arguments of tf.train.Feature."""
    is_array = dtype.startswith("array<")
    element = dtype[len("array<") : -1] if is_array else dtype

    def listed(value: Any) -> List[Any]:
        values = value if is_array else [value]
        return [] if values is None else [one for one in values if one is not None]

    if element in _FLOATS:
        return lambda train, value: {"float_list": train.FloatList(value=listed(value))}
    if element in _INTS:
        return lambda train, value: {"int64_list": train.Int64List(value=listed(value))}
    if element == "binary":
        return lambda train, value: {"bytes_list": train.BytesList(value=map(bytes, listed(value)))}
    if element == "string":
        return lambda train, value: {
            "bytes_list": train.BytesList(value=[one.encode() for one in listed(value)])
        }
    raise ValueError(f"column '{name}' is {dtype}, which no feature holds")


def fromTFExample(records: Iterator[Any], binary_features: Sequence[str] = ()) -> Iterator[Any]:
    """For RDD.mapPartitions: (bytes of a tf.train.Example, anything) become Rows. Needs TensorFlow."""
    from pyspark.sql import Row
    from tensorflow import train

    for record in records:
        example = train.Example.FromString(bytes(record[0]))
        features = sorted(example.features.feature.items())
        yield Row(**{name: _value(name, one, binary_features) for name, one in features})


def _value(name: str, feature: Any, binary_features: Sequence[str]) -> Any:
    kind, values = _values(feature)
    if kind == "bytes_list":
        is_binary = name in binary_features
        values = [bytearray(one) if is_binary else one.decode("utf-8") for one in values]
    if len(values) > 1:
        return values
    return values[0] if values else None


def _values(feature: Any) -> Tuple[str, List[Any]]:
    kind = feature.WhichOneof("kind") or "bytes_list"
    return kind, list(getattr(feature, kind).value)
