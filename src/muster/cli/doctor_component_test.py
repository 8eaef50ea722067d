"""muster doctor: what this machine has, and exit code 0 when training works."""

from __future__ import annotations

import json
import os
import re

NAMES = ["training", "cores", "instructions", "memory", "huge_pages", "gpus", "tensorflow", "tensorboard",
         "ports", "clock", "open_files", "jobs_folder", "temporary_folder", "tls", "ssh",
         "parquet", "kafka", "hadoop", "yarn", "tensorflow_hdfs", "kubernetes"]  # fmt: skip


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
    assert found["huge_pages"]["mode"] in ("always", "madvise", "never", "")
    assert found["ports"]["port"] >= 10000
    assert found["tls"]["text"].startswith(found["tls"]["library"])
    assert re.fullmatch(r"OpenSSL 3\.\d+\.\d+", found["tls"]["library"])
    assert found["tls"]["kernel"] is ("MUSTER_KERNEL_TLS=1" in found["tls"]["text"])
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


SITE = """<configuration>
  <property><name>fs.defaultFS</name><value>hdfs://nn1.example:8020</value></property>
  <property><name>yarn.resourcemanager.hostname</name><value>rm1.example</value></property>
</configuration>
"""


def test_clusters_are_known_by_their_configuration(muster, tmp_path) -> None:
    """Without a connection: none of these machines is there."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/core-site.xml").write_text(SITE)
    (tmp_path / "config").write_text("{}")
    found = examine(
        muster, HADOOP_CONF_DIR=str(tmp_path / "conf"), HADOOP_USER_NAME="ada", MUSTER_YARN_JAR="",
        KUBECONFIG=str(tmp_path / "config"), MUSTER_PARQUET_PYTHON="/bin/false", HOME=str(tmp_path),
    )  # fmt: skip
    assert found["hadoop"]["text"] == f"{tmp_path}/conf: hdfs://nn1.example:8020 as ada"
    assert "muster-yarn.jar" in found["yarn"]["text"]
    assert found["kubernetes"]["text"] == f"by KUBECONFIG, {tmp_path}/config"
    assert found["parquet"]["text"].startswith("/bin/false has no pyarrow")
    assert "MUSTER_PARQUET_PYTHON" in found["parquet"]["advice"]
    found = examine(muster, HADOOP_CONF_DIR="", HADOOP_HOME="", KUBECONFIG="", HOME=str(tmp_path))
    assert "set HADOOP_CONF_DIR" in found["hadoop"]["advice"]
    assert "set KUBECONFIG" in found["kubernetes"]["advice"]
    (tmp_path / "conf/core-site.xml").write_text("<configuration>")
    found = examine(muster, HADOOP_CONF_DIR=str(tmp_path / "conf"))
    assert found["hadoop"]["state"] == "missing" and "core-site.xml" in found["hadoop"]["text"]
