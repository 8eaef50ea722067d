"""A MultiWorkerMirroredStrategy loop that continues from its last checkpoint when started again."""

import argparse
import json
import os

import numpy as np
import tensorflow as tf

import gate

FEATURES, BATCH = 4, 16

parser = argparse.ArgumentParser()
parser.add_argument("--model-dir", required=True)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--save-steps", type=int, default=5)
parser.add_argument("--gate-index", type=int, default=1, help="which worker waits at the gate")
gate.add_flags(parser)
flags = parser.parse_args()

strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
door = gate.Gate(flags.gate if index == flags.gate_index else "", flags.gate_step)

with strategy.scope():
    weights = tf.Variable(tf.zeros([FEATURES, 1]))
    step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(weights=weights, step=step)
# All workers must take part in a save, but only the first worker's is kept.
folder = flags.model_dir if index == 0 else os.path.join(flags.model_dir, f"worker-{index}")
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
if latest := tf.train.latest_checkpoint(flags.model_dir):
    checkpoint.restore(latest).assert_consumed()
print(f"begins at step {int(step.numpy())} of {flags.steps}", flush=True)


def batches(context):
    x = np.random.default_rng(context.input_pipeline_id).random((BATCH, FEATURES), np.float32)
    return tf.data.Dataset.from_tensors((x, x.sum(1, keepdims=True))).repeat()


@tf.function
def train_step(iterator):
    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        replicas = tf.distribute.get_replica_context()
        gradient = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights))
        weights.assign_sub(0.3 * gradient)
        step.assign_add(1)
        return loss

    losses = strategy.run(replica, args=next(iterator))
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)


data = iter(strategy.distribute_datasets_from_function(batches))
loss = None
for done in range(int(step.numpy()), flags.steps):
    door.pass_through(done)
    loss = train_step(data)
    if (done + 1) % flags.save_steps == 0:
        manager.save(done + 1)
print(f"worker {index} is done at step {int(step.numpy())}, loss {float(loss):.6f}", flush=True)
