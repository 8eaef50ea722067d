"""What a model learns about the columns of X when it is fitted, and how rows are sent to the
program.

A feature has entries in the model file (docs/spec.md) and encodes its part of a Table as columns of
a batch stream. Numbers are standardised; a missing number counts as the mean, and if numbers were
missing in training, a further number marks missing ones. Times are numbers of seconds. Words
become a vocabulary or a hash column.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, Union

import numpy as np

from muster.batch_stream import StreamColumn
from muster.cells import FLOAT, INT, STRING
from muster.learn import tables
from muster.learn.tables import Table

MISSING = "(missing)"  # the word for a missing value
_NO_NUMBER = ["nan"]  # a missing number in a stream, and possibly in a file
_NO_TIME = [str(np.iinfo(np.int64).min)]  # NaT as numpy stores it
_BLOCK = "x"  # the name of a matrix's input
# in a network, a column with at most this many words becomes one number for each word
_INDICATORS = 32
_VOCABULARY = 1000  # a column with more words is hashed
_LARGEST_EMBEDDING = 32
_FAR = 1024  # numbers whose mean is so many deviations from 0 are shifted

Entries = Dict[str, Any]


@dataclass
class Parts:
    """Entries of the model file: inputs and columns by name, and the names that its parts read."""

    inputs: Entries
    columns: Entries
    linear: List[str]
    dnn: List[str]


@dataclass
class Matrix:
    """All features of an array of numbers as one input. It is standardised before it is sent."""

    mean: Any
    stddev: Any
    flagged: Any  # indices of the columns that had missing values

    @classmethod
    def fit(cls, matrix: Any) -> Matrix:
        mean, stddev = _moments(matrix)
        return cls(mean, stddev, np.flatnonzero(np.isnan(matrix).any(axis=0)))

    def stream_columns(self) -> List[StreamColumn]:
        return [StreamColumn(_BLOCK, FLOAT, True)]

    def parts(self) -> Parts:
        inputs = {_BLOCK: {"type": FLOAT, "list": True}}
        columns = {_BLOCK: {"numeric": _BLOCK, "shape": len(self.mean) + len(self.flagged)}}
        return Parts(inputs, columns, [_BLOCK], [_BLOCK])

    def encode(self, table: Table) -> Dict[str, Any]:
        matrix = table.matrix
        if matrix is None:
            names = table.column_names()
            pairs = zip(table.columns or [], names)
            matrix = np.column_stack([tables.as_numbers(column, name) for column, name in pairs])
        missing = np.isnan(matrix)
        scaled = (np.where(missing, self.mean, matrix) - self.mean) / self.stddev
        return {_BLOCK: _float32(np.hstack([scaled, missing[:, self.flagged]]))}


@dataclass
class Number:
    """A named column of numbers. The program standardises it and replaces missing values."""

    name: str
    mean: float
    stddev: float
    flagged: bool  # whether a further number marks missing values
    # subtracted in 64 bits before the numbers are sent in 32: 0, unless these would lose what makes them differ
    shift: float = 0.0

    @classmethod
    def fit(cls, name: str, values: Any) -> Number:
        mean, stddev = (float(moment) for moment in _moments(values))
        shift = mean if abs(mean) > _FAR * stddev else 0.0
        return cls(name, mean - shift, stddev, bool(np.isnan(values).any()), shift)

    def stream_columns(self) -> List[StreamColumn]:
        return [StreamColumn(self.name, FLOAT)]

    def parts(self) -> Parts:
        column: Entries = {"numeric": self.name, "mean": self.mean, "stddev": self.stddev}
        column["impute"] = self.mean
        if self.flagged:
            column["missing_flag"] = True
        return Parts({self.name: self._input()}, {self.name: column}, [self.name], [self.name])

    def encode(self, values: Any) -> Dict[str, Any]:
        return {self.name: _float32(self._numbers(values) - self.shift)}

    def _numbers(self, values: Any) -> Any:
        return tables.as_numbers(values, self.name)

    def _input(self) -> Entries:
        return {"type": FLOAT, "missing": _NO_NUMBER}


class Duration(Number):
    """A named column of durations, as numbers of days."""

    @classmethod
    def fit(cls, name: str, values: Any) -> Number:
        return super().fit(name, tables.as_days(values, name))

    def _numbers(self, values: Any) -> Any:
        return tables.as_days(values, self.name)


class Time(Number):
    """A named column of times as whole seconds since 1970. The program subtracts a whole mean
    before it computes in 32 bits, so that near times stay apart."""

    @classmethod
    def fit(cls, name: str, values: Any) -> Time:
        missing = np.isnat(values)
        mean, stddev = _moments(np.where(missing, np.nan, values.astype(np.int64)))
        return cls(name, round(float(mean)), float(stddev), bool(missing.any()))

    def stream_columns(self) -> List[StreamColumn]:
        return [StreamColumn(self.name, INT)]

    def encode(self, values: Any) -> Dict[str, Any]:
        return {self.name: tables.as_times(values, self.name).astype(np.int64)}

    def _input(self) -> Entries:
        return {"type": INT, "date": True, "missing": _NO_TIME}


@dataclass
class Words:
    """A named column of words: a vocabulary with the most frequent word first, or hashed."""

    name: str
    words: List[str]
    buckets: int  # 0: not hashed
    dense: str  # the name of the column that a network reads

    @classmethod
    def fit(cls, name: str, values: Any, dense: str) -> Words:
        counts = Counter(tables.as_words(values))
        if len(counts) > _VOCABULARY:
            return cls(name, [], 1 << math.ceil(math.log2(2 * len(counts))), dense)
        known = sorted(counts, key=lambda word: (-counts[word], word or b""))
        words = [MISSING if word is None else _text(word) for word in known]
        return cls(name, list(dict.fromkeys(words)), 0, dense)  # a word may be MISSING itself

    def stream_columns(self) -> List[StreamColumn]:
        return [StreamColumn(self.name, STRING)]

    def parts(self) -> Parts:
        inputs = {self.name: {"type": STRING, "default": MISSING}}
        size = self.buckets or len(self.words)
        column: Entries = {"hash": self.name, "buckets": self.buckets}
        if not self.buckets:
            column = {"vocabulary": self.name, "words": self.words}
        dense: Entries = {"indicator": self.name}
        if size > _INDICATORS:
            dimension = min(_LARGEST_EMBEDDING, round(1.6 * size**0.56))
            dense = {"embedding": self.name, "dimension": dimension}
        columns = {self.name: column, self.dense: dense}
        return Parts(inputs, columns, [self.name], [self.dense])

    def encode(self, values: Any) -> Dict[str, Any]:
        missing = MISSING.encode()
        words = [missing if word is None else word for word in tables.as_words(values)]
        return {self.name: np.array([*words, None], dtype=object)[:-1]}


Named = Union[Number, Words]
_KINDS: Dict[str, Type[Number]] = {"M": Time, "m": Duration}  # by numpy's kind of the values


@dataclass
class Features:
    """All features of X: a matrix, or one for each column in the order of X."""

    matrix: Optional[Matrix]
    named: List[Named]

    @classmethod
    def fit(cls, table: Table) -> Features:
        """Raises ValueError if there is nothing to learn from."""
        if table.matrix is not None:
            return cls(Matrix.fit(table.matrix), [])
        taken = set(table.column_names())
        named: List[Named] = []
        for name, values in zip(table.column_names(), table.columns or []):
            if values.dtype == object:
                named.append(Words.fit(name, values, free_name(f"{name} (dense)", taken)))
            else:
                named.append(_KINDS.get(values.dtype.kind, Number).fit(name, values))
        return cls(None, named)

    def stream_columns(self) -> List[StreamColumn]:
        return [column for feature in self._all() for column in feature.stream_columns()]

    def parts(self) -> Parts:
        out = Parts({}, {}, [], [])
        for feature in self._all():
            parts = feature.parts()
            out.inputs.update(parts.inputs)
            out.columns.update(parts.columns)
            out.linear += parts.linear
            out.dnn += parts.dnn
        return out

    def shifts(self) -> Dict[str, float]:
        """Returns Number.shift of the columns that have one."""
        return {each.name: each.shift for each in self.named if isinstance(each, Number) and each.shift}

    def encode(self, table: Table) -> Dict[str, Any]:
        """Returns the columns of a batch stream with all rows, as numpy arrays."""
        if self.matrix is not None:
            return self.matrix.encode(table)
        columns: Sequence[Any] = table.columns or []
        if table.matrix is not None:
            columns = list(table.matrix.T)
        out: Dict[str, Any] = {}
        for feature, values in zip(self.named, columns):
            out.update(feature.encode(values))
        return out

    def _all(self) -> List[Union[Matrix, Number, Words]]:
        return [self.matrix] if self.matrix is not None else list(self.named)


def free_name(wanted: str, taken: set[str]) -> str:
    """Returns `wanted`, with a number if it is taken, and marks it as taken."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def _moments(values: Any) -> Tuple[Any, Any]:
    """Returns mean and standard deviation of the numbers of each column; 0 and 1 if undefined."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0).sum(axis=0) / count
    variance = np.where(known, (np.where(known, values, 0) - mean) ** 2, 0).sum(axis=0) / count
    # The values of a column of equal numbers differ from its mean only by rounding.
    constant = variance <= (10 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    return mean, np.where(constant, 1.0, np.sqrt(variance))


def _float32(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float32)


def _text(word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise ValueError(f"X: the word {word!r} is not UTF-8") from None
