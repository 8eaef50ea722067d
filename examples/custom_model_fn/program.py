"""An Estimator with a model_fn of its own, as it was written for TensorFlow: nothing here is Muster's.

    muster run --chief --workers 2 --ps 1 -- python program.py MODEL_DIR
"""

import sys

import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features["x"], 8, activation=tf.nn.tanh)
    y = tf.squeeze(tf.layers.dense(hidden, 1), axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = tf.data.Dataset.range(200).map(lambda i: tf.cast(i, tf.float32) / 100 - 1)
    rows = x.map(lambda x: ({"x": tf.reshape(x, [1])}, x * x))
    return rows.shuffle(200).repeat().batch(20)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn, model_dir=sys.argv[1])
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=300)
    eval_spec = tf.estimator.EvalSpec(input_fn, steps=10, start_delay_secs=0, throttle_secs=0)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
