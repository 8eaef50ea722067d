"""A canned Estimator that reads TFRecord files and has its model folder beside them, and exports a
SavedModel: for TensorFlow 1.15 to 2.15. It knows nothing of Muster.

usage: hdfs_estimator.py FOLDER STEPS, with the data in FOLDER/data/part-*
"""

import sys

import tensorflow as tf

NAMES = ("a", "b", "c", "d")
FEATURES = {name: tf.io.FixedLenFeature([], tf.float32) for name in NAMES}
LABEL = {"y": tf.io.FixedLenFeature([], tf.int64)}


def parse(record):
    row = tf.io.parse_single_example(record, {**FEATURES, **LABEL})
    return {name: row[name] for name in NAMES}, row["y"]


def rows(folder):
    files = sorted(tf.io.gfile.glob(folder + "/data/part-*"))
    return tf.data.TFRecordDataset(files).map(parse).batch(50)


def main():
    folder, steps = sys.argv[1], int(sys.argv[2])
    columns = [tf.feature_column.numeric_column(name) for name in NAMES]
    config = tf.estimator.RunConfig(save_checkpoints_steps=20, keep_checkpoint_max=2)
    model = tf.estimator.LinearClassifier(columns, model_dir=folder + "/model", config=config)
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(lambda: rows(folder).repeat(), max_steps=steps),
        tf.estimator.EvalSpec(lambda: rows(folder), start_delay_secs=1, throttle_secs=1),
    )
    print("accuracy", model.evaluate(lambda: rows(folder))["accuracy"])
    served = tf.estimator.export.build_parsing_serving_input_receiver_fn(FEATURES)
    exported = model.export_saved_model(folder + "/exported", served)
    exported = exported.decode() if isinstance(exported, bytes) else exported
    print("exported", exported, sorted(tf.io.gfile.listdir(exported)))


main()
