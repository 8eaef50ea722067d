"""`muster fs` on a real HDFS, for people without a Hadoop client."""

from __future__ import annotations

import getpass
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from testbed.muster import Muster

MIB = 1 << 20


@pytest.fixture
def here(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of this machine: a file of 20 MiB, a small and an empty one in folders."""
    draw = random.Random(5)
    (tmp_path / "data/sub").mkdir(parents=True)
    (tmp_path / "data/large").write_bytes(draw.randbytes(20 * MIB + 7))
    (tmp_path / "data/sub/small.csv").write_text("a,b\n1,2\n")
    (tmp_path / "data/sub/empty").write_text("")
    return tmp_path


@pytest.fixture
def place(folder: str, muster: Muster) -> str:
    muster.run("fs", "mkdir", folder)
    return folder


def names(muster: Muster, place: str, *flags: str) -> list[str]:
    entries = muster.json("fs", "ls", place, *flags)
    return [entry["path"].removeprefix(f"{place}/") for entry in entries]


def test_folders_go_there_and_come_back(place: str, here: pathlib.Path, muster: Muster) -> None:
    muster.run("fs", "put", here / "data", place)
    assert names(muster, place, "--recursive") == [
        "data", "data/large", "data/sub", "data/sub/empty", "data/sub/small.csv"
    ]  # fmt: skip
    (large,) = muster.json("fs", "ls", f"{place}/data/large")
    assert (large["type"], large["bytes"]) == ("file", 20 * MIB + 7)
    assert abs(time.time() - time.mktime(time.strptime(large["modified"], "%Y-%m-%dT%H:%M:%S%z"))) < 3e5
    shown = muster.run("fs", "ls", f"{place}/data")
    assert "20,971,527" in shown and f"{place}/data/sub/" in shown
    muster.run("fs", "get", f"{place}/data", here / "back")
    for path in ("large", "sub/small.csv", "sub/empty"):
        assert (here / "back" / path).read_bytes() == (here / "data" / path).read_bytes(), path
    assert not [path for path in here.rglob("*") if ".tmp-" in path.name]


def test_the_long_list_is_hadoops(hdfs, place, here, muster) -> None:
    path = place.removeprefix(hdfs.url)
    muster.run("fs", "put", here / "data", place)
    hdfs.call("PUT", f"{path}/data/large", "SETPERMISSION", permission="600")
    hdfs.call("PUT", f"{path}/data/large", "SETOWNER", owner="somebody", group="a-group")
    hdfs.call("PUT", f"{path}/data/sub", "SETPERMISSION", permission="1777")
    hadoops = subprocess.run(
        hdfs.java("shell", "org.apache.hadoop.fs.FsShell", "-ls", f"{place}/data", properties=["-Duser.timezone=UTC"]),
        capture_output=True, text=True, env={**os.environ, "HADOOP_USER_NAME": "tester"},
    )  # fmt: skip
    _, found, lines = hadoops.stdout.partition("Found 2 items\n")
    assert found, hadoops.stdout + hadoops.stderr
    assert muster.run("fs", "ls", "-l", f"{place}/data") == lines
    large, sub = muster.json("fs", "ls", f"{place}/data")
    assert [large[key] for key in ("mode", "owner", "group", "replication")] == ["0600", "somebody", "a-group", 2]
    assert (sub["mode"], sub["owner"], sub.get("replication")) == ("1777", "tester", None)


def test_the_long_list_of_this_machine(here, muster) -> None:
    (here / "data/large").chmod(0o640)
    (line,) = muster.run("fs", "ls", "-l", here / "data/large").splitlines()
    owner, group = (here / "data/large").owner(), (here / "data/large").group()
    assert line.split()[:5] == ["-rw-r-----", "-", owner, group, str(20 * MIB + 7)]


def test_one_slash_means_the_default_file_system(hdfs, place, here, muster, monkeypatch, tmp_path) -> None:
    path = place.removeprefix(hdfs.url)
    muster.run("fs", "put", here / "data/sub", f"hdfs:{path}")
    for scheme in ("hdfs:", "hdfs://", "webhdfs:", "webhdfs://"):
        assert names(muster, f"{scheme}{path}/sub") == ["empty", "small.csv"]
        assert muster.run("fs", "cat", f"{scheme}{path}/sub/small.c*") == "a,b\n1,2\n"
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    for scheme in ("hdfs", "webhdfs", "swebhdfs"):
        said = muster.fail("fs", "ls", f"{scheme}:/x")
        assert f"{scheme}://HOST:PORT/PATH" in said and "set HADOOP_CONF_DIR" in said
        assert len(said.splitlines()) == 1


def test_files_are_printed_replaced_and_removed(place, here, muster) -> None:
    first, second = here / "1.csv", here / "2.csv"
    first.write_text("one\n")
    second.write_text("two\n")
    muster.run("fs", "put", first, second, place)
    assert muster.run("fs", "cat", f"{place}/*.csv") == "one\ntwo\n"
    assert "--force" in muster.fail("fs", "put", second, f"{place}/1.csv")
    assert muster.run("fs", "cat", f"{place}/1.csv") == "one\n"
    muster.run("fs", "put", second, f"{place}/1.csv", "--force")
    assert muster.run("fs", "cat", f"{place}/1.csv") == "two\n"
    muster.run("fs", "get", f"{place}/*.csv", here / "data")
    assert (here / "data/1.csv").read_text() == "two\n"
    assert "--recursive" in muster.fail("fs", "rm", place)
    muster.run("fs", "mkdir", f"{place}/moved")
    muster.run("fs", "mv", f"{place}/1.csv", f"{place}/2.csv", f"{place}/moved")
    muster.run("fs", "mv", f"{place}/moved/1.csv", f"{place}/3.csv")
    assert muster.run("fs", "cat", f"{place}/3.csv", f"{place}/moved/2.csv") == "two\ntwo\n"
    assert "no folder" in muster.fail("fs", "mv", f"{place}/3.csv", f"{place}/moved", f"{place}/4")
    muster.run("fs", "rm", "--recursive", f"{place}/moved")
    muster.run("fs", "rm", f"{place}/*.csv")
    assert names(muster, place) == []
    muster.run("fs", "rm", "--recursive", place)
    assert "no file matches" in muster.fail("fs", "ls", place)


def test_names_have_any_characters(place, here, muster) -> None:
    (here / "dätä é").mkdir()
    (here / "dätä é" / "名 %41#1?.csv").write_text("one\n")
    muster.run("fs", "put", here / "dätä é", place)
    muster.run("fs", "put", here / "dätä é" / "名 %41#1?.csv", f"{place}/ö.csv")
    assert names(muster, place, "--recursive") == ["dätä é", "dätä é/名 %41#1?.csv", "ö.csv"]
    assert muster.run("fs", "cat", f"{place}/ö.csv") == "one\n"
    assert muster.run("fs", "cat", f"{place}/dätä é/*.csv") == "one\n"


def test_a_user_calls_for_another(hdfs, place, here, muster, monkeypatch) -> None:
    path = place.removeprefix(hdfs.url)
    monkeypatch.setenv("HADOOP_USER_NAME", getpass.getuser())  # who may, by core-site.xml
    monkeypatch.setenv("HADOOP_PROXY_USER", "other")
    hdfs.call("PUT", path, "SETPERMISSION", permission="777")
    muster.run("fs", "put", here / "data/large", place)
    status = json.loads(hdfs.call("GET", f"{path}/large", "GETFILESTATUS"))["FileStatus"]
    assert status["owner"] == "other"
    muster.run("fs", "get", f"{place}/large", here / "back")
    assert (here / "back").read_bytes() == (here / "data/large").read_bytes()
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    said = muster.fail("fs", "ls", place)
    assert "nobody is not allowed to impersonate other" in said and len(said.splitlines()) == 1


def test_cat_ends_quietly_when_its_reader_has_left(place, here, muster) -> None:
    muster.run("fs", "put", here / "data/large", place)
    command = f"'{muster.binary}' fs cat {place}/large | head -c 5 | wc -c"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("5", "")


def test_what_is_wrong_is_said(place, here, muster) -> None:
    assert "hdfs:///PATH" in muster.refuse("fs", "put", here / "data/large", "/user/me")
    assert "no path of this machine" in muster.refuse("fs", "get", f"{place}/x", f"{place}/y")
    muster.refuse("fs", "put", here / "data/large")
    said = muster.fail("fs", "put", here / "data/large", f"{place}/nothing/x")
    assert f"muster fs mkdir {place}/nothing" in said
    said = muster.fail("fs", "put", here / "data/large", here / "data/sub", f"{place}/x")
    assert "2 files" in said and "muster fs mkdir" in said
    muster.run("fs", "mkdir", f"{place}/x/large")
    assert "exists" in muster.fail("fs", "put", here / "data/large", f"{place}/x")
    assert "this is a folder" in muster.fail("fs", "cat", f"{place}/x")


def temporary_copies(muster, place) -> set[str]:
    return {name for name in names(muster, place) if ".huge.tmp-" in name}


def test_a_killed_or_stopped_copy_leaves_no_file_of_that_name(place, here, muster) -> None:
    with open(here / "huge", "wb") as huge:
        huge.truncate(2048 * MIB)  # without disk, and large enough to be stopped in the middle
    for number in (signal.SIGKILL, signal.SIGINT):
        left = temporary_copies(muster, place)  # what was killed before
        process = subprocess.Popen(
            [muster.binary, "fs", "put", str(here / "huge"), f"{place}/huge"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        end = time.monotonic() + 60
        while temporary_copies(muster, place) <= left:
            assert process.poll() is None and time.monotonic() < end
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "huge" not in names(muster, place)
        if number == signal.SIGINT:
            assert process.returncode == 1 and "stopped" in said
    assert len(temporary_copies(muster, place)) == 1, "that of the killed one"
