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
    """Returns the YAML unchanged, except that every input is in its long form."""
    spec = yaml.load(pathlib.Path(path).read_text(), Loader=yaml.BaseLoader)
    for name, value in spec["inputs"].items():
        if isinstance(value, str):
            spec["inputs"][name] = {"type": value}
    if isinstance(spec["label"], str):
        spec["label"] = {"input": spec["label"]}
    return spec


def head_of(spec: Spec) -> Spec:
    """Returns {kind, width: logits per row, loss: of a regression head}."""
    given = spec.get("head", "binary")
    kind, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
    if isinstance(options, str):
        options = {"loss" if kind == "regression" else "classes": options}
    words = len(spec["label"].get("words", []))
    width = {"binary": 1, "regression": int(options.get("label_dimension", 1))}.get(kind)
    return {
        "kind": kind,
        "width": int(options.get("classes", words)) if width is None else width,
        "loss": options.get("loss", "mean_squared"),
    }


def _label(spec: Spec, rows: list[dict[str, str]]) -> np.ndarray:
    """Returns [rows] floats, or [rows, n] for a head that learns several numbers."""
    label = spec["label"]
    field = spec["inputs"][label["input"]]
    words = label.get("words", [])
    cells = [row[label["input"]] for row in rows]
    if field.get("list") != "true":
        return np.array([words.index(c) if words else float(c) for c in cells], np.float32)
    lists = [c.split(field.get("separator", "|")) if c else [] for c in cells]
    if not words and label.get("ids") != "true":
        return np.array(lists, np.float32)
    out = np.zeros((len(rows), head_of(spec)["width"]), np.float32)
    for i, values in enumerate(lists):
        for value in values:
            out[i, words.index(value) if words else int(value)] = 1
    return out


def _cell(text: str, field: Spec) -> Any:
    if field.get("list") == "true":
        one = {**field, "list": "false"}
        parts = text.split(field.get("separator", "|")) if text else []
        return [_cell(part, one) for part in parts]
    missing = field.get("missing", [])
    if text == "" or text in missing:
        text = field.get("default", "" if field["type"] == "string" else None)
    if field["type"] == "string":
        return text.encode()
    if field["type"] == "float":
        return float(text)
    return int(float(text)) if field.get("truncate") == "true" else int(text)


def read_csv(spec: Spec, path: str | pathlib.Path) -> Table:
    """Returns the spec's inputs as arrays (of lists for list inputs), and the label as floats under
    the key ""."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table: Table = {"": _label(spec, rows)}
    for name, field in spec["inputs"].items():
        if name == spec["label"]["input"]:
            continue
        values = [_cell(row[name], field) for row in rows]
        if field.get("list") == "true":
            table[name] = np.empty(len(values), dtype=object)
            table[name][:] = values
        else:
            table[name] = np.array(values, dtype=_DTYPES[field["type"]])
    return table


def split_csv(path: str | pathlib.Path, train: pathlib.Path, test: pathlib.Path) -> None:
    """Splits as the reference results: data row i is a test row if i % 5 == 4."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    for out, keep in ((train, lambda i: i % 5 != 4), (test, lambda i: i % 5 == 4)):
        with open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(row for i, row in enumerate(rows) if keep(i))
