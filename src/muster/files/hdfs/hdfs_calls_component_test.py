"""How often Muster asks a real HDFS, and how long it waits for servers that fail or are not ready."""

from __future__ import annotations

import http.client
import json
import pathlib
import subprocess
import time
import urllib.parse
from collections.abc import Iterator

import pytest

from testbed.hadoop.cluster import Hdfs
from testbed.muster import Muster

MIB = 1 << 20


@pytest.fixture
def place(folder: str, muster: Muster) -> str:
    muster.run("fs", "mkdir", folder)
    return folder


def open_append(hdfs: Hdfs, path: str) -> http.client.HTTPConnection:
    """Another client in the middle of an append: it has the file's lease until it is closed."""
    answer = json.loads(hdfs.call("POST", path, "APPEND", user="tester", noredirect="true"))
    target = urllib.parse.urlsplit(answer["Location"])
    assert target.hostname and target.port
    connection = http.client.HTTPConnection(target.hostname, target.port)
    connection.putrequest("POST", f"{target.path}?{target.query}")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", "1000")
    connection.endheaders()
    connection.send(b"x" * 10)
    time.sleep(1)
    return connection


def start(muster: Muster, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([muster.binary, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def test_a_file_read_in_order_takes_a_call_for_each_8_mib(hdfs, place, muster, tmp_path) -> None:
    size = 256 * MIB
    (tmp_path / "large").write_bytes(bytes(range(256)) * (size // 256))
    muster.run("fs", "put", tmp_path / "large", place)
    kinds = ("GetBlockLocations", "FileInfoOps")
    before = [hdfs.metric("NameNodeActivity", kind) for kind in kinds]
    muster.run("fs", "get", f"{place}/large", tmp_path / "back")
    after = [hdfs.metric("NameNodeActivity", kind) for kind in kinds]
    calls = {kind: b - a for kind, a, b in zip(kinds, before, after)}
    # Calls of the DataNodes that serve the ranges are among them.
    assert sum(calls.values()) <= size / (8 * MIB), calls
    compared = subprocess.run(["cmp", tmp_path / "large", tmp_path / "back"])
    assert compared.returncode == 0


def test_safe_mode_is_waited_for_with_a_word(hdfs, place, muster, tmp_path) -> None:
    (tmp_path / "x").write_text("x")
    hdfs.safe_mode("enter")
    try:
        process = start(muster, "fs", "put", tmp_path / "x", f"{place}/x")
        assert process.stderr
        said = process.stderr.readline()
        assert "waiting up to" in said and "safe mode" in said, said
        assert process.poll() is None
    finally:
        hdfs.safe_mode("leave")
    _, more = process.communicate(timeout=60)
    assert (process.returncode, more) == (0, "")
    assert muster.run("fs", "cat", f"{place}/x") == "x"


def test_a_name_node_that_knows_no_data_node_yet_is_waited_for(hdfs, place, muster, tmp_path) -> None:
    (tmp_path / "x").write_text("x")
    muster.run("fs", "put", tmp_path / "x", f"{place}/old")
    for name in ("data-0", "data-1", "name"):
        hdfs.kill(name)
    hdfs.start_name_node()
    try:
        hdfs.wait_until_it_answers()
        hdfs.safe_mode("leave")  # which it would not leave itself before it knows the blocks
        waiting = {
            "Failed to find datanode": start(muster, "fs", "put", tmp_path / "x", f"{place}/new"),
            "No active nodes contain this block": start(muster, "fs", "cat", f"{place}/old"),
        }
        for why, process in waiting.items():
            assert process.stderr
            said = process.stderr.readline()
            assert "waiting up to" in said and why in said, said
            assert process.poll() is None
    finally:
        for number in range(2):
            hdfs.start_data_node(number)
        hdfs.wait_until_usable()
    for process in waiting.values():
        _, more = process.communicate(timeout=150)
        assert (process.returncode, more) == (0, "")
    assert muster.run("fs", "cat", f"{place}/new") == "x"


def test_permissions_are_named(hdfs, place, muster, tmp_path) -> None:
    (tmp_path / "x").write_text("x")
    hdfs.call("PUT", "/closed", "MKDIRS")
    hdfs.call("PUT", "/closed", "SETPERMISSION", permission="755")
    said = muster.fail("fs", "put", tmp_path / "x", f"{hdfs.url}/closed/x")
    assert "Permission denied: user=tester, access=WRITE" in said and '"/closed"' in said
    said = muster.fail("fs", "rm", "--recursive", f"{hdfs.url}/closed")
    assert "Permission denied by sticky bit: user=tester" in said


def test_a_quota_of_space_is_named_and_nothing_is_left(hdfs, place, muster, tmp_path) -> None:
    path = place.removeprefix(hdfs.url)
    hdfs.call("PUT", path, "SETQUOTABYSTORAGETYPE", storagetype="DISK", storagespacequota=str(MIB))
    hdfs.call("PUT", path, "SETQUOTA", namespacequota="1000", storagespacequota=str(MIB))
    (tmp_path / "x").write_bytes(b"x" * 5 * MIB)
    said = muster.fail("fs", "put", tmp_path / "x", f"{place}/x")
    assert "quota" in said.lower() and len(said.splitlines()) == 1, said
    assert muster.run("fs", "ls", place) == ""


@pytest.fixture
def trained(place: str, muster: Muster, tmp_path: pathlib.Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A training whose events go to HDFS, and how to end it."""
    (tmp_path / "model.yaml").write_text(
        "inputs: {x: float, y: int}\nlabel: y\ncolumns: {x: {numeric: x}}\n"
        "model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}\ntrain: {batch_size: 4}\n"
    )
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,1\n0,0\n" * 2000)
    process = start(muster, "train", tmp_path / "model.yaml", f"{place}/model", "--train",
                    tmp_path / "rows.csv", "--epochs", 100_000_000, "--save-steps", 10**9,
                    "--summary-steps", 20_000, "--histogram-steps", 0)  # fmt: skip
    yield f"{place}/model", process
    if process.poll() is None:
        process.kill()
    process.wait()


def find_events(muster: Muster, model: str) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        listed = muster.call("fs", "ls", f"{model}/events.out.tfevents.*", "--json")
        if listed.returncode == 0:
            return json.loads(listed.stdout.splitlines()[0])["path"]
        time.sleep(0.2)
    raise AssertionError("no event file")


def count(muster: Muster, path: str) -> int:
    return int(muster.json("fs", "ls", path)[0]["bytes"])


def test_events_are_readable_after_ten_seconds_and_cost_few_calls(hdfs, muster, trained) -> None:
    model, process = trained
    events = find_events(muster, model)
    ops = hdfs.metric("NameNodeActivity", "FilesAppended")
    sizes = []
    for _ in range(3):
        sizes.append(count(muster, events))
        time.sleep(10)
    assert sizes[0] < sizes[1] < sizes[2]
    appends = hdfs.metric("NameNodeActivity", "FilesAppended") - ops
    assert 3 <= appends <= 8, "one each five seconds"
    process.terminate()
    process.communicate(timeout=60)


def test_an_append_that_was_interrupted_does_not_hold_up_a_training(hdfs, muster, trained) -> None:
    """HDFS keeps the lease of a DataNode that died in the middle of an append for a minute."""
    model, process = trained
    events = find_events(muster, model)
    other = open_append(hdfs, events.removeprefix(hdfs.url))
    before, started = count(muster, events), time.monotonic()
    while count(muster, events) <= before + 10:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < started + 30
        time.sleep(0.5)
    other.close()
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 or "stopped" in said, said
    data = subprocess.run([muster.binary, "fs", "cat", events], capture_output=True).stdout
    assert b"xxxxxxxxxx" not in data


def test_a_data_node_is_killed_while_a_file_is_written(hdfs, place, muster, tmp_path) -> None:
    (tmp_path / "large").write_bytes(b"abcdefgh" * (60 * MIB // 8))
    process = start(muster, "fs", "put", tmp_path / "large", f"{place}/large")
    while ".large.tmp-" not in muster.run("fs", "ls", place):
        assert process.poll() is None
    hdfs.kill("data-0")
    try:
        _, said = process.communicate(timeout=150)
        if process.returncode == 0:
            assert count(muster, f"{place}/large") == 60 * MIB
            muster.run("fs", "get", f"{place}/large", tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == (tmp_path / "large").read_bytes()
        else:
            assert "large" in said and muster.run("fs", "ls", place) == ""
    finally:
        hdfs.start_data_node(0)
        hdfs.wait_until_usable()
