"""A client of TensorFlow 1 outside a cluster of servers, in-graph: the argument is their ClusterSpec. The
variable is on a parameter server, and each worker multiplies it."""

import json
import sys

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
cluster = json.loads(sys.argv[1])
with tf.device("/job:ps/task:0"):
    x = tf.get_variable("x", initializer=[1.0, 2.0])
parts = []
for index in range(len(cluster["worker"])):
    with tf.device(f"/job:worker/task:{index}"):
        parts.append(x * (index + 1.0))
total = tf.add_n(parts)
with tf.Session(f"grpc://{cluster['worker'][0]}") as session:
    session.run(tf.global_variables_initializer())
    session.run(tf.assign_add(x, [10.0, 10.0]))
    print("total", session.run(total).tolist(), len(session.list_devices()), flush=True)
