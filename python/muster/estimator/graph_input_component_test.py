"""Input functions of TensorFlow 1: each run of their tensors gives a batch, as in tf.estimator."""

from __future__ import annotations

import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from muster import estimator, feature_column
from muster.estimator import feeding

v1 = tf.compat.v1
ROWS, BATCH = 64, 4
X = np.arange(ROWS, dtype=np.float32)
Y = np.float32(2) * X + 1


def dataset():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(BATCH)


def one_shot():
    return v1.data.make_one_shot_iterator(dataset()).get_next()


def one_shot_as_a_list():
    return list(one_shot())


def initializable():
    iterator = v1.data.make_initializable_iterator(dataset())
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def queue():
    x, y = v1.train.slice_input_producer([X, Y], num_epochs=1, shuffle=False)
    x, y = v1.train.batch([x, y], BATCH)
    return {"x": x}, y


def in_another_thread():
    def row(index):
        return np.float32(index)

    data = tf.data.Dataset.range(ROWS).map(lambda i: tf.numpy_function(row, [i], tf.float32))
    x = v1.data.make_one_shot_iterator(data.batch(BATCH)).get_next()
    x.set_shape([BATCH])
    return {"x": x}, 2 * x + 1


FORMS = {
    "one-shot iterator": one_shot,
    "a list of two": one_shot_as_a_list,
    "initializable iterator": initializable,
    "queue": queue,
    "Python in the pipeline": in_another_thread,
    "dataset": dataset,
    "dataset from outside": lambda made=dataset(): made,
    "dataset derived from one outside": lambda made=dataset(): made.take(1000),
    "numpy_input_fn of TensorFlow": v1.estimator.inputs.numpy_input_fn(
        {"x": X}, Y, BATCH, num_epochs=1, shuffle=False
    ),
    "eager batches": lambda: list(iter(dataset())),
    "a generator of eager batches": lambda: (batch for batch in dataset()),
    "numpy batches": lambda: dataset().as_numpy_iterator(),
}


def batches_of(input_fn, mode=estimator.ModeKeys.EVAL, bounded=False, config=None):
    returned = feeding.call_input_fn(input_fn, mode, config)
    return feeding.open_batches(returned, mode, bounded)


@pytest.mark.parametrize("form", FORMS)
def test_each_batch_comes_once(form) -> None:
    found = list(batches_of(FORMS[form]).all())
    np.testing.assert_array_equal(np.concatenate([features["x"] for features, _ in found]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in found]), Y)
    assert len(found) == ROWS // BATCH


def test_an_estimator_sees_all_rows(tmp_path) -> None:
    made = estimator.LinearRegressor(
        [feature_column.numeric_column("x")],
        tmp_path / "model",
        optimizer=estimator.optimizers.Ftrl(0.1),
    )
    made.train(one_shot)
    metrics = made.evaluate(one_shot)
    assert metrics["global_step"] == ROWS // BATCH
    assert metrics["label/mean"] == pytest.approx(Y.mean())
    assert metrics == made.evaluate(dataset)
    assert metrics["average_loss"] > made.evaluate(one_shot, steps=1)["average_loss"]
    rows = [row["predictions"][0] for row in made.predict(one_shot)]
    assert len(rows) == ROWS and len(set(rows)) == ROWS
    first = list(itertools.islice(made.predict(lambda: endless()[0]), 3))
    assert len(first) == 3


def endless():
    x = v1.random_uniform([BATCH])
    return {"x": x}, x


def test_random_batches_differ_and_a_seed_repeats_them() -> None:
    def some(config):
        batches = batches_of(endless, config=config)
        with_labels = itertools.islice(batches.all(), 3)
        found = [features["x"].tolist() for features, _ in with_labels]
        batches.close()
        return found

    seeded = [some(estimator.RunConfig(tf_random_seed=3)) for _ in range(2)]
    assert seeded[0] == seeded[1] and seeded[0][0] != seeded[0][1]


def test_tables_sparse_and_ragged_values() -> None:
    def input_fn():
        words = tf.constant(["a", "b", "c"])
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(words, tf.constant([10, 20, 30], tf.int64)), -1
        )
        data = tf.data.Dataset.from_tensor_slices(["a", "c", "d", "b"])
        data = data.map(lambda word: (word, table.lookup(word))).batch(2)
        word, number = v1.data.make_initializable_iterator(data), None
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, word.initializer)
        word, number = word.get_next()
        split = tf.strings.bytes_split(word)
        return {"number": number, "ragged": split, "sparse": split.to_sparse()}

    found = list(batches_of(input_fn, estimator.ModeKeys.PREDICT).all())
    assert [features["number"].tolist() for features, _ in found] == [[10, 30], [-1, 20]]
    assert found[1][0]["sparse"].values.tolist() == [b"d", b"b"]
    assert found[1][0]["ragged"].row_splits.tolist() == [0, 1, 2]


def test_constants_are_one_batch() -> None:
    constant = lambda: ({"x": tf.constant([1.0, 2.0])}, tf.constant([1.0, 2.0]))  # noqa: E731
    assert len(list(batches_of(constant).all())) == 1
    endless = batches_of(constant, estimator.ModeKeys.TRAIN, bounded=True).all()
    assert len(list(itertools.islice(endless, 5))) == 5
    with pytest.raises(ValueError, match="say steps or max_steps"):
        batches_of(constant, estimator.ModeKeys.TRAIN)


def next_of_an_eager_iterator():
    return next(iter(dataset()))


def next_of_an_iterator_from_outside(iterator=iter(dataset())):
    return next(iterator)


def without_initializer():
    return v1.data.make_initializable_iterator(dataset()).get_next()


def of_the_global_step():
    x = tf.cast(v1.train.get_or_create_global_step(), tf.float32)
    return {"x": x + tf.zeros([BATCH])}, tf.zeros([BATCH])


def three_things():
    features, labels = one_shot()
    return features, labels, labels


def no_dict():
    return one_shot()[0]["x"], one_shot()[1]


@pytest.mark.parametrize(
    "input_fn, says",
    [
        (next_of_an_eager_iterator, "in eager mode only.*return the tf.data.Dataset"),
        (next_of_an_iterator_from_outside, "in eager mode only.*return the tf.data.Dataset"),
        (without_initializer, "was not initialized.*TABLE_INITIALIZERS"),
        (of_the_global_step, "reads the global step"),
        (three_things, "as a len 2 tuple. Got 3"),
        (no_dict, "features should be a dictionary"),
    ],
)
def test_what_cannot_be_right_is_refused(input_fn, says) -> None:
    with pytest.raises(ValueError, match=says):
        batches_of(input_fn)


def test_what_the_pipeline_raises_comes_out() -> None:
    class Broken(Exception):
        pass

    def broken():
        raise Broken("no data")

    with pytest.raises(Broken):
        batches_of(broken)

    def bad():
        data = tf.data.Dataset.range(4).map(lambda i: tf.debugging.check_numerics(1 / (2 - i), "x"))
        x = v1.data.make_one_shot_iterator(data.batch(2)).get_next()
        return {"x": x}, x

    with pytest.raises(tf.errors.InvalidArgumentError, match="Inf"):
        list(batches_of(bad).all())

    def bad_queue():
        x = v1.train.batch([v1.py_func(broken, [], tf.float32)], BATCH, shapes=[[]])
        return {"x": x}, x

    with pytest.raises(tf.errors.OpError, match="no data"):
        list(batches_of(bad_queue).all())


ABANDONED = """
import sys
import tensorflow as tf
from muster import estimator, feature_column
def input_fn():
    x = tf.compat.v1.random_uniform([1000])
    return {"x": x}, x
model = estimator.LinearRegressor([feature_column.numeric_column("x")], sys.argv[1])
model.train(input_fn, steps=1)
rows = model.predict(input_fn)
print(next(rows)["predictions"].shape)
"""


def test_a_program_may_end_amid_its_predictions(tmp_path) -> None:
    package = pathlib.Path(estimator.__file__).parents[2]
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", ABANDONED, tmp_path / "model"], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(package)}, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "(1,)\n"), done.stderr[-2000:]
