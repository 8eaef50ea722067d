"""muster doctor: what this machine has, and exit code 0 when training works."""

from __future__ import annotations

import json
import os

NAMES = ["training", "cores", "instructions", "memory", "gpus", "tensorflow", "tensorboard",
         "ports", "clock", "open_files", "jobs_folder", "temporary_folder", "ssh"]  # fmt: skip


def examine(muster, **environment: str) -> dict[str, dict]:
    result = muster.call("doctor", "--json", env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert [finding["name"] for finding in report["findings"]] == NAMES
    assert {finding["state"] for finding in report["findings"]} <= {"ok", "missing"}
    return {finding["name"]: finding for finding in report["findings"]}


def test_it_tells_what_is_there(muster, tmp_path) -> None:
    found = examine(muster, MUSTER_INSTRUCTIONS="baseline", TMPDIR=str(tmp_path))
    assert found["training"]["steps"] == 2
    assert found["cores"]["count"] == len(os.sched_getaffinity(0))
    assert found["instructions"]["vectors"] == "baseline"
    assert 0 < found["memory"]["free_bytes"] <= found["memory"]["bytes"]
    assert found["ports"]["port"] >= 10000
    assert found["temporary_folder"]["path"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_comes_with_the_way_to_get_it(muster, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    found = examine(
        muster, PATH=str(tmp_path / "empty"), MUSTER_TENSORFLOW=str(tmp_path / "empty")
    )
    for name in ("tensorflow", "tensorboard", "ssh"):
        assert found[name]["state"] == "missing" and found[name]["advice"], name
    (tmp_path / "file").touch()
    found = examine(muster, MUSTER_HOME=str(tmp_path / "file"))["jobs_folder"]
    assert found["state"] == "missing" and "name another folder in MUSTER_HOME" in found["advice"]
    text = muster.call("doctor", env={**os.environ, "PATH": str(tmp_path / "empty")}).stdout
    assert "- ssh" in text and "-> install an ssh client" in text
    assert max(map(len, text.splitlines())) <= 80
