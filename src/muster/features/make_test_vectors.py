#!/usr/bin/env python3
"""Writes testdata/ids.tsv: edge values and the ids that TensorFlow gives them.

Run with tensorflow 2.15 after a change to edge_columns.py:
    python src/muster/features/make_test_vectors.py

Lines of tab-separated words, read by ids_test.cc; '#' starts a comment:
    field NAME TYPE scalar|list
    column NAME KIND INPUT option=value...        lists of options are joined by '|'
    row VALUE...                                  one a field
    ids COLUMN IDS...                             one word a row: ids joined by ',', '-' for none
Bytes of strings other than letters, digits, '-', '_' and '.' are %XX; the empty string is '%'.
Lists are joined by '|', the empty list is '-'. Floats have 9 digits.
"""

from __future__ import annotations

import math
import pathlib
from typing import Any

import edge_columns
import tf_columns
import tensorflow as tf

PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."


def text(value: Any) -> str:
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        if value == b"-":
            return "%2D"
        return "".join(chr(b) if b in PLAIN else f"%{b:02X}" for b in value) or "%"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.9g}"
    if isinstance(value, (list, tuple)):
        return "|".join(text(each) for each in value) or "-"
    return str(value)


def option(key: str, value: Any) -> str:
    return f"{key}={text(value)}"


def main() -> None:
    rows = edge_columns.edge_rows()
    fields = {field.name: field for field in edge_columns.FIELDS}
    columns = {column.name: column for column in edge_columns.COLUMNS}
    tensors = tf_columns.to_tensors(edge_columns.FIELDS, rows)
    lines = [f"# Written by make_test_vectors.py with tensorflow {tf.__version__}."]
    for field in fields.values():
        shape = "list" if field.list else "scalar"
        lines.append("\t".join(["field", field.name, field.type, shape]))
    for column in columns.values():
        options = [option(key, value) for key, value in column.options.items()]
        lines.append("\t".join(["column", column.name, column.kind, column.input or "-", *options]))
    for row in rows:
        lines.append("\t".join(["row", *(text(row[name]) for name in fields)]))
    for column in columns.values():
        made = tf_columns.tf_column(column, columns, fields)
        ids = tf_columns.tf_ids(made, tensors, len(rows))
        words = [",".join(map(str, each)) or "-" for each in ids]
        lines.append("\t".join(["ids", column.name, *words]))
    path = pathlib.Path(__file__).parent / "testdata" / "ids.tsv"
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(rows)} rows, {len(columns)} columns, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
