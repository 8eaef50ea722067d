"""The program of between_graph.py as it is written for TonY, which tells a task its place by separate
variables of the environment, and the chief a port for TensorBoard."""

import json
import os
import socketserver
import sys

import between_graph
import tensorflow.compat.v1 as tf

cluster = json.loads(os.environ["CLUSTER_SPEC"])
job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
sys.argv += [
    f"--ps_hosts={','.join(cluster['ps'])}", f"--worker_hosts={','.join(cluster['worker'])}",
    f"--job_name={job}", f"--task_index={index}",
]  # fmt: skip
is_chief = os.environ.get("IS_CHIEF", "false") == "true"
if is_chief:
    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("", int(os.environ["TB_PORT"])), socketserver.BaseRequestHandler):
        pass
names = ("JOB_ID", "SESSION_ID", "TASK_NUM", "DISTRIBUTED_MODE")
print(f"{job} {index}", is_chief, *(os.environ[name] for name in names), flush=True)
tf.app.run(between_graph.main)
