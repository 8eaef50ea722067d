"""Between-graph replication as in TensorFlow 1: each worker has its own graph, and variables are on
the parameter servers. It fits a line: y = 3 x + 1."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.app.flags.DEFINE_string("ps_hosts", "", "host:port, commas between them")
tf.app.flags.DEFINE_string("worker_hosts", "", "likewise")
tf.app.flags.DEFINE_enum("job_name", None, ["ps", "worker"], "what this task is")
tf.app.flags.DEFINE_integer("task_index", 0, "which of them")
tf.app.flags.DEFINE_string("model_dir", "", "checkpoints")
tf.app.flags.DEFINE_integer("steps", 200, "of all workers together")
FLAGS = tf.app.flags.FLAGS


def fit():
    """Returns loss and training operation."""
    x = tf.placeholder_with_default(np.linspace(-1, 1, 64, dtype=np.float32), [64])
    slope, offset = tf.get_variable("slope", []), tf.get_variable("offset", [])
    loss = tf.reduce_mean(tf.square(slope * x + offset - (3 * x + 1)))
    step = tf.train.get_or_create_global_step()
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    place = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=place, cluster=cluster)):
        loss, train = fit()
    # Without filters a worker waits for all others, and at the end also for those that have left.
    config = tf.ConfigProto(device_filters=["/job:ps", place])
    last = 0.0
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=FLAGS.task_index == 0,
        checkpoint_dir=FLAGS.model_dir,
        config=config,
        max_wait_secs=120,
        hooks=[tf.train.StopAtStepHook(last_step=FLAGS.steps)],
    ) as session:
        while not session.should_stop():
            last, _ = session.run([loss, train])
    print(f"worker {FLAGS.task_index} is done, loss {last:.6f}", flush=True)


if __name__ == "__main__":
    tf.app.run()
