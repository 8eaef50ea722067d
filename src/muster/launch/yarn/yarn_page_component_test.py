"""A job's page behind the application's tracking URL of a real YARN, and its TensorBoard."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

from testbed import tensorboard
from testbed.hadoop.yarn_jobs import MASTER, RunningJob, YarnJobs
from testbed.hadoop.yarn_training import Training
from testbed.muster import Muster

SECONDS = 20


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        return answer.read().decode()


def listening_port(pid: int) -> int:
    """The one port at which a process of this machine listens."""
    sockets = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                found.append(int(words[1].rpartition(":")[2], 16))
    (port,) = found
    return port


def ask(port: int, method: str, path: str, source: str = "127.0.0.1") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS, source_address=(source, 0))
    connection.request(method, path)
    return connection.getresponse()


def test_the_tracking_url_leads_to_the_jobs_page(jobs: YarnJobs) -> None:
    job = RunningJob(jobs, "paged")
    job.running()
    page = jobs.status("paged")["page"]
    assert page == f"{jobs.yarn.url}/proxy/{jobs.application('paged')}/"
    assert page in jobs.ok("status", "paged")
    # The ResourceManager may know its own address by another name.
    path = urllib.parse.urlparse(page).path
    assert urllib.parse.urlparse(jobs.app("paged")["trackingUrl"]).path == path
    html, status = read(page), read(f"{page}status.json")
    assert "<h1>paged: active</h1>" in html
    for task in ("worker-0", "worker-1"):
        assert re.search(f"<td>{task}</td><td>running</td>", html), html
    assert [task["task"] for task in json.loads(status)["tasks"]] == ["worker-0", "worker-1"]
    folder = jobs.home / "jobs" / "paged"
    for text in (html, status):
        assert (folder / "token").read_text().strip() not in text and "PRIVATE KEY" not in text
        assert "<script" not in text

    # Who does not come through the proxy is sent there; nobody changes anything here.
    master = jobs.wait(lambda: jobs.find("paged", MASTER), "for the ApplicationMaster")[0]
    port = listening_port(master)
    other = ask(port, "GET", "/status.json", "127.0.0.2")
    assert other.status == 302
    assert urllib.parse.urlparse(other.getheader("Location")).path == f"{path}status.json"
    assert ask(port, "POST", "/").status == 405
    assert ask(port, "GET", "/v1/status").status == 404

    job.wait_for_another(MASTER, job.kill(MASTER))

    def is_back() -> bool:
        try:
            return "paged: active" in read(page)
        except (OSError, urllib.error.HTTPError):
            return False

    jobs.wait(is_back, "for the page of the next ApplicationMaster")
    job.end()


@pytest.fixture(scope="module")
def training(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Training:
    return Training(muster, pathlib.Path(tmp_path_factory.mktemp("training")))


def test_tensorboard_of_a_job(
    jobs: YarnJobs, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = training.put(jobs, "board")
    jobs.ok(*training.on_yarn(url, "board"))
    for name, value in jobs.environment.items():
        monkeypatch.setenv(name, value)
    command = [jobs.binary, "tensorboard", "board", "--on", "yarn", "--python", sys.executable, "--",
               *tensorboard.FLAGS]  # fmt: skip
    with tensorboard.started(command) as board:
        tags = board.wait(lambda: board.get("plugin/scalars/tags"))
        assert any("loss" in tag for of_run in tags.values() for tag in of_run), tags
