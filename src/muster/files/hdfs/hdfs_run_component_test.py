"""`muster run` with files, archives and a model folder on a real HDFS."""

from __future__ import annotations

import json
import pathlib
import tarfile

from testbed.muster import Muster


def test_a_job_has_files_of_hdfs(hdfs, folder: str, muster: Muster, tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    (tmp_path / "program.sh").write_text("#!/bin/sh\ncat words.txt env/inside.txt\n")
    (tmp_path / "inside.txt").write_text("inside\n")
    (tmp_path / "words.txt").write_text("words\n")
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "inside.txt", "inside.txt")
    muster.run("fs", "mkdir", folder)
    names = [tmp_path / name for name in ("program.sh", "words.txt", "env.tar.gz")]
    muster.run("fs", "put", *names, folder)
    said = muster.run("run", "--name", "j", "--workers", 2, "--file", f"{folder}/program.sh#run",
                      "--file", f"{folder}/words.txt", "--archive", f"{folder}/env.tar.gz",
                      "--model-dir", f"{folder}/model", "--", "./run")  # fmt: skip
    assert said.count("words") == 2 and said.count("inside") == 2
    status = json.loads(muster.run("status", "j", "--json"))
    assert status["model_dir"] == f"{folder}/model"
    assert not list((tmp_path / "home").rglob("*.fetched*"))


def test_what_is_not_on_hdfs_is_said(hdfs, folder: str, muster: Muster, tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    done = muster.call("run", "--name", "j", "--file", f"{folder}/nothing.sh", "--", "true")
    assert done.returncode == 2 and f"{folder}/nothing.sh" in done.stderr
    assert "does not exist" in done.stderr and not (tmp_path / "home/jobs/j").exists()
