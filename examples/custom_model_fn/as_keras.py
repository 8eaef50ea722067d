"""The model of program.py in Keras, and its rows in a file.

    python as_keras.py exported rows.tfrecord
    muster train exported --train rows.tfrecord --model-dir model --batch-size 20 --max-steps 300 \
        --workers 3
"""

import sys

import keras
import tensorflow as tf

import muster.keras


def build():
    x = keras.Input((1,), name="x")
    hidden = keras.layers.Dense(8, activation="tanh")(x)
    return keras.Model(x, keras.layers.Dense(1, name="y")(hidden))


def example(x):
    def of(value):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))

    features = tf.train.Features(feature={"x": of(x), "label": of(x * x)})
    return tf.train.Example(features=features).SerializeToString()


if __name__ == "__main__":
    exported, rows = sys.argv[1:]
    keras.utils.set_random_seed(1)
    with tf.io.TFRecordWriter(rows) as file:
        for i in range(200):
            file.write(example(i / 100 - 1))
    muster.keras.export(build(), keras.optimizers.Adam(0.01), "mean_squared_error", exported)
