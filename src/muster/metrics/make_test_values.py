"""Writes testdata/binary.txt: rows and what TensorFlow's metrics say of them.

Run with tensorflow-cpu 2.15: python make_test_values.py [FILE]. The AUC without thresholds is
counted over all pairs. Lines: `case NAME`, `row PROBABILITY LABEL WEIGHT`, `value NAME NUMBER`.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Name -> probabilities, labels, weights."""
    rng = np.random.default_rng(7)
    n = 150
    labels = (rng.random(n) < 0.3).astype(np.float32)
    spread = np.float32(1) / (1 + np.exp(-(2 * labels - 1 + rng.normal(0, 1.5, n)).astype(np.float32)))
    ones = np.ones(n, np.float32)
    on_thresholds = (rng.integers(0, 200, n) / 199).astype(np.float32)
    return {
        "plain": (spread, labels, ones),
        "weighted": (spread, labels, rng.choice([0, 0.25, 1, 3], n).astype(np.float32)),
        "ties": (np.round(spread, 1).astype(np.float32), labels, ones),
        "on_thresholds": (on_thresholds, labels, ones),
        "extremes": (rng.choice([0, 1e-9, 0.5, 1 - 1e-7, 1], n).astype(np.float32), labels, ones),
        "two_rows": (np.float32([0.4, 0.6]), np.float32([1, 0]), np.float32([1, 1])),
    }


def exact_auc(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    p, w = p.astype(np.float64), w.astype(np.float64)
    above = (p[:, None] > p[None, :]) + 0.5 * (p[:, None] == p[None, :])
    pairs = w[:, None] * w[None, :] * (y[:, None] > y[None, :])
    return float((above * pairs).sum() / pairs.sum())


def values(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> dict[str, float]:
    keras = {
        "accuracy": tf.keras.metrics.BinaryAccuracy(),
        "auc_interpolated": tf.keras.metrics.AUC(num_thresholds=200),
        "auc_precision_recall": tf.keras.metrics.AUC(num_thresholds=200, curve="PR"),
        "precision": tf.keras.metrics.Precision(),
        "recall": tf.keras.metrics.Recall(),
    }
    found = {}
    for name, metric in keras.items():
        metric.update_state(y[:, None], p[:, None], sample_weight=w)
        found[name] = float(metric.result())
    found["auc"] = exact_auc(p, y, w)
    found["label/mean"] = float(np.average(y.astype(np.float64), weights=w))
    found["prediction/mean"] = float(np.average(p.astype(np.float64), weights=w))
    found["accuracy_baseline"] = max(found["label/mean"], 1 - found["label/mean"])
    return found


def text() -> str:
    lines = []
    for name, (p, y, w) in cases().items():
        lines.append(f"case {name}")
        lines += [f"row {a!s} {b:g} {c:g}" for a, b, c in zip(p, y, w)]
        lines += [f"value {key} {value:.9g}" for key, value in sorted(values(p, y, w).items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    committed = pathlib.Path(__file__).parent / "testdata" / "binary.txt"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else committed).write_text(text())
