"""Fits y = sum(x) with two workers' gradients averaged: MultiWorkerMirroredStrategy, a loop of its
own, a checkpoint after every few steps from which it continues."""

import os
import sys
import time

import numpy as np
import tensorflow as tf

folder, steps = sys.argv[1], int(sys.argv[2])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = strategy.cluster_resolver.task_id
with strategy.scope():
    weights = tf.Variable(tf.zeros([8, 1]))
done = tf.Variable(0, dtype=tf.int64)  # each worker's own
checkpoint = tf.train.Checkpoint(weights=weights, done=done)
# Every worker writes, since all take part in reading the variables; the chief's is the one to keep.
manager = tf.train.CheckpointManager(checkpoint, os.path.join(folder, str(index)), max_to_keep=2)
if manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
print("begins at", int(done.numpy()), flush=True)


def dataset(context):
    x = np.random.default_rng(context.input_pipeline_id).random((256, 8), dtype="float32")
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).repeat().batch(64)


batches = iter(strategy.distribute_datasets_from_function(dataset))


@tf.function
def step(iterator):
    def local(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2) / strategy.num_replicas_in_sync
        gradient = tape.gradient(loss, weights)
        total = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, gradient
        )
        weights.assign_sub(0.05 * total)
        return loss

    losses = strategy.run(local, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


while int(done.numpy()) < steps:
    loss = step(batches)
    done.assign_add(1)
    if int(done.numpy()) % 10 == 0:
        manager.save()
        print("step", int(done.numpy()), flush=True)
        if int(done.numpy()) == 20 and not os.path.exists(os.path.join(folder, f"go-{index}")):
            with open(os.path.join(folder, f"waits-{index}"), "w"):
                pass
            while not os.path.exists(os.path.join(folder, "go")):
                time.sleep(0.05)
print("replicas", strategy.num_replicas_in_sync, "loss", float(loss), flush=True)
