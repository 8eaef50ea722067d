"""What tf.estimator refuses is refused with the same type of error and the same words."""

from __future__ import annotations

import json
import re

import pytest

from muster import estimator, feature_column


def rows():
    return {"x": [0.5, -0.5]}, [1, 0]


def batches():
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(rows())


def receiver(est):
    return est.export.build_parsing_serving_input_receiver_fn({})


def config(**values):
    return lambda est, _: est.RunConfig(**values)


def in_tf_config(settings, **values):
    def make(est, monkeypatch):
        monkeypatch.setenv("TF_CONFIG", json.dumps(settings))
        return est.RunConfig(**values)

    return make


def in_cluster(cluster, **task):
    return in_tf_config({"cluster": cluster, "task": task})


def train_spec(**values):
    return lambda est, _: est.TrainSpec(**{"input_fn": batches, **values})


def eval_spec(exporters=None, **values):
    def make(est, _):
        made = exporters(est) if callable(exporters) else exporters
        return est.EvalSpec(**{"input_fn": batches, "exporters": made, **values})

    return make


def model(use, **values):
    return lambda est, _: use(est.LinearClassifier([column_of(est)], **values))


def column_of(est):
    if est is estimator:
        return feature_column.numeric_column("x")
    import tensorflow as tf

    return tf.feature_column.numeric_column("x")


def nothing(made):
    return made


RUN_CONFIG = {
    "both intervals": config(save_checkpoints_steps=1, save_checkpoints_secs=1),
    "empty model_dir": config(model_dir=""),
    "empty model_dir in TF_CONFIG": in_tf_config({"model_dir": ""}),
    "two model_dirs": in_tf_config({"model_dir": "a"}, model_dir="b"),
    "save_summary_steps": config(save_summary_steps=-1),
    "save_checkpoints_steps": config(save_checkpoints_steps=-1),
    "save_checkpoints_secs": config(save_checkpoints_secs=-1),
    "keep_checkpoint_max": config(keep_checkpoint_max=-1),
    "keep_checkpoint_every_n_hours": config(keep_checkpoint_every_n_hours=0),
    "log_step_count_steps": config(log_step_count_steps=0),
    "session_creation_timeout_secs": config(session_creation_timeout_secs=0),
    "seed": config(tf_random_seed=1.5),
    "a cluster without a chief": in_cluster({"worker": ["a:1"]}, type="worker", index=0),
    "two chiefs": in_cluster({"chief": ["a:1", "b:1"]}, type="chief", index=0),
    "no task type": in_cluster({"chief": ["a:1"]}, index=0),
    "no task index": in_cluster({"chief": ["a:1"]}, type="chief"),
    "a negative index": in_cluster({"chief": ["a:1"]}, type="chief", index=-1),
    "chief and master": in_cluster(
        {"chief": ["a:1"], "master": ["b:1"]}, type="chief", index=0
    ),
    "an evaluator beside a master": in_cluster({"master": ["b:1"]}, type="evaluator", index=0),
    "a chief without a cluster": in_tf_config({"task": {"type": "chief", "index": 0}}),
    "the second of no cluster": in_tf_config({"task": {"type": "worker", "index": 1}}),
    "service": in_tf_config({"service": 3}),
    "replacing both intervals": lambda est, _: est.RunConfig().replace(
        save_checkpoints_steps=1, save_checkpoints_secs=1
    ),
}
SPECS = {
    "training without input_fn": train_spec(input_fn=7),
    "no training step": train_spec(max_steps=0),
    "a hook of the training": train_spec(hooks=[7]),
    "evaluation without input_fn": eval_spec(input_fn=7),
    "no evaluation step": eval_spec(steps=0),
    "a hook of the evaluation": eval_spec(hooks=[7]),
    "name": eval_spec(name=7),
    "start_delay_secs": eval_spec(start_delay_secs=-1),
    "throttle_secs": eval_spec(throttle_secs=-1),
    "no exporter": eval_spec(exporters=7),
    "no exporter in a list": eval_spec(exporters=[7]),
    "exporters of one name": eval_spec(
        lambda est: [est.FinalExporter("a", receiver(est)), est.LatestExporter("a", receiver(est))]
    ),
    "an exporter without a name": eval_spec(lambda est: est.FinalExporter("", receiver(est))),
    "exports_to_keep of the latest": lambda est, _: est.LatestExporter(
        "a", receiver(est), exports_to_keep=0
    ),
    "exports_to_keep of the best": lambda est, _: est.BestExporter(
        "a", receiver(est), exports_to_keep=0
    ),
    "no estimator": lambda est, _: est.train_and_evaluate(
        7, est.TrainSpec(batches), est.EvalSpec(batches)
    ),
    "no TrainSpec": model(
        lambda made: module_of(made).train_and_evaluate(made, 7, module_of(made).EvalSpec(batches))
    ),
    "no EvalSpec": model(
        lambda made: module_of(made).train_and_evaluate(made, module_of(made).TrainSpec(batches), 7)
    ),
}
MODELS = {
    "config": model(nothing, config=7),
    "model_dirs": lambda est, _: model(nothing, model_dir="a", config=est.RunConfig("b"))(est, _),
    "warm start": model(nothing, warm_start_from=7),
    "warm start from nothing": lambda est, _: est.WarmStartSettings(""),
    "steps and max_steps": model(lambda made: made.train(batches, steps=1, max_steps=1)),
    "steps": model(lambda made: made.train(batches, steps=0)),
    "max_steps": model(lambda made: made.train(batches, max_steps=0)),
    "hooks": model(lambda made: made.train(batches, hooks=[7])),
    "listeners": model(lambda made: made.train(batches, saving_listeners=[7])),
    "evaluation steps": model(lambda made: made.evaluate(batches, steps=0)),
    "an export of nothing": model(
        lambda made: made.export_saved_model("out", receiver(module_of(made))), model_dir="nowhere"
    ),
}


def module_of(made):
    import tensorflow as tf

    return estimator if type(made).__module__.startswith("muster") else tf.estimator


def refused(make, est, monkeypatch):
    with pytest.raises((ValueError, TypeError)) as caught:
        make(est, monkeypatch)
    words = re.sub(r"<.*>", "<object>", str(caught.value)).replace("`tf.", "`muster.")
    words = words.replace("must be a positive", "must be positive")  # in one of two classes
    return caught.type, words.strip().rstrip(".")


@pytest.mark.parametrize("case", RUN_CONFIG | SPECS | MODELS)
def test_what_tf_estimator_refuses(case, tmp_path, monkeypatch) -> None:
    import tensorflow as tf

    make = {**RUN_CONFIG, **SPECS, **MODELS}[case]
    monkeypatch.chdir(tmp_path)
    kind, words = refused(make, tf.estimator, monkeypatch)
    our_kind, our_words = refused(make, estimator, monkeypatch)
    assert our_kind is kind
    assert our_words.startswith(words)  # the wrong value may follow


CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


@pytest.mark.parametrize("cluster", [{}, {"chief": ["a:1"]}, CLUSTER, {"master": ["a:1"]}])
def test_a_task_is_what_tf_estimator_takes_it_for(cluster, monkeypatch) -> None:
    import tensorflow as tf

    tasks = [(kind, index) for kind, hosts in cluster.items() for index in range(len(hosts))]
    if "chief" in cluster:
        tasks.append(("evaluator", 0))
    for kind, index in tasks or [("worker", 0)]:
        settings = {"cluster": cluster, "task": {"type": kind, "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(settings))
        theirs, ours = tf.estimator.RunConfig("m"), estimator.RunConfig("m")
        for name in ("task_type", "task_id", "is_chief", "master", "evaluation_master", "service",
                     "num_worker_replicas", "num_ps_replicas", "global_id_in_cluster"):
            assert getattr(ours, name) == getattr(theirs, name), (kind, index, name)
        assert ours.cluster_spec.as_dict() == theirs.cluster_spec.as_dict()


@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "TF_CONFIG: not JSON"),
        ("[1]", "TF_CONFIG: must be a JSON object"),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "worker", "index": 0}}',
            "worker is not a valid task_type in the cluster_spec",
        ),
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}}',
            "1 is not a valid task_id for task_type chief in the cluster_spec",
        ),
    ],
)
def test_a_tf_config_that_cannot_be_followed(text, says, monkeypatch) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=says):
        estimator.RunConfig()


def test_train_has_nothing_for_an_evaluator(tmp_path, monkeypatch) -> None:
    settings = {"cluster": CLUSTER, "task": {"type": "evaluator", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(settings))
    made = estimator.DNNClassifier([10], [feature_column.numeric_column("x")], model_dir=str(tmp_path / "m"))
    with pytest.raises(RuntimeError, match=r"evaluator.*train_and_evaluate\(\)"):
        made.train(lambda: {}, steps=1)
