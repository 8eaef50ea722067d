"""Custom hooks and listeners are called at the program's steps; without TensorFlow."""

from __future__ import annotations

import itertools
import math
import pathlib

import pytest

from muster import estimator, feature_column
from testbed.linear_classifier import BATCH, batches, endless, make


def two():
    return itertools.islice(batches(), 2)


class Recorder(estimator.SessionRunHook, estimator.CheckpointSaverListener):
    """Records its calls with the global step; as a listener it has another name.

    does: functions to call at certain calls, by the text of the call, such as "after_run 3".
    """

    def __init__(self, calls, name="", does=None) -> None:
        self.calls, self.name, self.does = calls, name, does or {}
        self.values = []

    def note(self, call, step="", *arguments):
        text = f"{self.name}{call} {step}".rstrip()
        self.calls.append(text)
        return self.does[text](*arguments) if text in self.does else None

    def begin(self) -> None:
        self.note("begin")

    def after_create_session(self, session, coord) -> None:
        self.note("create", session.run("global_step"), coord)

    def before_run(self, run_context):
        self.note("before_run", run_context.session.run("global_step"), run_context)
        return estimator.SessionRunArgs({"step": "global_step", "loss": ["head/loss:0"]})

    def after_run(self, run_context, run_values) -> None:
        self.values.append(run_values.results)
        self.note("after_run", run_context.session.run("global_step"), run_context)

    def before_save(self, session, global_step_value) -> None:
        self.note("before_save", global_step_value)

    def after_save(self, session, global_step_value):
        return self.note("after_save", global_step_value)

    def end(self, session, global_step_value=None) -> None:
        self.note("end", session.run("global_step"))


def test_a_training_calls_hooks_and_listeners_in_their_order(tmp_path) -> None:
    calls = []
    hook, listener = Recorder(calls), Recorder(calls, "L.")
    model = make(tmp_path, save_checkpoints_steps=2)
    model.train(endless, hooks=[hook], steps=3, saving_listeners=[listener])
    # tf.estimator's order and steps are checked in hook_calls_component_test.py.
    expected = "L.begin|begin|L.before_save 0|L.after_save 0|create 0|before_run 0|after_run 1"
    expected += "|before_run 1|L.before_save 2|L.after_save 2|after_run 2|before_run 2|after_run 3"
    expected += "|L.before_save 3|L.after_save 3|L.end 3|end 3"
    assert calls == expected.split("|")
    assert [values["step"] for values in hook.values] == [1, 2, 3]
    assert all(0 < values["loss"][0] < 2 for values in hook.values)
    del calls[:]
    model.train(endless, hooks=[hook], steps=1, saving_listeners=[listener])
    # When a training continues, its checkpoint exists already.
    expected = "L.begin|begin|create 3|before_run 3|L.before_save 4|L.after_save 4|after_run 4"
    assert calls == [*expected.split("|"), "L.end 4", "end 4"]


def test_when_the_data_ends_after_run_is_skipped(tmp_path) -> None:
    calls = []
    make(tmp_path).train(two, hooks=[Recorder(calls)])
    assert calls[-3:] == ["after_run 2", "before_run 2", "end 2"]


def test_a_saver_hooks_listeners_come_first(tmp_path) -> None:
    calls = []
    saver = estimator.CheckpointSaverHook(
        str(tmp_path), save_steps=5, listeners=[Recorder(calls, "A.")]
    )
    make(tmp_path).train(endless, hooks=[saver], steps=5, saving_listeners=[Recorder(calls, "B.")])
    saves = [
        f"{who}.{call} {step}"
        for step in (0, 5)
        for call in ("before_save", "after_save")
        for who in "AB"
    ]
    assert calls == ["A.begin", "B.begin", *saves, "A.end 5", "B.end 5"]


def test_hooks_and_listeners_can_stop_a_training(tmp_path) -> None:
    def stop(context) -> None:
        context.request_stop()

    # A stop that is requested before a step takes effect after the step.
    for folder, at in (("a", "before_run 3"), ("b", "after_run 4")):
        model = make(tmp_path / folder)
        model.train(endless, hooks=[Recorder([], does={at: stop})])
        assert model.latest_checkpoint().endswith("model.ckpt-4")
    model = make(tmp_path / "c", save_checkpoints_steps=5)
    model.train(endless, saving_listeners=[Recorder([], does={"after_save 10": lambda: True})])
    assert model.latest_checkpoint().endswith("model.ckpt-10")
    model = make(tmp_path / "d")
    model.train(endless, hooks=[Recorder([], does={"create 0": lambda c: c.request_stop()})])
    assert model.latest_checkpoint().endswith("model.ckpt-1")


def fail(*_) -> None:
    raise KeyError("told to")


@pytest.mark.parametrize("at", ["begin", "create 0", "before_run 2", "after_run 2"])
def test_what_a_hook_raises_comes_out_and_nothing_more_is_called(tmp_path, at) -> None:
    calls = []
    model = make(tmp_path)
    with pytest.raises(KeyError, match="told to"):
        model.train(endless, hooks=[Recorder(calls, does={at: fail})])
    assert calls[-1] == at
    saved = {path.name for path in tmp_path.glob("*.index")}
    assert saved == (set() if at == "begin" else {"model.ckpt-0.index"})
    model.train(endless, steps=2)
    assert model.latest_checkpoint().endswith("model.ckpt-2")


def test_a_listener_that_raises_before_the_save_prevents_it(tmp_path) -> None:
    listener = Recorder([], does={"before_save 2": fail})
    with pytest.raises(KeyError, match="told to"):
        make(tmp_path, save_checkpoints_steps=2).train(endless, saving_listeners=[listener])
    assert [path.name for path in tmp_path.glob("*.index")] == ["model.ckpt-0.index"]


def test_evaluations_call_hooks_with_the_step_of_the_checkpoint(tmp_path) -> None:
    model = make(tmp_path).train(endless, steps=7)
    calls = []
    hook = Recorder(calls)
    first = model.evaluate(batches, steps=2, hooks=[hook])
    run = ["before_run 7", "after_run 7"]
    assert calls == ["begin", "create 7", *run, *run, "end 7"]
    assert first["loss"] == pytest.approx(sum(values["loss"][0] for values in hook.values) / 2)
    del calls[:]
    stop = Recorder(calls, does={"after_run 7": lambda context: context.request_stop()})
    assert model.evaluate(batches, hooks=[stop])["global_step"] == 7
    assert calls == ["begin", "create 7", *run, "end 7"]
    del calls[:]
    model.evaluate(two, hooks=[Recorder(calls)])
    assert calls == ["begin", "create 7", *run, *run, "before_run 7", "end 7"]


class Quiet(estimator.SessionRunHook):
    def __init__(self, calls) -> None:
        self.calls = calls

    def before_run(self, run_context) -> None:
        self.calls.append("before_run")

    def after_run(self, run_context, run_values) -> None:
        assert run_values.results is None
        self.calls.append("after_run")

    def end(self, session) -> None:
        self.calls.append("end")


@pytest.mark.parametrize("single", [True, False])
def test_predictions_call_hooks_batch_by_batch(tmp_path, single) -> None:
    model = make(tmp_path).train(endless, steps=7)
    calls = []
    # The rows of a batch come after its after_run, and before the next before_run.
    found = model.predict(two, hooks=[Quiet(calls)], yield_single_examples=single)
    for _ in found:
        calls.append("row")
    run = ["before_run", "after_run", *["row"] * (BATCH if single else 1)]
    assert calls == [*run, *run, "before_run", "end"]
    del calls[:]
    found = model.predict(two, hooks=[Quiet(calls)])
    next(found)
    found.close()
    assert "end" not in calls


def test_train_and_evaluate_calls_the_hooks_of_both(tmp_path) -> None:
    calls = []
    listener, train, evaluate = (Recorder(calls, name) for name in ("L.", "T.", "E."))
    model = make(tmp_path, save_checkpoints_steps=2)
    estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(endless, max_steps=4, hooks=[train], saving_listeners=[listener]),
        estimator.EvalSpec(two, hooks=[evaluate], start_delay_secs=0, throttle_secs=0),
    )

    def evaluation(step) -> list:
        run = [f"E.before_run {step}", f"E.after_run {step}"]
        return ["E.begin", f"E.create {step}", *run, *run, f"E.before_run {step}", f"E.end {step}"]

    for step in (2, 4):
        at = calls.index(f"L.after_save {step}")
        assert calls[at + 1 : at + 9] == evaluation(step)
    assert calls.count("E.begin") == 2
    assert calls[-2:] == ["L.end 4", "T.end 4"]


def test_a_hook_sees_its_checkpoint_and_a_loss_that_is_not_finite(tmp_path) -> None:
    class Look(estimator.CheckpointSaverListener):
        def after_save(self, session, global_step_value) -> None:
            assert pathlib.Path(f"{tmp_path}/model.ckpt-{global_step_value}.index").is_file()

    def wild():
        for features, labels in endless():
            yield {"x": [1e30 * value for value in features["x"]]}, labels

    seen = []

    class Loss(estimator.SessionRunHook):
        def before_run(self, run_context):
            return estimator.SessionRunArgs("loss")

        def after_run(self, run_context, run_values) -> None:
            seen.append(run_values.results)

    steep = estimator.optimizers.SGD(1.0)
    columns = [feature_column.numeric_column("x")]
    model = estimator.LinearRegressor(columns, model_dir=tmp_path, optimizer=steep)
    hooks = [Loss(), estimator.NanTensorHook(fail_on_nan_loss=False)]
    model.train(wild, hooks=hooks, steps=50, saving_listeners=[Look()])
    assert math.isnan(seen[-1]) and len(seen) < 50


def fetching(fetches, feed=None):
    class Fetching(estimator.SessionRunHook):
        def before_run(self, run_context):
            return estimator.SessionRunArgs(fetches, feed_dict=feed)

    return Fetching()


class Runs(estimator.SessionRunHook):
    def after_run(self, run_context, run_values) -> None:
        run_context.session.run(["global_step", "dense/kernel"])


class Graph(estimator.SessionRunHook):
    def end(self, session) -> None:
        session.graph.get_tensor_by_name("x")


@pytest.mark.parametrize(
    "hook, kind, says",
    [
        (fetching("dense/kernel:0"), ValueError, "Fetching.before_run asks for 'dense/kernel:0'"),
        (fetching([None]), ValueError, "Fetching.before_run asks for None: there is no TensorFlow"),
        (fetching("loss", {"x": 1}), ValueError, "Fetching.before_run: feed_dict"),
        (Runs(), ValueError, "session.run asks for 'dense/kernel'.*load_checkpoint"),
        (Graph(), AttributeError, "session.graph: there is no TensorFlow graph"),
        (object(), TypeError, "Hooks must be a SessionRunHook, given: <object"),
    ],
)
def test_what_needs_a_graph_is_refused_by_name(hook, kind, says, tmp_path) -> None:
    with pytest.raises(kind, match=says):
        make(tmp_path).train(two, hooks=[hook])


@pytest.mark.parametrize(
    "hook, says",
    [
        (estimator.StopAtStepHook(3), "StopAtStepHook does nothing in evaluate: say steps=N"),
        (estimator.LoggingTensorHook(["loss"], 1), "LoggingTensorHook does nothing in evaluate"),
    ],
)
def test_hooks_of_a_training_are_refused_by_an_evaluation(hook, says, tmp_path) -> None:
    model = make(tmp_path).train(two)
    with pytest.raises(ValueError, match=says):
        model.evaluate(two, hooks=[hook])
    with pytest.raises(ValueError, match=says.replace("evaluate", "predict")):
        next(model.predict(two, hooks=[hook]))


def test_what_is_no_listener_is_refused(tmp_path) -> None:
    says = "saving_listeners must be a list of CheckpointSaverListener, given: 1"
    with pytest.raises(TypeError, match=says):
        make(tmp_path).train(two, saving_listeners=[1])
    with pytest.raises(TypeError, match=says):
        estimator.CheckpointSaverHook("x", save_steps=3, listeners=[1])
    assert not (tmp_path / "model.yaml").exists()
