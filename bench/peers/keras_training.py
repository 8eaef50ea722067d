"""A model of keras_models.py in one process, by Keras `fit` or by a loop of a tf.function: prints what a
step costs after those that warm it up, and with --test what it reaches."""

import argparse
import json
import time

import tensorflow as tf
from keras_models import KINDS, batches, build

import keras


class Clock:
    """CPU of all threads and wall, from when it is started."""

    def start(self):
        self.cpu, self.wall = time.process_time(), time.monotonic()

    def micros(self, steps):
        return {
            "cpu_us": (time.process_time() - self.cpu) * 1e6 / steps,
            "wall_us": (time.monotonic() - self.wall) * 1e6 / steps,
        }


class Warm(keras.callbacks.Callback):
    """Starts the clock after that many steps."""

    def __init__(self, clock, steps):
        super().__init__()
        self.clock, self.steps = clock, steps

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.steps:
            self.clock.start()


def fit(data, model, optimizer, loss, flags):
    clock = Clock()
    model.compile(optimizer, loss, jit_compile="auto" if flags.jit else False)
    model.fit(data, steps_per_epoch=flags.steps, verbose=0, callbacks=[Warm(clock, flags.warm_steps)])
    return clock.micros(flags.steps - flags.warm_steps)


def loop(data, model, optimizer, loss, flags):
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(inputs, label):
        with tf.GradientTape() as tape:
            value = loss(label, model(inputs, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return value

    clock = Clock()
    for number, (inputs, label) in enumerate(data.take(flags.steps)):
        step(inputs, label)
        if number + 1 == flags.warm_steps:
            clock.start()
    return clock.micros(flags.steps - flags.warm_steps)


def loss_on(path, kind, model, loss):
    records = tf.data.TFRecordDataset(tf.io.gfile.glob(path)).batch(500)
    losses, rows = 0.0, 0
    for inputs, label in records.map(KINDS[kind].parsed):
        count = int(label.shape[0])
        losses += float(loss(label, model(inputs, training=False))) * count
        rows += count
    return losses / rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=("fit", "loop"))
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test")
    parser.add_argument("--ordered", action="store_true", help="records are not shuffled")
    parser.add_argument("--no-jit", dest="jit", action="store_false", help="fit without XLA")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--warm-steps", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, default=0, help="in each pool; 0: TensorFlow's choice")
    flags = parser.parse_args()
    if flags.threads:
        tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
        tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
    model, optimizer, loss = build(flags.kind)
    data = batches(flags.kind, flags.train, flags.batch_size, ordered=flags.ordered)
    found = {"fit": fit, "loop": loop}[flags.how](data, model, optimizer, loss, flags)
    if flags.test:
        found["loss"] = loss_on(flags.test, flags.kind, model, loss)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
