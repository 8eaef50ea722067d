"""Which GPUs nodes get, with a program in place of nvidia-smi that knows three of them."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from muster.tfos import gpu_info, gpus, util
from muster.tfos.reservation import TFOS_SERVER_HOST, Client, Server
from muster.tfos.TFSparkNode import run

SMI = """#!/bin/sh
case "$1" in
  --query-gpu=index) printf '0\\n1\\n2\\n' ;;
  --query-gpu=index,uuid) printf '0, GPU-a\\n1, GPU-b\\n2, GPU-c\\n' ;;
  --query-compute-apps=gpu_uuid) cat "{busy}" ;;
esac
"""
NODES = {"chief": ["h1:1"], "worker": ["h1:2", "h1:3", "h2:1"]}


@pytest.fixture
def busy(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The file with the GPUs on which processes run; none at first."""
    found = tmp_path / "busy"
    found.touch()
    (tmp_path / "nvidia-smi").write_text(SMI.format(busy=found))
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "as before")
    monkeypatch.setattr(gpu_info, "_PAUSE_SECONDS", 0.0)
    return found


@pytest.fixture
def no_gpu(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "as before")


def test_gpus_that_are_free(busy: pathlib.Path) -> None:
    assert gpu_info.is_gpu_available()
    assert gpu_info.get_gpus(2) == "0,1"
    assert gpu_info.get_gpus(1, 2, format=gpu_info.AS_LIST) == ["2"]
    busy.write_text("GPU-a\nGPU-a\n")
    assert gpu_info.get_gpus(1, 1) == "1"  # as if 0 were free: process 0 may have just taken it
    assert gpu_info.get_gpus(1, 0) == "2"
    assert gpu_info.get_gpus(2, 0) == "1,2"
    with pytest.raises(RuntimeError, match="3 GPUs are wanted, and only 2 of 3 are free"):
        gpu_info.get_gpus(3)
    with pytest.raises(ValueError, match="format 'words'"):
        gpu_info.get_gpus(1, format="words")


def test_a_machine_without_gpus(no_gpu: None) -> None:
    assert not gpu_info.is_gpu_available()
    assert gpus.visible(None, [], NODES, "chief", 0) == ""
    with pytest.raises(RuntimeError, match=r"worker-1 wants 1 GPUs \(num_gpus\) and gets 0"):
        gpus.visible(1, [], NODES, "worker", 1)
    util.single_node_env()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_nodes_of_a_machine_get_different_gpus(busy: pathlib.Path) -> None:
    def of(job: str, index: int) -> str:
        return gpus.visible(None, [], NODES, job, index)

    assert [of("chief", 0), of("worker", 0), of("worker", 1), of("worker", 2)] == ["0", "1", "2", "0"]
    assert gpus.visible(0, [], NODES, "worker", 0) == ""
    util.single_node_env(1, 2, ["h1:7", "h2:7", "h1:7"])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    util.single_node_env(0, 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_what_spark_gives_comes_first(busy: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpus.visible(None, ["4", "5"], NODES, "worker", 0) == "4,5"
    assert gpus.visible(1, ["4", "5"], NODES, "worker", 0) == "4"
    with pytest.raises(RuntimeError, match="wants 3 GPUs"):
        gpus.visible(3, ["4", "5"], NODES, "worker", 0)
    monkeypatch.setenv("SPARK_EXECUTOR_POD_IP", "10.0.0.1")  # a pod sees GPUs of others, too
    assert gpus.visible(None, [], NODES, "worker", 0) == ""


def test_the_arguments_of_programs() -> None:
    from argparse import Namespace

    assert gpus.wanted(Namespace(num_gpus=2)) == 2
    assert gpus.wanted({"num_gpus": "1"}) == 1
    assert [gpus.wanted(args) for args in (Namespace(), {}, ["--num_gpus"], None)] == [None] * 4


def test_a_node_of_a_cluster_that_a_program_makes(
    busy: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TFOS_SERVER_HOST, "127.0.0.1")
    monkeypatch.setenv("TF_CONFIG", "")
    server = Server(2)
    address = server.start()
    other = Client(address)
    other.register({"executor_id": 0, "job_name": "chief", "host": "elsewhere", "port": 1})
    meta = {
        "server_addr": address, "default_fs": "file://", "working_dir": str(tmp_path),
        "cluster_template": {"chief": [0], "worker": [1]},
    }  # fmt: skip
    seen: list[Any] = []

    def program(args: Any, ctx: Any) -> None:
        seen.append((args, ctx.job_name, ctx.task_index, ctx.num_workers, ctx.tmp_socket))
        seen.append((ctx.cluster_spec["chief"], os.environ["CUDA_VISIBLE_DEVICES"]))
        seen.append('"type": "worker"' in os.environ["TF_CONFIG"])

    try:
        assert run(program, {"a": 1}, meta, False, None, ["input"], False)(iter([1])) == []
    finally:
        other.close()
        server.stop()
    assert seen == [({"a": 1}, "worker", 0, 2, None), (["elsewhere:1"], "0"), True]
    with pytest.raises(ValueError, match="background: only TFCluster.run"):
        run(program, {}, meta, False, None, [], True)
