"""Estimator wide & deep, with its place in the cluster from TF_CONFIG."""

import argparse

import tensorflow as tf

import clicks
import gate

parser = argparse.ArgumentParser()
parser.add_argument("--model-dir", required=True)
parser.add_argument("--max-steps", type=int, default=40)
parser.add_argument("--endless", type=int, default=1, help="0: each row once")
parser.add_argument("--eval-gate", default="", help="a file; each evaluation waits for it")
gate.add_flags(parser)
flags = parser.parse_args()

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)


def eval_input_fn() -> tf.data.Dataset:
    gate.Gate(flags.eval_gate, 0).pass_through(0)
    return clicks.input_fn(False)


config = tf.estimator.RunConfig(
    model_dir=flags.model_dir,
    save_checkpoints_steps=10,
    log_step_count_steps=10,
    experimental_max_worker_delay_secs=0,
)
tf.estimator.train_and_evaluate(
    clicks.wide_deep(config),
    tf.estimator.TrainSpec(
        lambda: clicks.input_fn(bool(flags.endless)),
        max_steps=flags.max_steps,
        hooks=[clicks.GateHook(flags.gate, flags.gate_step)],
    ),
    tf.estimator.EvalSpec(
        eval_input_fn, steps=None, start_delay_secs=0, throttle_secs=1
    ),
)
print(f"{config.task_type} {config.task_id} is done", flush=True)
