"""Trains on a running cluster; the argument is a file such as {"cluster": {"worker": [...]}}."""

import json
import pathlib
import sys

import tensorflow as tf

import coordinator

cluster = json.loads(pathlib.Path(sys.argv[1]).read_text())["cluster"]
loss = coordinator.train(
    tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc"
    )
)
print(f"the client is done, loss {loss:.6f}", flush=True)
