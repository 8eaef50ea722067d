"""The model file of a large click model, for measurements of speed and precision."""

from __future__ import annotations

TABLE_ROWS = 1000
DIMENSION = 32
HIDDEN = (1024, 512, 256)
LEARNING_RATE = 0.02
MEAN, DEVIATION = 3.5, 1.2  # of the numbers' logarithms


def deep_spec(hidden: tuple[int, ...] = HIDDEN, batch_size: int = 512, precision: str = "fp32") -> str:
    """Returns a model of 13 numbers and 26 embeddings of `muster sample clicks`, with wide layers.
    """
    numbers, words = range(1, 14), range(1, 27)
    lines = ["inputs:", "  label: int"]
    lines += [f"  I{i}: {{type: float, default: 0}}" for i in numbers]
    lines += [f"  C{i}: {{type: string, default: none}}" for i in words]
    lines += ["label: label", "columns:"]
    lines += [
        f"  n{i}: {{numeric: I{i}, log1p: true, mean: {MEAN}, stddev: {DEVIATION}}}" for i in numbers
    ]
    lines += [f"  c{i}: {{hash: C{i}, buckets: {TABLE_ROWS}}}" for i in words]
    lines += [f"  e{i}: {{embedding: c{i}, dimension: {DIMENSION}}}" for i in words]
    columns = [f"n{i}" for i in numbers] + [f"e{i}" for i in words]
    lines += [
        "model:", "  type: dnn", "  dnn:", f"    columns: [{', '.join(columns)}]",
        f"    hidden_units: {list(hidden)}",
        f"    optimizer: {{adagrad: {{learning_rate: {LEARNING_RATE}}}}}",
        f"train: {{batch_size: {batch_size}, precision: {precision}}}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
