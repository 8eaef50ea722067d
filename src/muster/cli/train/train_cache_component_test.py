"""`muster train --cache`: the same weights from compiled features, in one process and in several."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from testbed import small_disk
from testbed.muster import Muster
from testbed.trainings import last_checkpoint

MODEL = """
inputs:
  label: int
  I1: {type: float, default: 0}
  C1: {type: string, default: none}
  C2: {type: string, default: none}
label: label
columns:
  n: {numeric: I1, log1p: true}
  c1: {hash: C1, buckets: 1000}
  c2: {hash: C2, buckets: 1000}
  e: {embedding: c2, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [c1, c2]}
  dnn: {columns: [n, e], hidden_units: [8]}
train: {batch_size: 128, epochs: 2}
"""


@pytest.fixture(scope="module")
def clicks(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("clicks")
    (folder / "model.yaml").write_text(MODEL)
    muster.run("sample", "clicks", "--rows", 20000, "--out", folder / "clicks.csv")
    return folder


def words(clicks: pathlib.Path, model: pathlib.Path, *flags: object) -> list[object]:
    return ["train", clicks / "model.yaml", "--train", clicks / "clicks.csv", "--model-dir", model, "--quiet", *flags]


def test_later_trainings_end_with_the_same_bytes(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache = tmp_path / "cache"
    muster.run(*words(clicks, tmp_path / "plain"))
    for name in ("first", "second"):
        muster.run(*words(clicks, tmp_path / name, "--cache", cache))
        assert last_checkpoint(tmp_path / name) == last_checkpoint(tmp_path / "plain")
    (file,) = cache.iterdir()
    assert file.suffix == ".features" and file.stat().st_mode & 0o077 == 0
    written = file.stat().st_ino
    muster.run(*words(clicks, tmp_path / "other", "--cache", cache, "--set", "model.dnn.hidden_units=[16]"))
    assert [each.stat().st_ino for each in cache.iterdir()] == [written]


def test_a_training_reads_what_records_compile_has_made(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache = tmp_path / "cache"
    # A mean and a deviation that a first pass finds are a part of the columns.
    spec = tmp_path / "model.yaml"
    spec.write_text(MODEL.replace("log1p: true", "normalize: auto"))
    command = ("records", "compile", clicks / "clicks.csv", "--spec", spec, "--cache", cache)
    assert "Compiled 20,000 rows into" in muster.run(*command)
    (file,) = cache.iterdir()
    made = file.stat().st_ino
    assert "has the rows already" in muster.run(*command)
    (compiled,) = muster.json(*command)
    assert (compiled["folder"], compiled["new"], compiled["rows"]) == (str(cache), False, 20000)
    for place in (64, file.stat().st_size // 2):
        with file.open("r+b") as damaged:
            damaged.seek(place)
            damaged.write(b"damage")
        again = muster.call(*command)
        assert again.returncode == 0 and str(file) in again.stderr
        assert "Compiled 20,000 rows into" in again.stdout
    made = file.stat().st_ino
    assert "has the rows already" in muster.run(*command)
    for name, flags in (("plain", ()), ("cached", ("--cache", cache))):
        muster.run("train", spec, "--train", clicks / "clicks.csv", "--model-dir", tmp_path / name, "--quiet", *flags)
    assert last_checkpoint(tmp_path / "cached") == last_checkpoint(tmp_path / "plain")
    assert [each.stat().st_ino for each in cache.iterdir()] == [made]


def test_what_cannot_be_compiled_is_told(muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.csv").write_text((clicks / "clicks.csv").read_text() + "x,y\n")
    command = ("records", "compile", "--spec", clicks / "model.yaml", "--cache", tmp_path / "cache")
    assert "bad.csv:20002" in muster.fail(*command, tmp_path / "bad.csv")
    assert "none.csv" in muster.fail(*command, tmp_path / "none.csv")
    assert not list((tmp_path / "cache").iterdir())


def test_compiling_without_a_cache_is_wrong_use(muster: Muster, clicks: pathlib.Path) -> None:
    command = ("records", "compile", clicks / "clicks.csv", "--spec", clicks / "model.yaml")
    assert "--cache" in muster.refuse(*command, "--cache", "off")
    homeless = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    result = muster.call(*command, env=homeless)
    assert result.returncode == 1 and "HOME is not set; give --cache DIR" in result.stderr
    assert "(default: auto)" in " ".join(muster.run("records", "compile", "--help").split())
    assert "(default: off)" in " ".join(muster.run("train", "--help-all").split())


def test_files_of_one_name_in_two_folders_share_no_cache(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    rows = (clicks / "clicks.csv").read_text().splitlines(keepends=True)
    for folder, data in ((here, rows), (there, [rows[0], *reversed(rows[1:])])):
        folder.mkdir()
        (folder / "clicks.csv").write_text("".join(data))
        os.utime(folder / "clicks.csv", (1_700_000_000, 1_700_000_000))
    cache = tmp_path / "cache"

    def train(folder: pathlib.Path, data: object, model: str, *flags: object) -> tuple[str, bytes]:
        command = ["train", clicks / "model.yaml", "--train", data, "--model-dir", folder / model, "--quiet", *flags]
        result = muster.call(*command, cwd=folder)
        assert result.returncode == 0, result.stderr
        return last_checkpoint(folder / model)

    plain = [train(folder, "clicks.csv", "plain") for folder in (here, there)]
    assert plain[0] != plain[1]
    cached = [train(folder, "clicks.csv", "cached", "--cache", cache) for folder in (here, there)]
    assert cached == plain
    files = sorted(cache.iterdir())
    assert len(files) == 2
    for name, data in (("dot", "./clicks.csv"), ("absolute", here / "clicks.csv"), ("up", "../here/clicks.csv")):
        assert train(here, data, name, "--cache", cache) == plain[0]
    assert sorted(cache.iterdir()) == files


def test_a_relative_xdg_cache_home_is_ignored(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name, cached in (("relative", home / ".cache"), (str(tmp_path / "xdg"), tmp_path / "xdg")):
        environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": name}
        command = ["records", "compile", clicks / "clicks.csv", "--spec", clicks / "model.yaml", "--json"]
        result = muster.call(*command, cwd=tmp_path, env=environment)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout.splitlines()[-1])["folder"] == str(cached / "muster" / "features")
    assert not (tmp_path / "relative").exists()


def test_a_file_that_is_not_used_and_a_share_that_is_not_kept_are_told(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache = tmp_path / "cache"
    command = ("records", "compile", clicks / "clicks.csv", "--spec", clicks / "model.yaml", "--cache", cache)
    muster.run(*command)
    (file,) = cache.iterdir()
    file.chmod(0o620)
    again = muster.call(*command)
    assert again.returncode == 0 and "Compiled 20,000 rows" in again.stdout
    assert again.stderr.count("other users may write the file (mode 0620)") == 1
    assert file.stat().st_mode & 0o777 == 0o600
    trained = [word for word in words(clicks, tmp_path / "share", "--cache", cache, "--eval", "10%") if word != "--quiet"]
    result = muster.call(*trained)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("the features are not kept") == 1 and "--eval holds back a share" in result.stderr
    assert list(cache.iterdir()) == [file]


def test_which_values_of_a_model_file_share_a_file(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache, spec = tmp_path / "cache", tmp_path / "model.yaml"
    spec.write_text(MODEL.replace("[n, e]", "[n, m, e]").replace("  n:", "  m: {numeric: I1}\n  n:"))
    command = ("train", spec, "--train", clicks / "clicks.csv", "--quiet", "--cache", cache)
    muster.run(*command, "--model-dir", tmp_path / "model")
    count = 1
    for number, (value, shares) in enumerate(
        (
            ("train.batch_size=64", True),
            ("model.dnn.dropout=0.1", True),
            ("columns.e.combiner=sum", False),
            ("columns.e.dimension=5", False),
            ("model.dnn.columns=[n, e, m]", True),
            ("model.dnn.columns=[m, n, e]", False),
        )
    ):
        muster.run(*command, "--model-dir", tmp_path / f"model-{number}", "--set", value)
        count += not shares
        assert len(list(cache.iterdir())) == count, value


def test_workers_have_a_file_for_each_shard(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache = tmp_path / "cache"
    muster.run(*words(clicks, tmp_path / "plain", "--workers", 2))
    for name in ("first", "second"):
        muster.run(*words(clicks, tmp_path / name, "--workers", 2, "--cache", cache))
        assert last_checkpoint(tmp_path / name) == last_checkpoint(tmp_path / "plain")
        files = sorted(cache.iterdir())
        assert len(files) > 1 and all(file.suffix == ".features" for file in files)


def test_a_killed_training_leaves_no_file_that_is_used(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cache = tmp_path / "cache"
    command = [muster.binary, *map(str, words(clicks, tmp_path / "killed", "--cache", cache))]
    with subprocess.Popen(command) as training:
        end = time.monotonic() + 60
        while not (cache.exists() and any(cache.iterdir())) and time.monotonic() < end:
            time.sleep(0.001)
        training.send_signal(signal.SIGKILL)
    for left in cache.iterdir():  # as if it had lain there for hours
        if left.suffix != ".features":
            os.utime(left, (1, 1))
    muster.run(*words(clicks, tmp_path / "plain"))
    muster.run(*words(clicks, tmp_path / "after", "--cache", cache))
    assert last_checkpoint(tmp_path / "after") == last_checkpoint(tmp_path / "plain")
    assert [file.suffix for file in cache.iterdir()] == [".features"]


def test_a_folder_that_cannot_be_made_is_named(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "file").write_text("")
    error = muster.fail(*words(clicks, tmp_path / "model", "--cache", tmp_path / "file" / "cache"))
    assert "--cache" in error and str(tmp_path / "file") in error
    assert not (tmp_path / "model").exists()


def test_a_training_goes_on_where_the_cache_is_full(
    muster: Muster, clicks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    with small_disk.mounted(tmp_path / "cache", "64k") as cache:
        muster.run(*words(clicks, tmp_path / "plain"))
        command = [word for word in words(clicks, tmp_path / "full", "--cache", cache) if word != "--quiet"]
        result = muster.call(*command)
        assert result.returncode == 0, result.stderr
        (line,) = [line for line in result.stderr.splitlines() if str(cache) in line]
        assert "features are not kept" in line and "No space left" in line
        assert last_checkpoint(tmp_path / "full") == last_checkpoint(tmp_path / "plain")
        assert not list(cache.iterdir())
