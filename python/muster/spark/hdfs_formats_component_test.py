"""The jar with tensorflow-hadoop's names (java/tfrecord), by spark-submit, on this machine's files and on HDFS, beside
the files of TensorFlow."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pyspark
import pytest

from muster.binary import MusterError
from muster.spark import jar
from testbed.hadoop.fixtures import hdfs
from testbed.spark import sessions
from testbed.spark.jar import built

__all__ = ["hdfs"]
LARGE = bytes(range(256)) * 12_000  # more than is allocated at once
PARTITIONS = [[b"first", b"", LARGE], [b"last \xff"]]
HEADER, FOOTER = 12, 4
SECOND = HEADER + len(PARTITIONS[0][0]) + FOOTER  # where that record begins
THIRD = SECOND + HEADER + FOOTER
WRITE = """
import json, sys, tensorflow as tf
for number, records in enumerate(json.load(open(sys.argv[1]))["partitions"]):
    for suffix, compression in (("", ""), (".gz", "GZIP")):
        with tf.io.TFRecordWriter("%s/%d%s" % (sys.argv[2], number, suffix), compression) as file:
            for record in records:
                file.write(bytes.fromhex(record))
"""


def make_files(plain: bytes, compressed: bytes) -> dict[str, bytes]:
    """What TensorFlow has written of the first partition, whole and damaged."""
    return {
        "whole": plain,
        "whole.gz": compressed,
        "empty": b"",
        "data": plain[: -FOOTER - 1] + b"!" + plain[-FOOTER:],
        "length": plain[:SECOND] + b"\1" + plain[SECOND + 1 :],
        "cut": plain[:-1],
        "cut-header": plain[: SECOND + 5],
        "cut.gz": compressed[: len(compressed) // 2],
        "other": b"a,b\n1,2\n" * 4,
    }


def described(records: list[bytes]) -> list[list[Any]]:
    return [[hashlib.sha256(record).hexdigest(), None] for record in records]


def check_read(found: dict[str, Any], url: str) -> None:
    for name in ("whole", "whole.gz"):
        assert found[name] == {"records": described(PARTITIONS[0]), "partitions": 1}
    assert found["empty"]["records"] == []
    assert found["unchecked"]["records"][:2] == described(PARTITIONS[0][:2])
    assert len(found["unchecked"]["records"]) == 3
    assert sorted(found["written"]["records"]) == sorted(described(sum(PARTITIONS, []) * 2))
    for name, byte, what in (
        ("data", THIRD, "the checksum of the record's data is wrong: the file is damaged"),
        ("length", SECOND, "the checksum of the record's length is wrong"),
        ("cut", THIRD, "the file ends within the record"),
        ("cut-header", SECOND, "the file ends within the record"),
        ("cut.gz", THIRD, "it cannot be read: "),
        ("other", 0, "the checksum of the record's length is wrong: the file is damaged, or no TFRecord file"),
    ):
        assert f"{url}/read/{name}: the record at byte {byte}: {what}" in found[name]


def test_what_tensorflow_reads_and_writes(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    python = os.environ.get("MUSTER_PYTHON_COMPONENT")
    if not python:
        pytest.skip("needs MUSTER_PYTHON_COMPONENT, a Python with TensorFlow")
    data, theirs, given = tmp_path / "data", tmp_path / "theirs", tmp_path / "given.json"
    (data / "read").mkdir(parents=True)
    theirs.mkdir()
    names = list(make_files(b"", b""))
    given.write_text(json.dumps({"partitions": [[r.hex() for r in part] for part in PARTITIONS], "names": names}))
    subprocess.run([python, "-c", WRITE, str(given), str(theirs)], check=True)
    for name, content in make_files((theirs / "0").read_bytes(), (theirs / "0.gz").read_bytes()).items():
        (data / "read" / name).write_bytes(content)
    urls = {f"file://{data}": f"file:{data}"}  # by what is given what errors say
    if pyspark.__version__.startswith("3."):  # one version starts an HDFS
        bed = request.getfixturevalue("hdfs")
        bed.put(data, f"{bed.url}/tests/formats")
        urls[f"{bed.url}/tests/formats"] = f"{bed.url}/tests/formats"

    done = subprocess.run(
        [str(pathlib.Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
         "--driver-memory", "768m", "--driver-java-options", sessions.JAVA_FLAGS,
         "--conf", "spark.ui.enabled=false", "--jars", built(),
         str(sessions.ROOT / "testbed/programs/tfrecord_formats.py"), str(given), *urls],
        env={**os.environ, "HADOOP_USER_NAME": "tester"}, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == list(urls)
    for folder, url in urls.items():
        check_read(found[folder], url)
    for number in range(len(PARTITIONS)):
        expected = (theirs / str(number)).read_bytes()
        assert (data / f"plain/part-r-{number:05d}").read_bytes() == expected
        assert gzip.decompress((data / f"gzip/part-r-{number:05d}.gz").read_bytes()) == expected


def test_where_the_jar_is(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, shared = tmp_path / "bin", tmp_path / "share/muster"
    for folder in (programs, shared):
        folder.mkdir(parents=True)
    (programs / "muster").touch(mode=0o755)
    monkeypatch.setenv("MUSTER_BINARY", str(programs / "muster"))
    monkeypatch.delenv("MUSTER_TFRECORD_JAR", raising=False)
    with pytest.raises(MusterError, match="java/tfrecord/build.sh of Muster's sources makes it"):
        jar.find()
    for folder in (shared, programs):
        (folder / "muster-tfrecord.jar").touch()
        assert jar.find() == str(folder / "muster-tfrecord.jar")
    monkeypatch.setenv("MUSTER_TFRECORD_JAR", "/nowhere.jar")
    with pytest.raises(MusterError, match="names no file: /nowhere.jar"):
        jar.find()
