"""write(): writes rows in memory as TFRecord files that fit the manifest of an exported model."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from muster.keras import manifest as manifest_lib

_INTS = ("int", "uint", "bool")
_PIXELS = 255
_BINARY = ("binary_crossentropy", "BinaryCrossentropy")

Columns = Dict[str, Any]  # by record field: a value for each row


@dataclass(frozen=True)
class _Column:
    """What the manifest says about one record field. `below`: ids must be below this; 0: no limit.
    """

    name: str
    what: str
    feature: str
    dtype: str
    shape: Tuple[Optional[int], ...]
    decode: Optional[str]
    below: int = 0

    def type(self) -> str:
        lengths = ", ".join("any" if length is None else str(length) for length in self.shape)
        return f"{self.dtype} of shape ({lengths})" + (f" as {self.decode}" if self.decode else "")

    def wrong(self, row: int, given: str) -> ValueError:
        return ValueError(
            f"column '{self.feature}' (the model's {self.what} '{self.name}') wants {self.type()}; "
            f"row {row} has {given}"
        )


class Writer:
    """Writes batches of rows for one export. Rows go to the files in turn."""

    def __init__(
        self, export: str, class_weight: Optional[Mapping[Any, float]], for_training: bool
    ) -> None:
        manifest = manifest_lib.read(export)
        self._inputs = _columns(manifest, "inputs", "input")
        self._labels = _columns(manifest, "labels", "label") if for_training else []
        weight, key = manifest.get("sample_weight"), manifest.get("key")
        self._weight = _column(weight, "sample weight") if weight and for_training else None
        self._key = _column({"decode": None, **key}, "key") if key else None
        self._binary = manifest["loss"]["name"] in _BINARY and len(self._labels) == 1
        self._class_weight = class_weight
        if class_weight is not None:
            self._check_class_weight()

    def write(self, data: Any, paths: Sequence[str]) -> int:
        """Returns the number of rows. The files appear when all rows are written."""
        count = 0
        partial = [f"{path}.partial" for path in paths]
        try:
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in partial]
                for columns in self._batches(data):
                    for example in self._examples(columns, count):
                        files[count % len(files)].write(example)
                        count += 1
            if count == 0:
                raise ValueError("the data has no rows")
            for name, path in zip(partial, paths):
                os.replace(name, path)
        finally:
            for name in partial:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)
        return count

    def _all(self) -> List[_Column]:
        optional = [column for column in (self._weight, self._key) if column is not None]
        return [*self._inputs, *self._labels, *optional]

    def _batches(self, data: Any) -> Iterator[Columns]:
        if not hasattr(data, "element_spec"):
            yield self._named(data, batched=True)
            return
        batched = self._is_batched(data.element_spec)
        for element in data.as_numpy_iterator():
            yield self._named(element, batched)

    def _is_batched(self, spec: Any) -> bool:
        """Whether elements of a tf.data.Dataset are batches, by the rank of one of their tensors."""
        named = self._named(spec, batched=True)
        for column in self._inputs:
            rank = named[column.feature].shape.rank
            if rank is not None and not column.decode:
                return bool(rank == len(column.shape) + 1)
        for column in self._inputs:
            rank = named[column.feature].shape.rank
            if rank is not None:
                return rank in (1, len(column.shape) + 1)
        raise ValueError(
            "the rank of the dataset's tensors is not known, and so not whether they are batches: "
            "use tensors with a shape"
        )

    def _named(self, data: Any, batched: bool) -> Columns:
        """Returns what is given for each record field; a single row becomes a batch of one."""
        if isinstance(data, tuple):
            named = self._of_tuple(data)
        elif hasattr(data, "iloc") and hasattr(data, "columns"):
            named = {str(name): data[name].to_numpy() for name in data.columns}
        elif isinstance(data, Mapping):
            named = dict(data)
        else:
            raise ValueError(
                "data: a dict of columns, a DataFrame, a tuple (inputs, labels) or (inputs, labels, "
                f"sample_weight), or a tf.data.Dataset of such is wanted, not {type(data).__name__}"
            )
        out: Columns = {}
        for column in self._all():
            found = [name for name in (column.feature, column.name) if name in named]
            if found:
                out[column.feature] = named[found[0]] if batched else [named[found[0]]]
            elif column is self._weight or (column is self._key and self._key_is_optional()):
                continue
            else:
                raise ValueError(
                    f"column '{column.feature}' is missing: it is the model's {column.what} "
                    f"'{column.name}', {column.type()}; given are {sorted(map(str, named))}"
                )
        return out

    def _key_is_optional(self) -> bool:
        return self._key is not None and all(
            column is self._key or column.feature != self._key.feature for column in self._all()
        )

    def _of_tuple(self, data: Tuple[Any, ...]) -> Columns:
        if not 1 <= len(data) <= 3:
            raise ValueError(f"data: a tuple of {len(data)}; (inputs, labels, sample_weight) is wanted")
        named = _by_column(data[0], self._inputs, "inputs")
        if len(data) > 1 and self._labels:
            named.update(_by_column(data[1], self._labels, "labels"))
        if len(data) > 2 and data[2] is not None and self._labels:
            if self._weight is None:
                raise ValueError(
                    "data has a sample_weight, which the model was exported without: "
                    "muster.keras.export(..., sample_weight='weight')"
                )
            named[self._weight.feature] = data[2]
        return named

    def _examples(self, columns: Columns, first: int) -> Iterator[bytes]:
        values = {feature: _rows(given) for feature, given in columns.items()}
        counts = {feature: len(given) for feature, given in values.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"columns have different numbers of rows: {counts}")
        for i in range(next(iter(counts.values()))):
            record: Dict[str, Any] = {}
            labels: Dict[str, Any] = {}
            for column in self._all():
                if column.feature not in values:
                    continue
                value = _value(column, values[column.feature][i], first + i)
                record.setdefault(column.feature, _feature(column, value))
                if column in self._labels:
                    labels[column.name] = value
                    self._check_label(column, value, first + i)
            if self._weight is not None:
                self._weigh(record, values, labels, i, first + i)
            features = tf.train.Features(feature=record)
            yield tf.train.Example(features=features).SerializeToString()

    def _check_label(self, column: _Column, value: Any, row: int) -> None:
        """Warns once about labels for which binary_crossentropy is not defined."""
        if not self._binary or isinstance(value, bytes) or value.dtype.kind not in "biuf":
            return
        outside = (value < 0) | (value > 1)
        if not outside.any():
            return
        self._binary = False
        warnings.warn(
            f"column '{column.feature}' (the model's label '{column.name}'): row {row} has "
            f"{value[outside].reshape(-1)[0]}, and the loss binary_crossentropy is for labels from 0 to "
            "1: write 0 and 1, or export with sparse_categorical_crossentropy for more classes",
            stacklevel=5,
        )

    def _weigh(
        self,
        record: Dict[str, Any],
        values: Mapping[str, Any],
        labels: Mapping[str, Any],
        i: int,
        row: int,
    ) -> None:
        """Adds the weight of row `i` of the batch if it is not given, and multiplies it by its
        class's."""
        weight = self._weight
        assert weight is not None
        if weight.feature in values:
            if self._class_weight is None:
                return
            value = _value(weight, values[weight.feature][i], row)
        else:
            lengths = [length for length in weight.shape if length is not None]
            if len(lengths) < len(weight.shape):
                raise ValueError(f"column '{weight.feature}' is missing: the weights of each row")
            value = np.ones(lengths, np.float32)
        if self._class_weight is not None:
            label = np.asarray(next(iter(labels.values())))
            number = int(label.argmax()) if label.size > 1 else label.reshape(-1)[0]
            value = value * np.float32(self._class_weight.get(number, 1.0))
        record[weight.feature] = _feature(weight, value)

    def _check_class_weight(self) -> None:
        if self._weight is None:
            raise ValueError(
                "class_weight: the model was exported without a column for the weight of a row: "
                "muster.keras.export(..., sample_weight='weight')"
            )
        if len(self._labels) != 1 or self._labels[0].dtype == "string":
            raise ValueError("class_weight: the model has one label of numbers, or none can be weighed")


def paths_of(out: str, shards: int) -> List[str]:
    """Returns OUT itself, or OUT-00000-of-0000N, which `muster train --train 'OUT*'` reads."""
    if shards < 1:
        raise ValueError(f"shards={shards}: at least 1 is wanted")
    if shards == 1:
        return [out]
    return [f"{out}-{i:05d}-of-{shards:05d}" for i in range(shards)]


def _columns(manifest: Mapping[str, Any], key: str, what: str) -> List[_Column]:
    return [_column(entry, what, _below(manifest, what, entry["name"])) for entry in manifest[key]]


def _column(entry: Mapping[str, Any], what: str, below: int = 0) -> _Column:
    shape = tuple(entry["shape"])
    return _Column(
        entry["name"], what, entry["feature"], entry["dtype"], shape, entry["decode"], below
    )


def _below(manifest: Mapping[str, Any], what: str, name: str) -> int:
    """Returns how many rows the tables have that are looked up by this input or label; 0 if none.
    """
    tables = [one["table"] for one in manifest["lookups"] if one["source"].get(what) == name]
    return min((int(manifest["variables"][table]["shape"][0]) for table in tables), default=0)


def _by_column(given: Any, columns: Sequence[_Column], what: str) -> Columns:
    """Returns inputs or labels, which may be given as Keras takes them: by name, in a list, or the
    only one."""
    if isinstance(given, Mapping):
        return dict(given)
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        return {str(name): given[name].to_numpy() for name in given.columns}
    parts = list(given) if isinstance(given, (list, tuple)) and len(columns) != 1 else [given]
    if len(parts) != len(columns):
        names = [column.name for column in columns]
        raise ValueError(f"data: {len(parts)} {what} are given, the model has {len(columns)}: {names}")
    return {column.feature: part for column, part in zip(columns, parts)}


def _rows(given: Any) -> Any:
    """Returns a value for each row of an array, a list, a pandas column, or a tensor (also ragged).
    """
    if hasattr(given, "to_list") and hasattr(given, "row_splits"):
        return given.to_list()
    if hasattr(given, "to_numpy"):
        return given.to_numpy()
    if hasattr(given, "numpy") and callable(given.numpy):
        return given.numpy()
    return given


def _value(column: _Column, given: Any, row: int) -> Any:
    """Returns one row's value as an array of the column's dtype, or bytes that are encoded already.
    """
    if column.decode and isinstance(given, bytes):
        if column.decode == "raw":
            size = math.prod(length or 1 for length in column.shape)
            size *= tf.as_dtype(column.dtype).size
            if len(given) != size:
                raise column.wrong(row, f"{len(given)} bytes, not {size}")
        return given
    if given is None:
        raise column.wrong(row, "no value")
    try:
        array = np.asarray(given)
    except ValueError:
        raise column.wrong(row, "lists of different lengths") from None
    if array.ndim == len(column.shape) + 1 and array.shape[-1] == 1 and column.shape[-1:] != (1,):
        array = array[..., 0]  # [rows, 1] means one number per row
    if array.ndim == 0 and column.shape == (1,):
        array = array.reshape(1)
    fits = array.ndim == len(column.shape) and all(
        want is None or want == have for want, have in zip(column.shape, array.shape)
    )
    if not fits:
        raise column.wrong(row, f"shape {array.shape}")
    return _words(column, array, row) if column.dtype == "string" else _numbers(column, array, row)


def _words(column: _Column, array: Any, row: int) -> Any:
    for word in array.reshape(-1).tolist():
        if not isinstance(word, (str, bytes)):
            raise column.wrong(row, f"{word!r}")
    return array


def _numbers(column: _Column, array: Any, row: int) -> Any:
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise column.wrong(row, f"{array.reshape(-1).tolist()[:3]}") from None
    if array.dtype.kind not in "biuf":
        raise column.wrong(row, f"{array.reshape(-1).tolist()[:3]}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise column.wrong(row, "nan: fill what is missing")
    if column.dtype.startswith(_INTS):
        if array.dtype.kind == "f" and (array != np.floor(array)).any():
            raise column.wrong(row, f"the fraction {array[array != np.floor(array)][0]}")
        kind = tf.as_dtype(column.dtype)
        low, high = (0, 1) if column.dtype == "bool" else (int(kind.min), int(kind.max))
        if column.below:
            low, high = 0, min(high, column.below - 1)
        outside = (array < low) | (array > high)
        if outside.any():
            why = f", the ids of a table of {column.below} rows" if column.below else ""
            number = array[outside].reshape(-1)[0]
            raise column.wrong(row, f"{number}, which is not in [{low}, {high}]{why}")
    return array.astype(tf.as_dtype(column.dtype).as_numpy_dtype)


def _feature(column: _Column, value: Any) -> Any:
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if column.decode:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[_encoded(column, value)]))
    flat = value.reshape(-1)
    if column.dtype == "string":
        words = [word if isinstance(word, bytes) else word.encode() for word in flat.tolist()]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=words))
    if column.dtype.startswith(_INTS):
        whole = flat.astype(np.uint64).view(np.int64) if column.dtype == "uint64" else flat
        return tf.train.Feature(int64_list=tf.train.Int64List(value=whole.astype(np.int64).tolist()))
    return tf.train.Feature(float_list=tf.train.FloatList(value=flat.astype(np.float32).tolist()))


def _encoded(column: _Column, value: Any) -> bytes:
    if column.decode == "raw":
        return bytes(value.astype(value.dtype.newbyteorder("<")).tobytes())
    if column.dtype == "float32":  # images are read as numbers from 0 to 1
        value = np.clip(np.rint(value * _PIXELS), 0, _PIXELS).astype(np.uint8)
    encode = tf.io.encode_png if column.decode == "png" else tf.io.encode_jpeg
    return bytes(encode(value).numpy())
