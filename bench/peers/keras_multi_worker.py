"""One worker of a model of keras_models.py by MultiWorkerMirroredStrategy and a loop of its own; its
place is in TF_CONFIG. The first one tells its steps."""

import argparse
import json
import os

import tensorflow as tf
from keras_models import KINDS, batches, build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--train", required=True)
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--tell-steps", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    flags = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, optimizer, loss = build(flags.kind)
        optimizer.build(model.trainable_variables)

    def of_replica(inputs, label):
        with tf.GradientTape() as tape:
            value = loss(label, model(inputs, training=True)) / strategy.num_replicas_in_sync
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return value

    @tf.function
    def step(iterator):
        losses = strategy.run(of_replica, args=next(iterator))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def of_pipeline(context):
        parts, part = context.num_input_pipelines, context.input_pipeline_id
        return batches(flags.kind, flags.train, flags.batch_size, part, parts)

    data = iter(strategy.distribute_datasets_from_function(of_pipeline))
    for number in range(1, flags.steps + 1):
        value = step(data)
        if number % flags.tell_steps == 0 and index == 0:
            print(f"step {number}: loss {float(value):.4f}", flush=True)
    folder = flags.model_dir if index == 0 else f"{flags.model_dir}-{index}"
    tf.train.Checkpoint(model=model).write(os.path.join(folder, f"model.ckpt-{flags.steps}"))


if __name__ == "__main__":
    main()
