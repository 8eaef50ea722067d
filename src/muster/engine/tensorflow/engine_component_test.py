"""The engine over a host process with the current TensorFlow, against Python's TensorFlow."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import time

import numpy as np
import pytest

from testbed.exported_graphs import ExportedGraph

BATCHES = 3


@pytest.fixture(scope="module")
def wide_deep(tmp_path_factory: pytest.TempPathFactory) -> ExportedGraph:
    return ExportedGraph.make("wide_deep", tmp_path_factory.mktemp("wide_deep"))


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> ExportedGraph:
    """Small, with ids computed of strings and a shared table."""
    return ExportedGraph.make("computed", tmp_path_factory.mktemp("computed"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ExportedGraph:
    """The same with dropout."""
    return ExportedGraph.make("dropout", tmp_path_factory.mktemp("dropout"))


@pytest.mark.parametrize("kind", ["wide_deep", "computed", "small"])
def test_gradients_are_pythons(kind: str, request: pytest.FixtureRequest) -> None:
    graph: ExportedGraph = request.getfixturevalue(kind)
    graph.run("results", BATCHES)
    trained = sum(v["trainable"] or v["kind"] == "state" for v in graph.variables())
    assert graph.compare("results", BATCHES, absolute=1e-6) == BATCHES * trained
    given, expected = graph.tensors("results"), graph.tensors("batches")
    gradient = expected["expected/0/step/grad_000"]
    assert len(set(expected["expected/0/step/rows_000"])) < len(gradient), "no id came twice"
    assert np.abs(gradient).max() > 1e-4
    evaluated = expected["expected/0/evaluate/output_logits"].ravel()
    np.testing.assert_allclose(given["predict/logits"], evaluated, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(given["predict/loss_sum"],
                               [expected["expected/0/evaluate/loss_sum"]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["wide_deep", "small"])
def test_same_bytes_twice(kind: str, request: pytest.FixtureRequest) -> None:
    graph: ExportedGraph = request.getfixturevalue(kind)
    graph.run("once", 50, 0.1)
    graph.run("twice", 50, 0.1)
    assert graph.bytes_of("once") == graph.bytes_of("twice")
    weights, initial = graph.tensors("once"), graph.tensors("export/weights")
    assert not np.array_equal(weights["weights/wide"].ravel(), initial["wide"].ravel())


def test_tables_of_any_length_give_the_same_gradients(small: ExportedGraph) -> None:
    small.run("short", BATCHES)
    small.run("long", BATCHES, 0, 100_000)
    short, long = small.tensors("short"), small.tensors("long")
    names = [name for name in short if name.startswith("step/")]
    assert names
    for name in names:
        np.testing.assert_array_equal(short[name], long[name], err_msg=name)


def host_of(probe: subprocess.Popen[str]) -> int:
    """The process id of the probe's host; 0 when there is none now."""
    children = pathlib.Path(f"/proc/{probe.pid}/task/{probe.pid}/children").read_text()
    return int(children.split()[0]) if children.split() else 0


def test_killed_hosts_change_no_byte(small: ExportedGraph) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    steps = 40_000
    small.run("undisturbed", steps, 0.01)
    probe = subprocess.Popen(small.command("disturbed", steps, 0.01), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=small.environment())
    killed = 0
    try:
        # One fewer than a host is started for one request, should all be killed while they load.
        while killed < 2 and probe.poll() is None:
            time.sleep(1 + chance.random())
            pid = host_of(probe)
            if pid > 0 and probe.poll() is None:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        said, errors = probe.communicate(timeout=300)
    finally:
        probe.kill()
        probe.wait()
    assert probe.returncode == 0, errors
    # One that is killed after the last step is not replaced.
    assert 2 <= json.loads(said)["starts"] <= killed + 1, said
    assert small.bytes_of("undisturbed") == small.bytes_of("disturbed")


def test_the_host_dies_with_its_owner(small: ExportedGraph) -> None:
    probe = subprocess.Popen(small.command("none", 10_000_000), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=small.environment(), text=True)
    try:
        while (pid := host_of(probe)) == 0:
            assert probe.poll() is None
            time.sleep(0.01)
    finally:
        probe.kill()
        probe.wait()
    until = time.monotonic() + 60
    while pathlib.Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "the host lives on"
        time.sleep(0.01)


def test_an_export_of_something_else_is_refused(small: ExportedGraph) -> None:
    step = small.export / "step/saved_model.pb"
    whole = step.read_bytes()
    try:
        step.write_bytes(whole[: len(whole) // 2])
        error = small.fail(1)
        assert f"load {small.export / 'step'} with TensorFlow 2." in error, error
    finally:
        step.write_bytes(whole)
    manifest = small.export / "model.json"
    text = manifest.read_text(encoding="utf-8")
    try:
        manifest.write_text(text.replace("step/input_x:0", "step/input_y:0"), encoding="utf-8")
        assert "has no tensor step/input_y:0" in small.fail(1)
    finally:
        manifest.write_text(text, encoding="utf-8")


def test_where_there_is_no_tensorflow(small: ExportedGraph, tmp_path: pathlib.Path) -> None:
    error = small.fail(1, MUSTER_TENSORFLOW=str(tmp_path))
    assert "libtensorflow_cc.so.2" in error and str(tmp_path) in error
    (tmp_path / "libtensorflow_cc.so.2").write_bytes(b"not a library")
    error = small.fail(1, MUSTER_TENSORFLOW=str(tmp_path))
    assert "install the tensorflow package made for this machine" in error
