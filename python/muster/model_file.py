"""Feature columns and a canned model's arguments as a model file (docs/spec.md) that `muster` reads.

JSON is YAML, so the file is written as JSON; what `muster` keeps in the model's folder is YAML.
"""

from __future__ import annotations

import itertools
import json
import pathlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from muster import columns as fc
from muster import places
from muster.batch_stream import StreamColumn
from muster.cells import FLOAT, INT, STRING
from muster.normalizer import Normalizer

_LONG_VOCABULARY = 1000  # words; a model file has at most 1 MiB


@dataclass
class InputUse:
    """How a model's columns use one feature."""

    types: Set[str] = field(default_factory=set)  # what categorical columns ask for
    numeric: bool = False
    raw: bool = False  # key of a cross
    default: Optional[float] = None
    size: int = 1  # values a row that a numeric column wants; 0: a sequence, or weights
    weighs: str = ""  # the feature whose values these are the weights of


@dataclass(frozen=True)
class SampleInput:
    """What a feature of the first batch looks like, or what is said about a column of files."""

    type: str
    list: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)  # further keys of its entry


def input_uses(columns: Sequence[fc.FeatureColumn]) -> Dict[str, InputUse]:
    """The features that the columns read, in the order they are first met."""
    uses: Dict[str, InputUse] = {}
    for column in walk(columns):
        if isinstance(column, fc.NumericColumn):
            use = uses.setdefault(column.key, InputUse())
            use.numeric = True
            use.size = max(use.size, column.size)
            if column.default_value is not None:
                use.default = column.default_value
        elif isinstance(column, fc.SequenceNumericColumn):
            use = uses.setdefault(column.key, InputUse())
            use.numeric, use.size = True, 0
        elif isinstance(column, fc.WeightedColumn):
            use = uses.setdefault(column.weight_feature_key, InputUse())
            use.numeric, use.size = True, 0
            use.weighs = _key_of(column)
        elif isinstance(column, (fc.VocabularyColumn, fc.IdentityColumn, fc.HashedColumn)):
            uses.setdefault(column.key, InputUse()).types.add(column.dtype)
        elif isinstance(column, fc.CrossedColumn):
            for key in column.leaves():
                if isinstance(key, str):
                    uses.setdefault(key, InputUse()).raw = True
    return uses


def walk(columns: Sequence[fc.FeatureColumn]) -> List[fc.FeatureColumn]:
    """The columns with all they are made from, each once, what is used before what uses it."""
    out: List[fc.FeatureColumn] = []

    def visit(column: fc.FeatureColumn) -> None:
        for parent in column.parents:
            visit(parent)
        if column not in out:
            out.append(column)

    for column in columns:
        visit(column)
    return out


def stream_columns(
    uses: Mapping[str, InputUse], sample: Mapping[str, SampleInput]
) -> List[StreamColumn]:
    """Type of each feature: what its columns ask for, else what the data is.

    Raises ValueError where two columns, or columns and data, do not agree.
    """
    out = []
    for name, use in uses.items():
        if name not in sample:
            raise ValueError(f"Feature {name} is not in features dictionary.")
        given = sample[name]
        if len(use.types) > 1:
            raise ValueError(f"feature '{name}': one column reads it as int, another as string")
        kind = next(iter(use.types), given.type if use.raw else FLOAT)
        truncated = use.raw and kind == FLOAT
        if truncated and use.numeric:
            raise ValueError(
                f"feature '{name}' is a key of a cross, which cuts its fractions off, and a numeric "
                "column too: give the cross a bucketized_column of it, or two features"
            )
        if truncated:
            kind = INT
        if use.numeric and kind == STRING:
            raise ValueError(f"feature '{name}' is a number to one column, a string to another")
        if (kind == STRING) != (given.type == STRING):
            raise ValueError(f"feature '{name}': its columns want {kind}, the data is {given.type}")
        if use.numeric and use.size == 1 and given.list:
            raise ValueError(
                f"feature '{name}' has several values a row: say numeric_column's shape=(N,)"
            )
        if use.size > 1 and not given.list:
            raise ValueError(f"feature '{name}' has one value a row, its column's shape is "
                             f"({use.size},)")  # fmt: skip
        out.append(StreamColumn(name, kind, given.list, use.weighs, truncated))
    return out


def _key_of(column: fc.WeightedColumn) -> str:
    inner = fc.base(column)
    if isinstance(inner, fc.BucketizedColumn):
        return inner.source_column.key
    return str(getattr(inner, "key", ""))


class ModelFile:
    """Builds the file's parts; `folder` takes long vocabularies."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._columns: Dict[str, Any] = {}
        self._names: Dict[fc.FeatureColumn, str] = {}
        self._inputs: Dict[str, Any] = {}

    def add_inputs(
        self,
        columns: Sequence[StreamColumn],
        uses: Mapping[str, InputUse],
        sample: Mapping[str, SampleInput],
    ) -> None:
        for column in columns:
            entry: Dict[str, Any] = {"type": column.type}
            use = uses.get(column.name, InputUse())
            if column.list:
                entry["list"] = True
            elif use.default is not None:
                entry["default"] = int(use.default) if column.type == INT else use.default
            elif column.type == INT and not use.numeric and use.types:
                entry["default"] = -1  # no id, as an absent feature has none
            if column.name in sample:
                entry.update(sample[column.name].extra)
            self._inputs[column.name] = entry

    def part(self, columns: Sequence[fc.FeatureColumn]) -> List[str]:
        """Adds the columns of the linear or the dnn part and returns their names."""
        return [self._add(column) for column in columns]

    def input_names(self) -> List[str]:
        return list(self._inputs)

    def _add(self, column: fc.FeatureColumn) -> str:
        if column not in self._names:
            entry = self._entry(column)
            self._names[column] = self._free_name(column.name)
            self._columns[self._names[column]] = entry
        return self._names[column]

    def _free_name(self, wanted: str) -> str:
        names = itertools.chain([wanted], (f"{wanted}_{i}" for i in itertools.count(2)))
        return next(name for name in names if name not in self._columns)

    def _entry(self, column: fc.FeatureColumn) -> Dict[str, Any]:
        if isinstance(column, fc.NumericColumn):
            return _numeric(column)
        if isinstance(column, fc.SequenceNumericColumn):
            return _sequence_numeric(column)
        if isinstance(column, fc.BucketizedColumn):
            return _bucketized(column)
        if isinstance(column, fc.VocabularyColumn):
            return self._vocabulary(column)
        if isinstance(column, fc.IdentityColumn):
            entry: Dict[str, Any] = {"identity": column.key, "buckets": column.num_buckets}
            if column.default_value is not None:
                entry["default"] = column.default_value
            return entry
        if isinstance(column, fc.HashedColumn):
            return {"hash": column.key, "buckets": column.hash_bucket_size}
        if isinstance(column, fc.CrossedColumn):
            return self._cross(column)
        if isinstance(column, fc.IndicatorColumn):
            return {"indicator": self._add(column.categorical_column)}
        if isinstance(column, fc.WeightedColumn):
            name = self._add(column.categorical_column)
            return {"weighted": name, "weights": column.weight_feature_key}
        assert isinstance(column, fc.EmbeddingColumn), column
        return self._embedding(column)

    def _embedding(self, column: fc.EmbeddingColumn) -> Dict[str, Any]:
        inner = column.categorical_column
        if isinstance(inner, fc.SequenceColumn):
            inner = inner.categorical_column
        entry: Dict[str, Any] = {"embedding": self._add(inner), "dimension": column.dimension}
        if column.pooling is None:
            entry["combiner"] = column.combiner
        else:
            entry["pooling"] = column.pooling
        if column.max_norm is not None:
            entry["max_norm"] = column.max_norm
        if column.shared is not None:
            entry["shared"] = column.shared
        return entry

    def _vocabulary(self, column: fc.VocabularyColumn) -> Dict[str, Any]:
        entry: Dict[str, Any] = {"vocabulary": column.key}
        words: Sequence[str] = column.words
        if column.file is not None:
            entry["file"] = str(pathlib.Path(places.local_path(column.file)).absolute())
            if column.size is not None:
                with open(places.local_path(column.file), encoding="utf-8", newline="\n") as file:
                    words = [line.rstrip("\r\n") for line in itertools.islice(file, column.size)]
                if len(words) < column.size:
                    raise ValueError(
                        f"vocabulary_file {column.file} has {len(words)} words, vocabulary_size "
                        f"of '{column.key}' is {column.size}"
                    )
        if words:
            entry.pop("file", None)
            if len(words) <= _LONG_VOCABULARY or any("\n" in word for word in words):
                entry["words"] = list(words)
            else:
                path = self._folder / f"vocabulary-{len(self._columns)}.txt"
                path.write_bytes("".join(f"{word}\n" for word in words).encode())
                entry["file"] = path.name  # beside the model file, which so says the same anywhere
        if column.num_oov_buckets:
            entry["oov_buckets"] = column.num_oov_buckets
        elif column.default_value >= 0:
            entry["default"] = column.default_value
        return entry

    def _cross(self, column: fc.CrossedColumn) -> Dict[str, Any]:
        keys = []
        for key in column.leaves():
            if isinstance(key, str):
                keys.append(key)
                continue
            name = self._add(key)
            if name in self._inputs:  # there, the name would mean the feature
                name = self._free_name(f"{name}_ids")
                self._columns[name] = self._entry(key)
            keys.append(name)
        entry: Dict[str, Any] = {"cross": keys, "buckets": column.hash_bucket_size}
        if column.hash_key is not None:
            entry["hash_key"] = column.hash_key
        return entry

    def text(self, label: Any, model: Mapping[str, Any], **parts: Any) -> str:
        """The whole file; `parts` are further keys of it."""
        content = {
            "inputs": self._inputs,
            "label": label,
            "columns": self._columns,
            "model": model,
            **{key: value for key, value in parts.items() if value is not None},
        }
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _numeric(column: fc.NumericColumn) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"numeric": column.key, **_scaled(column.normalizer)}
    if column.size > 1:
        entry["shape"] = column.size
    return entry


def _bucketized(column: fc.BucketizedColumn) -> Dict[str, Any]:
    source = column.source_column
    entry: Dict[str, Any] = {"bucketized": source.key, "boundaries": list(column.boundaries)}
    if source.size > 1:
        entry["shape"] = source.size
    return entry


def _sequence_numeric(column: fc.SequenceNumericColumn) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"sequence_numeric": column.key, "pooling": column.pooling}
    entry.update(_scaled(column.normalizer))
    if column.size > 1:
        entry["shape"] = column.size
    return entry


def _scaled(normalizer: Normalizer) -> Dict[str, Any]:
    entry: Dict[str, Any] = {}
    if normalizer.log1p_first:
        entry["log1p"] = True
    if normalizer.mean != 0:
        entry["mean"] = normalizer.mean
    if normalizer.stddev != 1:
        entry["stddev"] = normalizer.stddev
    return entry
