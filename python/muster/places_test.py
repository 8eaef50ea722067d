"""Only paths of this machine and of HDFS are taken; a URL never becomes a local folder."""

from __future__ import annotations

import pathlib

import pytest

from muster import estimator, feature_column, places


def test_paths_of_this_machine() -> None:
    assert places.local_path("a/b c") == "a/b c"
    assert places.local_path(pathlib.Path("/a")) == "/a"
    assert places.local_path("file:///a/b") == "/a/b"
    assert places.local_path("./hdfs://a") == "./hdfs://a"


def test_paths_of_hdfs_stay_what_they_are() -> None:
    assert places.any_path("hdfs://host:9000/m") == "hdfs://host:9000/m"
    assert places.any_path("file:///a/b") == "/a/b"
    assert places.is_remote("hdfs:///m") and not places.is_remote("./hdfs:/m")
    for path in ("hdfs:/m", "webhdfs:/m", "swebhdfs:/m"):  # of the default file system
        assert places.is_remote(path) and places.any_path(path) == path
    assert places.any_path("file:/a/b") == "/a/b" and not places.is_remote("hdfs:m")
    for path in ("hdfs://host:9000/m", "hdfs:/m"):
        with pytest.raises(ValueError, match="paths of this machine"):
            places.local_path(path)


@pytest.mark.parametrize("path", ["s3://bucket/m", "gs://bucket/m", "file://host/m"])
def test_other_schemes_are_refused(path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    says = "known are paths of this machine, plain or as file:///PATH"
    with pytest.raises(ValueError, match=says):
        places.local_path(path)
    column = feature_column.numeric_column("x")
    with pytest.raises(ValueError, match=says):
        estimator.LinearClassifier([column], model_dir=path)
    with pytest.raises(ValueError, match=says):
        config = estimator.RunConfig(model_dir=path)
        estimator.LinearClassifier([column], config=config)
    assert list(tmp_path.iterdir()) == []
