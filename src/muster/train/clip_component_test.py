"""Keras clips the gradients of clip_sink_test.cc to the numbers that stand there."""

import numpy as np
import pytest
import tensorflow as tf

DENSE = np.float32([3, -4, 0.5])
ROWS = [2, 5]
ROW_GRADIENTS = np.float32([[1, -2], [2, 4]])


def clipped(slices: tf.IndexedSlices, **limit: float) -> tuple[np.ndarray, np.ndarray]:
    """What SGD with rate 1 takes from weights of 0."""
    dense, table = tf.Variable(np.zeros(3, np.float32)), tf.Variable(np.zeros((6, 2), np.float32))
    optimizer = tf.keras.optimizers.legacy.SGD(1.0, **limit)
    optimizer.apply_gradients([(tf.constant(DENSE), dense), (slices, table)])
    return -dense.numpy(), -table.numpy()[ROWS]


@pytest.mark.parametrize(
    "limit, dense, rows",
    [({"clipvalue": 1.0}, [1, -1, 0.5], [[1, -1], [1, 1]]),
     ({"clipnorm": 2.5}, [1.49255574, -1.9900744, 0.2487593], [[0.5, -1], [1, 2]]),
     ({"global_clipnorm": 3.0}, [1.2696217, -1.692829, 0.21160363],
      [[0.42320725, -0.8464145], [0.8464145, 1.692829]])])
def test_keras_clips_to_the_same(limit: dict, dense: list, rows: list) -> None:
    ours = tf.IndexedSlices(ROW_GRADIENTS, ROWS, (6, 2))
    theirs = clipped(ours, **limit)
    np.testing.assert_allclose(theirs[0], dense, rtol=1e-6)
    np.testing.assert_allclose(theirs[1], rows, rtol=1e-6)


def test_keras_takes_repeated_rows_as_they_are() -> None:
    """Where we sum first: a lookup of a feature column makes ids unique, so that both see the same."""
    repeated = tf.IndexedSlices(np.concatenate([ROW_GRADIENTS, ROW_GRADIENTS]) / 2, ROWS * 2, (6, 2))
    _, rows = clipped(repeated, clipnorm=2.5)
    np.testing.assert_allclose(np.linalg.norm(rows), 2.5 * np.sqrt(2), rtol=1e-6)
