"""Reads a model file (docs/spec.md) and its CSV data for a TensorFlow twin of the model."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np
import yaml

Spec = dict[str, Any]
Table = dict[str, np.ndarray]

_DTYPES = {"int": np.int64, "float": np.float32, "string": object}


def load(path: str | pathlib.Path) -> Spec:
    """The YAML as it stands, with every input in its long form."""
    spec = yaml.load(pathlib.Path(path).read_text(), Loader=yaml.BaseLoader)
    for name, value in spec["inputs"].items():
        if isinstance(value, str):
            spec["inputs"][name] = {"type": value}
    if isinstance(spec["label"], str):
        spec["label"] = {"input": spec["label"]}
    return spec


def _cell(text: str, field: Spec) -> Any:
    missing = field.get("missing", [])
    if text == "" or text in missing:
        text = field.get("default", "" if field["type"] == "string" else None)
    if field["type"] == "string":
        return text.encode()
    if field["type"] == "float":
        return float(text)
    return int(float(text)) if field.get("truncate") == "true" else int(text)


def read_csv(spec: Spec, path: str | pathlib.Path) -> Table:
    """The spec's inputs as arrays; the label as floats under the key None."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table: Table = {}
    for name, field in spec["inputs"].items():
        values = [_cell(row[name], field) for row in rows]
        table[name] = np.array(values, dtype=_DTYPES[field["type"]])
    label = spec["label"]
    values = table[label["input"]]
    if "words" in label:
        words = [word.encode() for word in label["words"]]
        values = np.array([words.index(value) for value in values])
    table[""] = values.astype(np.float32)
    return table


def split_csv(path: str | pathlib.Path, train: pathlib.Path, test: pathlib.Path) -> None:
    """The split of the reference results: data row i is a test row if i % 5 == 4."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    for out, keep in ((train, lambda i: i % 5 != 4), (test, lambda i: i % 5 == 4)):
        with open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(row for i, row in enumerate(rows) if keep(i))
