"""What programs of Spark's Python workers are told of Hadoop."""

from __future__ import annotations

import pathlib

import pytest

from muster.spark import hadoop


def test_in_a_container_of_yarn(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "__spark_conf__/__hadoop_conf__"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    environment = {"SPARK_USER": "someone"}
    hadoop.complete(environment)
    monkeypatch.chdir("/")
    hadoop.complete(environment)
    assert environment["HADOOP_CONF_DIR"] == str(folder)
    assert environment["HADOOP_USER_NAME"] == "someone"


def test_what_is_set_stays(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__spark_conf__/__hadoop_conf__").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    given = {"HADOOP_CONF_DIR": "/etc/hadoop", "HADOOP_USER_NAME": "me", "SPARK_USER": "someone"}
    environment = dict(given)
    hadoop.complete(environment)
    assert environment == given


def test_elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment: dict[str, str] = {}
    hadoop.complete(environment)
    assert environment == {}
