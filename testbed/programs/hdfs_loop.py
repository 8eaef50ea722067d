"""Reads TFRecord files and writes events, checkpoints and a SavedModel into a folder by the functions
of TensorFlow 2; run again, it goes on from the newest checkpoint. It knows nothing of Muster.

usage: hdfs_loop.py FOLDER STEPS, with the data in FOLDER/data/part-*
"""

import sys
from importlib.util import find_spec

import tensorflow as tf

NAMES = ("a", "b", "c", "d")
FEATURES = {name: tf.io.FixedLenFeature([], tf.float32) for name in NAMES}
LABEL = {"y": tf.io.FixedLenFeature([], tf.int64)}


def parse(record):
    row = tf.io.parse_single_example(record, {**FEATURES, **LABEL})
    return tf.stack([row[name] for name in NAMES]), tf.cast(row["y"], tf.float32)


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([4, 1]))
        self.b = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def serve(self, x):
        return tf.sigmoid(tf.matmul(x, self.w)[:, 0] + self.b)


def main():
    folder, steps = sys.argv[1], int(sys.argv[2])
    data = (
        tf.data.Dataset.list_files(folder + "/data/part-*", shuffle=False)
        .interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2)
        .map(parse)
        .repeat().batch(50).prefetch(2)
    )  # fmt: skip
    model, step = Model(), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder + "/checkpoints", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    print("starts at step", int(step))
    # tf.summary.scalar is TensorBoard's.
    write = tf.summary.scalar if find_spec("tensorboard") else tf.summary.write
    events = tf.summary.create_file_writer(folder + "/events")
    for x, y in data.take(steps):
        with tf.GradientTape() as tape:
            p = model.serve(x)
            loss = -tf.reduce_mean(
                y * tf.math.log(p + 1e-7) + (1 - y) * tf.math.log(1 - p + 1e-7)
            )
        for variable, gradient in zip(
            (model.w, model.b), tape.gradient(loss, (model.w, model.b))
        ):
            variable.assign_sub(gradient)
        step.assign_add(1)
        if int(step) % 10 == 0:
            with events.as_default():
                write("loss", loss, step=int(step))
            manager.save(int(step))
    events.close()
    if tf.io.gfile.exists(folder + "/saved"):
        tf.io.gfile.rmtree(folder + "/saved")
    tf.saved_model.save(model, folder + "/saved", signatures=model.serve)
    again = tf.saved_model.load(folder + "/saved")
    print("loss", float(loss))
    print("difference", float(tf.reduce_max(abs(again.serve(x) - model.serve(x)))))
    print("ends at step", int(step), sorted(tf.io.gfile.listdir(folder)))


main()
