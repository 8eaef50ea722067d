"""One task of the model of estimator_adult.py in a cluster of tf.estimator: its place is in TF_CONFIG."""

import argparse

import tensorflow as tf
from estimator_adult import evaluation_input, new_estimator, parse

SHUFFLED = 30_000


class TellSteps(tf.estimator.SessionRunHook):
    """Writes the global step of the whole job, every so many."""

    def __init__(self, every):
        self.every = every
        self.next = every

    def begin(self):
        self.step = tf.compat.v1.train.get_global_step()

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        step = int(run_values.results)
        if step >= self.next:
            self.next = step - step % self.every + self.every
            print(f"step {step}:", flush=True)


def one_thread():
    """What tf.estimator gives a task of a cluster, with one thread in each pool."""
    session = tf.estimator.RunConfig().session_config
    session.intra_op_parallelism_threads = 1
    session.inter_op_parallelism_threads = 1
    return session


def training_input(path, batch_size, part, parts):
    data = tf.data.TFRecordDataset(path).shard(parts, part)
    data = data.shuffle(SHUFFLED // parts, seed=1).repeat().batch(batch_size)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    return data.map(parse).prefetch(2).with_options(options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--tell-steps", type=int, required=True)
    flags = parser.parse_args()
    estimator = new_estimator(flags.model_dir, one_thread(), experimental_max_worker_delay_secs=0)
    config = estimator.config
    hooks = [TellSteps(flags.tell_steps)] if config.is_chief else []
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(
            lambda: training_input(
                flags.train, flags.batch_size, config.global_id_in_cluster,
                config.num_worker_replicas,
            ),
            max_steps=flags.steps,
            hooks=hooks,
        ),
        tf.estimator.EvalSpec(lambda: evaluation_input(flags.test)),
    )  # fmt: skip


if __name__ == "__main__":
    main()
