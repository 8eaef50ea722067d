"""Training with several replicas, beside one process and beside tf.estimator's parameter servers."""

import os

from bench import replica_rates, replica_start
from bench.context import CannotRun, Context
from bench.report import Report

METHOD = f"""
Training from TFRecord files at batch {replica_rates.BATCH} a replica: `examples/adult/adult.yaml` on the
census table, `examples/clicks/clicks.yaml` on {replica_rates.CLICK_ROWS} made-up rows. The one process
and each replica have all their threads bound to one core (`taskset`); a parameter server runs where
there is room. Rates are between two steps that the chief tells, warmed up and before the end; CPU
seconds are of all tasks together. "Apart" are two trainings at the same time, a core each, that share
nothing: what the machine has to give. The job of tf.estimator is a chief, a worker and a ps of the same
model and batch by `train_and_evaluate`, with one thread in each pool, bound as ours are; its data is
read by tf.data and sharded. Memory is the peak of resident pages (VmHWM) until the second step told.
"""


def measure(context: Context, name: str) -> Report:
    if len(os.sched_getaffinity(0)) < 2:
        raise CannotRun("needs two cores")
    report = Report(
        name=name,
        title="Training with several replicas",
        method=METHOD,
        peer="the other: one process of Muster, or TensorFlow 2.15.1 tf.estimator",
        unit="as each row says",
        rows=replica_start.measure(context),
    )
    rows, same = replica_rates.measure(context)
    report.rows += rows
    report.same += [*same, replica_rates.NOTE, *replica_start.NOTES]
    return report
