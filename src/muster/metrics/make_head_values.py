"""Writes testdata/heads.txt: batches of each head and what tf.estimator's head says of them.

Run with tensorflow-cpu 2.15: python make_head_values.py [FILE]. Values of metrics that no head of
tf.estimator has come from tf.keras.metrics over the same predictions; the exact areas are counted
over all pairs. Lines: `case NAME`; `batch` before each batch; `row WEIGHT | LOGITS | LABELS`;
`value NAME NUMBER`.
"""

import pathlib
import runpy
import sys

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head import (
    binary_class_head,
    multi_class_head,
    multi_label_head,
    regression_head,
)

FOLDER = pathlib.Path(__file__).parent
sys.path.append(str(FOLDER.parents[2]))

from testbed.tensorflow_peer.heads import log_normal_loss  # noqa: E402

exact_auc = runpy.run_path(str(FOLDER / "make_test_values.py"))["exact_auc"]
THRESHOLDS = [0.3, 0.75]
TOP_K = [1, 2, 3]


def heads() -> dict:
    """Case -> (head, logits a row, a function of (rng, rows) to labels)."""

    def zero_one(width):
        return lambda rng, n: rng.integers(0, 2, (n, width))

    def counts(width):
        return lambda rng, n: rng.poisson(2, (n, width)).astype(np.float32)

    def numbers(width):
        return lambda rng, n: rng.normal(1, 2, (n, width)).astype(np.float32)

    def positives(width):
        return lambda rng, n: rng.lognormal(0, 1, (n, width)).astype(np.float32)

    weight = {"weight_column": "w"}
    return {
        "binary": (binary_class_head.BinaryClassHead(thresholds=THRESHOLDS, **weight), 1, zero_one(1)),
        "multi_class": (
            multi_class_head.MultiClassHead(4, **weight),
            4,
            lambda rng, n: rng.integers(0, 4, (n, 1)),
        ),
        "multi_label": (
            multi_label_head.MultiLabelHead(
                3, thresholds=THRESHOLDS, classes_for_class_based_metrics=[0, 1, 2], **weight
            ),
            3,
            zero_one(3),
        ),
        "regression": (regression_head.RegressionHead(2, **weight), 2, numbers(2)),
        "poisson": (regression_head.PoissonRegressionHead(1, **weight), 1, counts(1)),
        "log_normal": (
            regression_head.RegressionHead(
                2, loss_fn=log_normal_loss, inverse_link_fn=tf.math.exp, **weight
            ),
            2,
            positives(2),
        ),
    }


def our_values(name: str, logits: np.ndarray, labels: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """What tf.estimator's head does not say."""
    found: dict[str, float] = {}
    keras = tf.keras.metrics
    if name in ("binary", "multi_label"):
        p = tf.sigmoid(logits).numpy()
        wide = np.broadcast_to(w[:, None], p.shape)
        found["auc"] = exact_auc(p.ravel(), labels.ravel(), wide.ravel())
        if name == "multi_label":
            for i in range(3):
                found[f"auc/class{i}"] = exact_auc(p[:, i], labels[:, i], w)
    if name == "multi_class":
        for k in TOP_K:
            metric = keras.SparseTopKCategoricalAccuracy(k)
            metric.update_state(labels[:, 0], logits, sample_weight=w)
            found[f"accuracy/top_{k}"] = float(metric.result())
        right = logits.argmax(1) == labels[:, 0]
        for c in range(4):
            of = labels[:, 0] == c
            found[f"accuracy/class{c}"] = float((w * right * of).sum() / (w * of).sum())
        found["mean_per_class_accuracy"] = float(np.mean([found[f"accuracy/class{c}"] for c in range(4)]))
    if name in ("regression", "poisson", "log_normal"):
        predictions = logits if name == "regression" else np.exp(logits)
        for key, metric in {
            "mean_absolute_error": keras.MeanAbsoluteError(),
            "mean_squared_error": keras.MeanSquaredError(),
            "root_mean_squared_error": keras.RootMeanSquaredError(),
        }.items():
            metric.update_state(
                labels[..., None], predictions[..., None],
                sample_weight=np.broadcast_to(w[:, None], labels.shape),
            )
            found[key] = float(metric.result())
    return found


def text() -> str:
    lines = []
    rng = np.random.default_rng(20261121)
    for name, (head, width, draw) in heads().items():
        lines.append(f"case {name}")
        sizes = [40, 40, 17]
        metrics = head.metrics()
        losses, parts = [], []
        for n in sizes:
            logits = rng.normal(0, 1.2, (n, width)).astype(np.float32)
            if name == "multi_class":  # ties
                logits = np.round(logits, 1)
            labels = draw(rng, n)
            w = rng.choice([0, 0.25, 1, 3], n).astype(np.float32)
            features = {"w": w[:, None]}
            losses.append(float(head.loss(labels, logits, features=features)))
            head.update_metrics(metrics, features, logits, labels)
            parts.append((logits, labels, w))
            lines.append("batch")
            for i in range(n):
                of = " ".join(str(x) for x in logits[i])
                lines.append(f"row {w[i]:g} | {of} | {' '.join(str(x) for x in labels[i])}")
        whole = [np.concatenate(part) for part in zip(*parts)]
        values = {key: float(metric.result()) for key, metric in metrics.items()}
        for key in [key for key in values if key == "auc" or key.startswith("auc/")]:
            values[key.replace("auc", "auc_interpolated", 1)] = values.pop(key)
        values |= our_values(name, *whole)
        values["loss"] = float(np.mean(losses))
        lines += [f"value {key} {value:.9g}" for key, value in sorted(values.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    committed = FOLDER / "testdata" / "heads.txt"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else committed).write_text(text())
