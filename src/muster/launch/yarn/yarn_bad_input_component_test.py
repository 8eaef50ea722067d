"""What is wrong with a submission to YARN is said in one line; nothing is left of it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import urllib.error
from typing import Sequence

import pytest

from testbed.hadoop.cluster import configuration
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.muster import Muster
from testbed.ports import free_port
from testbed.waiting import wait

MODEL = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x]}}
"""


def staged(jobs: YarnJobs) -> list[str]:
    try:
        listed = jobs.yarn.hdfs.call("GET", "/user/tester/.muster", "LISTSTATUS", user="tester")
    except urllib.error.HTTPError:
        return []
    names = [entry["pathSuffix"] for entry in json.loads(listed)["FileStatuses"]["FileStatus"]]
    return [name for name in names if name != "programs"]  # which all jobs share


def refuse(jobs: YarnJobs, *arguments: object, command: Sequence[str] = ("true",)) -> str:
    before = staged(jobs)
    result = jobs.call("run", "--on", "yarn", "--detach", "--name", "bad", *arguments, "--", *command)
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and len(lines) == 1, result.stderr
    assert staged(jobs) == before
    assert not (jobs.home / "jobs" / "bad").exists()
    return lines[0]


def test_a_queue_that_does_not_exist(jobs: YarnJobs) -> None:
    said = refuse(jobs, "--queue", "nowhere")
    assert "--queue nowhere: YARN refuses the job: " in said and "unknown queue" in said
    assert said.endswith("; its queues are default, other"), said


def test_more_memory_than_a_node_has(jobs: YarnJobs) -> None:
    said = refuse(jobs, "--memory", "1Ti")
    assert "worker wants 1048576 MiB of memory" in said and "at most 8192 MiB" in said


def test_more_memory_than_the_cluster_has(jobs: YarnJobs) -> None:
    jobs.ok("run", "--on", "yarn", "--memory", "6Gi", "--workers", 4, "--detach", "--name", "large", "--", "true")
    said = "containers of 6144 MB and 1 core, for which YARN has no room in queue root.default"
    wait(lambda: said in jobs.ok("status", "large"), "the containers")
    jobs.ok("stop", "large")
    jobs.wait_until_nothing_runs("large")


def test_more_cores_than_a_node_has(jobs: YarnJobs) -> None:
    assert "wants 17 cores" in refuse(jobs, "--cores", 17)


def test_a_node_label_that_does_not_exist(jobs: YarnJobs) -> None:
    said = refuse(jobs, "--node-label", "nowhere")
    assert "--node-label (yarn cluster --list-node-labels" in said and "java.lang" not in said, said


def configure(jobs: YarnJobs, **yarn: object) -> None:
    conf = jobs.folder / "conf"
    shutil.copytree(pathlib.Path(jobs.environment["HADOOP_CONF_DIR"]), conf)
    (conf / "yarn-site.xml").write_text(configuration(yarn))
    jobs.environment["HADOOP_CONF_DIR"] = str(conf)


def test_a_resource_manager_that_does_not_answer(jobs: YarnJobs) -> None:
    port = free_port()
    configure(jobs, **{"yarn.resourcemanager.webapp.address": f"127.0.0.1:{port}"})
    said = refuse(jobs)
    assert f"127.0.0.1:{port}" in said and "yarn-site.xml" in said


def test_a_host_that_does_not_exist(jobs: YarnJobs) -> None:
    configure(jobs, **{"yarn.resourcemanager.hostname": "no-such-host.invalid"})
    assert "no-such-host.invalid:8088" in refuse(jobs)


def test_a_configuration_without_yarn(jobs: YarnJobs) -> None:
    configure(jobs)
    assert "yarn.resourcemanager.hostname" in refuse(jobs)


def test_no_configuration(jobs: YarnJobs) -> None:
    del jobs.environment["HADOOP_CONF_DIR"]
    jobs.environment.pop("HADOOP_HOME", None)
    assert "set HADOOP_CONF_DIR" in refuse(jobs)


def test_no_application_master(jobs: YarnJobs) -> None:
    jobs.environment["MUSTER_YARN_JAR"] = "/nowhere.jar"
    assert "MUSTER_YARN_JAR" in refuse(jobs)


def test_an_application_master_of_another_version(jobs: YarnJobs, jar: str) -> None:
    other = jobs.folder / "muster-yarn.jar"
    other.write_bytes(pathlib.Path(jar).read_bytes().replace(b"muster-master-", b"muster-mastre-"))
    jobs.environment["MUSTER_YARN_JAR"] = str(other)
    said = refuse(jobs)
    assert str(other) in said and "of another version of muster" in said


def test_a_user_without_a_home_of_theirs(jobs: YarnJobs) -> None:
    jobs.yarn.hdfs.call("PUT", "/user/other", "MKDIRS", permission="700")
    jobs.environment["HADOOP_USER_NAME"] = "other"
    said = refuse(jobs)
    assert "cannot make the staging folder" in said and "/user/other/.muster" in said
    assert "user=other" in said, said


def test_a_name_node_that_does_not_answer(jobs: YarnJobs) -> None:
    port = free_port()
    configure(jobs, **{"yarn.resourcemanager.webapp.address": jobs.yarn.url.removeprefix("http://")})
    site = configuration({"dfs.namenode.http-address": f"127.0.0.1:{port}"})
    (jobs.folder / "conf" / "hdfs-site.xml").write_text(site)
    said = refuse(jobs)
    assert f"127.0.0.1:{port}" in said and "cannot make the staging folder" in said


def test_a_keytab_where_there_is_no_kerberos(jobs: YarnJobs) -> None:
    (jobs.folder / "keytab").write_text("x")
    assert "wants no Kerberos tickets" in refuse(jobs, "--keytab", "keytab")


def test_gpus_that_the_cluster_does_not_have(jobs: YarnJobs) -> None:
    said = refuse(jobs, "--gpus", 1)
    assert "wants 1 GPUs (yarn.io/gpu)" in said and "at most 0" in said


def test_a_file_that_does_not_exist(jobs: YarnJobs) -> None:
    assert "nothing.py" in refuse(jobs, "--file", "nothing.py")


@pytest.mark.parametrize("flag", ["--hosts=a", "--isolate", "--volume=a=/", "--listen=127.0.0.1"])
def test_flags_of_other_places(jobs: YarnJobs, flag: str) -> None:
    result = jobs.call("run", "--on", "yarn", flag, "--", "true")
    assert result.returncode == 2 and "--on" in result.stderr


@pytest.mark.parametrize("verb", ["train", "predict", "evaluate"])
def test_data_that_is_not_on_hdfs(jobs: YarnJobs, muster: Muster, verb: str) -> None:
    nothing = f"{jobs.yarn.hdfs.url}/user/tester/no-such/part-*"
    (jobs.folder / "model.yaml").write_text(MODEL)
    if verb == "train":
        words = ["train", "model.yaml", "--train", nothing, "--model-dir", f"{jobs.yarn.hdfs.url}/user/tester/m"]
    else:
        (jobs.folder / "rows.csv").write_text("x,y\n1,1\n2,0\n")
        trained = jobs.folder / "trained"
        muster.run("train", jobs.folder / "model.yaml", "--train", jobs.folder / "rows.csv", "--model-dir", trained)
        words = [verb, str(trained), "--data", nothing]
        words += ["--out", f"{jobs.yarn.hdfs.url}/user/tester/scores"] if verb == "predict" else []
    before = staged(jobs)
    result = jobs.call(*words, "--on", "yarn", "--workers", 2, "--job", "nodata")
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and len(lines) == 1, result.stderr
    assert f"no file matches '{nothing}'" in lines[0] and ("--train" if verb == "train" else "--data") in lines[0]
    assert staged(jobs) == before and not (jobs.home / "jobs" / "nodata").exists()


def test_a_program_that_the_nodes_do_not_have(jobs: YarnJobs) -> None:
    result = jobs.call("run", "--on", "yarn", "--memory", "128Mi", "--name", "missing", "--", "no-such-program")
    assert result.returncode == 1
    assert "no-such-program" in result.stderr
    jobs.wait_until_nothing_runs("missing")


def test_an_archive_that_is_none(jobs: YarnJobs) -> None:
    (jobs.folder / "env.tar.gz").write_text("this is no archive")
    assert "env.tar.gz" in refuse(jobs, "--archive", "env.tar.gz#env")


def test_an_archive_that_is_cut_off(jobs: YarnJobs) -> None:
    (jobs.folder / "packed").mkdir()
    (jobs.folder / "packed" / "inner.txt").write_bytes(os.urandom(100_000))
    jobs.pack("env.tar.gz", "packed")
    path = jobs.folder / "env.tar.gz"
    path.write_bytes(path.read_bytes()[:50_000])
    result = jobs.call("run", "--on", "yarn", "--memory", "128Mi", "--name", "cut", "--restarts", "0",
                       "--archive", "env.tar.gz#env", "--", "true")  # fmt: skip
    assert result.returncode == 1
    assert "env.tar.gz" in result.stderr
    jobs.wait_until_nothing_runs("cut")
