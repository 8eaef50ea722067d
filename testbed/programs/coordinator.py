"""ParameterServerStrategy with a ClusterCoordinator on the chief; worker and ps only serve."""

import json
import os

import numpy as np
import tensorflow as tf

FEATURES, BATCH, STEPS = 4, 16, 60


def train(resolver) -> float:
    """Returns the last loss; the cluster must be up."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([FEATURES, 1]))

    def batches(_):
        x = np.random.default_rng(1).random((BATCH, FEATURES), np.float32)
        return tf.data.Dataset.from_tensors((x, x.sum(1, keepdims=True))).repeat()

    @tf.function
    def worker_batches():
        return strategy.distribute_datasets_from_function(batches)

    @tf.function
    def train_step(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weights - y) ** 2)
            weights.assign_sub(0.3 * tape.gradient(loss, weights))
            return loss

        return strategy.run(replica, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(worker_batches))
    for _ in range(STEPS):
        loss = coordinator.schedule(train_step, args=(iterator,))
    coordinator.join()
    return float(loss.fetch())


def serve(config) -> None:
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    task = config["task"]
    server = tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]), job_name=task["type"], task_index=task["index"]
    )
    print("serves", flush=True)
    server.join()


def main() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    if config["task"]["type"] in ("worker", "ps"):
        serve(config)
    loss = train(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    print(f"the chief is done, loss {loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
