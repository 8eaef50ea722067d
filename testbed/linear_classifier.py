"""A small LinearClassifier of muster.estimator and batches for it, for tests of hooks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from muster import estimator, feature_column

ROWS, BATCH = 96, 8


def batches() -> Iterator[tuple[dict[str, list[float]], list[int]]]:
    draw = random.Random(7)
    for _ in range(ROWS // BATCH):
        x = [draw.gauss(0, 1) for _ in range(BATCH)]
        yield {"x": x}, [int(value > 0) for value in x]


def endless() -> Iterator[tuple[dict[str, list[float]], list[int]]]:
    return itertools.cycle(batches())


def make(folder, **config) -> estimator.LinearClassifier:
    columns = [feature_column.numeric_column("x")]
    settings = estimator.RunConfig(**config)
    return estimator.LinearClassifier(columns, model_dir=folder, config=settings)
