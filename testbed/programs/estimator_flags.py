"""An Estimator program whose cluster is given by flags: it makes TF_CONFIG itself, as older scripts
do. The first worker host is the chief."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--ps-hosts", required=True, help="host:port, commas between them")
parser.add_argument("--worker-hosts", required=True, help="likewise")
parser.add_argument("--worker-type", choices=["worker", "ps"], required=True)
parser.add_argument("--worker-index", type=int, required=True)
parser.add_argument("--model-dir", required=True)
parser.add_argument("--max-steps", type=int, default=40)
flags = parser.parse_args()

chief, *workers = flags.worker_hosts.split(",")
cluster = {"chief": [chief], "worker": workers, "ps": flags.ps_hosts.split(",")}
task = {"type": flags.worker_type, "index": flags.worker_index}
if flags.worker_type == "worker":
    is_chief = flags.worker_index == 0
    task = {"type": "chief" if is_chief else "worker", "index": max(0, flags.worker_index - 1)}
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})

import tensorflow as tf  # noqa: E402, RunConfig reads TF_CONFIG

import clicks  # noqa: E402

config = tf.estimator.RunConfig(
    model_dir=flags.model_dir, save_checkpoints_steps=20, experimental_max_worker_delay_secs=0
)
tf.estimator.train_and_evaluate(
    clicks.wide_deep(config),
    tf.estimator.TrainSpec(lambda: clicks.input_fn(True), max_steps=flags.max_steps),
    tf.estimator.EvalSpec(lambda: clicks.input_fn(False), steps=1),
)
print(f"{config.task_type} {config.task_id} is done", flush=True)
