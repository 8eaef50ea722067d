"""Softmax regression on digits, as in TFJob's first samples: MASTER, WORKER and PS read their place
from TF_CONFIG, and start the servers themselves. The digits are random."""

import argparse
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

PIXELS, DIGITS, BATCH = 28 * 28, 10, 64

parser = argparse.ArgumentParser()
parser.add_argument("--log_dir", required=True)
parser.add_argument("--max_steps", type=int, default=60)
flags = parser.parse_args()

tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, kind, index)
if kind == "ps":
    server.join()


def digits(seed):
    """Returns a batch of images, each with its digit's pattern and noise, and their digits."""
    random = np.random.default_rng(seed)
    shown = random.integers(0, DIGITS, BATCH)
    patterns = np.random.default_rng(0).random((DIGITS, PIXELS))
    return 0.5 * (patterns[shown] + random.random((BATCH, PIXELS))), shown


place = f"/job:{kind}/task:{index}"
with tf.device(tf.train.replica_device_setter(worker_device=place, cluster=cluster)):
    images = tf.placeholder(tf.float32, [None, PIXELS])
    labels = tf.placeholder(tf.int64, [None])
    logits = images @ tf.get_variable("weights", [PIXELS, DIGITS], initializer=tf.zeros_initializer)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdagradOptimizer(0.005).minimize(loss, step)

taken = 0
with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=kind == "master",
    checkpoint_dir=flags.log_dir,
    config=tf.ConfigProto(device_filters=["/job:ps", place]),
    max_wait_secs=120,
    hooks=[tf.train.StopAtStepHook(last_step=flags.max_steps)],
) as session:
    while not session.should_stop():
        batch, shown = digits([index, taken])
        session.run(train, {images: batch, labels: shown})
        taken += 1
print(f"{kind} {index} is done after {taken} of the steps", flush=True)
if kind == "master":
    # Checks what all of them have learnt, however steps were distributed: a batch that no task
    # trained on.
    batch, shown = digits([flags.max_steps, flags.max_steps])
    weights = tf.train.load_checkpoint(flags.log_dir).get_tensor("weights")
    print(f"accuracy {np.mean((batch @ weights).argmax(1) == shown):.2f}", flush=True)
