"""Who reaches a job's coordinator: TLS by the job's own authority, and the token."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl

import pytest

from testbed.jobs import DEADLINE, Jobs


def certs(jobs: Jobs, name: str = "certs", *arguments: object) -> pathlib.Path:
    jobs.ok("certs", "--out", name, *arguments)
    return jobs.folder / name


def coordinator_url(agent_pid: int) -> str:
    words = pathlib.Path(f"/proc/{agent_pid}/cmdline").read_bytes().decode().split("\0")
    return words[words.index("--coordinator") + 1]


def ask(port: int, context: ssl.SSLContext, token: str | None) -> tuple[int, dict]:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=DEADLINE)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("GET", "/v1/status", headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body)


def test_certificates_are_for_their_owner_alone_and_never_replaced(jobs: Jobs) -> None:
    folder = certs(jobs, "certs", "--host", "10.0.0.5", "--host", "chief.example")
    assert folder.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in folder.iterdir()}
    assert names == {f"{n}{k}.pem" for n in ("ca", "server", "client") for k in ("", "-key")}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    before = (folder / "ca.pem").read_bytes()
    result = jobs.call("certs", "--out", "certs")
    assert result.returncode == 1 and "exists already" in result.stderr
    assert (folder / "ca.pem").read_bytes() == before
    result = jobs.call("certs", "--out", "other", "--host", "no host")
    assert result.returncode == 2 and "'no host' is neither a DNS name" in result.stderr


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--listen", "0.0.0.0"], 2, ["--listen", "TLS", "muster certs", "--certs"]),
        (["--listen", "::"], 2, ["TLS"]),
        (["--listen", "192.0.2.1:7000"], 2, ["muster certs --out FOLDER --host 192.0.2.1"]),
        (["--listen", "localhost"], 2, ["'localhost'", "10.0.0.5:7000"]),
        (["--listen", "127.0.0.1:70000"], 2, ["70000"]),
        (["--listen", "0.0.0.0", "--certs", "nowhere"], 2, ["nowhere"]),
        (["--listen", "0.0.0.0", "--certs", "empty"], 1, ["empty/ca.pem", "muster certs"]),
        (["--listen", "192.0.2.1", "--certs", "certs"], 1, ["192.0.2.1", "mismatch", "--host"]),
        (["--certs", "mixed"], 1, ["mixed", "127.0.0.1", "muster certs"]),
        (["--certs", "open"], 1, ["open/server-key.pem", "chmod 600"]),
    ],
)
def test_a_place_that_is_not_safe_is_refused(
    jobs: Jobs, arguments: list[str], code: int, words: list[str]
) -> None:
    for name in ("certs", "mixed", "open", "other"):
        certs(jobs, name)
    (jobs.folder / "empty").mkdir()
    (jobs.folder / "other/ca.pem").rename(jobs.folder / "mixed/ca.pem")
    (jobs.folder / "open/server-key.pem").chmod(0o640)
    result = jobs.call("run", "--name", "j", *arguments, "--", "true")
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    assert not (jobs.home / "jobs/j").exists()
    jobs.wait_nothing_runs()


def test_a_job_runs_over_tls(jobs: Jobs) -> None:
    folder = certs(jobs)
    certs(jobs, "other")
    job = jobs.detach(
        "--listen", "0.0.0.0", "--certs", folder, "--workers", 2, "--lease", 30, "--",
        "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done",
    )  # fmt: skip
    before = [jobs.running(job, f"worker-{i}") for i in range(2)]
    url = coordinator_url(before[0]["agent_pid"])
    port = int(re.fullmatch(r"https://127\.0\.0\.1:(\d+)", url)[1])
    token = (jobs.home / "jobs" / job / "token").read_text().strip()
    believes = ssl.create_default_context(cafile=folder / "ca.pem")
    assert ask(port, believes, token)[0] == 200
    assert ask(port, believes, token[::-1])[0] == 401
    assert ask(port, believes, None)[0] == 401
    for doubts in (ssl.create_default_context(cafile=jobs.folder / "other/ca.pem"),
                   ssl.create_default_context()):  # fmt: skip
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(port, doubts, token)
    with pytest.raises((http.client.HTTPException, OSError)):  # no plain HTTP
        plain = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        plain.request("GET", "/v1/status")
        plain.getresponse()
    jobs.forsake(job)  # one that takes over listens in the same way
    jobs.ok("resume", job)
    after = [jobs.running(job, f"worker-{i}") for i in range(2)]
    assert [task["pid"] for task in after] == [task["pid"] for task in before]
    assert ask(port, believes, token)[0] == 200
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()
    folder_of_job = jobs.home / "jobs" / job
    assert not list(folder_of_job.rglob("ca-key.pem"))
    secrets = {path for path in folder_of_job.rglob("*.pem")} | {folder_of_job / "token"}
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}


def test_programs_of_a_job_believe_its_own_authority_alone(jobs: Jobs) -> None:
    folder = certs(jobs)
    other = certs(jobs, "other")
    job = jobs.detach("--certs", folder, "--lease", 1, "--restarts", 1, "--", "sleep", 1000)
    task = jobs.running(job, "worker-0")
    authority = jobs.home / "jobs" / job / "ca.pem"
    authority.write_bytes((other / "ca.pem").read_bytes())
    result = jobs.call("stop", job)
    assert result.returncode == 1
    assert "TLS" in result.stderr and "certificate" in result.stderr
    assert "certificate" in jobs.status(job)["coordinator"]
    os.kill(task["pid"], signal.SIGKILL)  # the next agent reads it anew, and believes nobody

    def last_failure() -> str:  # from the journal
        failures = jobs.status(job)["failures"]
        return failures[-1]["text"] if failures else ""

    jobs.wait(lambda: "silent" in last_failure(), "for an agent that believes nobody to give up")
    assert "certificate" in last_failure()
    jobs.wait_nothing_runs()


def test_a_wrong_token_is_refused(jobs: Jobs) -> None:
    job = jobs.detach("--certs", certs(jobs), "--lease", 30, "--", "sleep", 1000)
    jobs.running(job, "worker-0")
    token = jobs.home / "jobs" / job / "token"
    right = token.read_text()
    token.write_text(right.strip()[::-1] + "\n")
    result = jobs.call("stop", job)
    assert result.returncode == 1 and "token" in result.stderr
    token.write_text(right)
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_a_chosen_port_is_taken_or_free(jobs: Jobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        for detach in ([], ["--detach"]):
            result = jobs.call("run", "--name", "j", *detach, "--listen", place, "--", "true")
            assert result.returncode == 1
            assert place in result.stderr and "another program has this port" in result.stderr
            jobs.wait_nothing_runs()
    job = jobs.detach("--listen", place, "--", "sleep", 1000)
    task = jobs.running(job, "worker-0")
    assert coordinator_url(task["agent_pid"]) == f"http://{place}"
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


LISTENER = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
own = config["cluster"]["worker"][config["task"]["index"]]
port = int(own.rpartition(":")[2])
listener = socket.create_server(("127.0.0.1", port))
print("listens", port, flush=True)
time.sleep(1000)
"""


def connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("isolate", [False, True])
def test_nobody_reaches_the_ports_of_an_isolated_job(jobs: Jobs, isolate: bool) -> None:
    (jobs.folder / "listener.py").write_text(LISTENER)
    flags = ["--isolate"] if isolate else []
    result = jobs.call("run", "--detach", *flags, "--workers", 2, "--", "python3", "listener.py")
    if isolate and "no network of the job's own is to be had" in result.stderr:
        pytest.skip("this machine's kernel makes no network namespaces here; muster says so")
    assert result.returncode == 0, result.stderr
    job = result.stdout.strip()
    log = jobs.home / f"jobs/{job}/logs/worker-0.log"
    jobs.wait(lambda: log.exists() and len(log.read_text().split()) > 1)
    port = int(log.read_text().split()[1])
    assert connects(port) is not isolate
    assert {task["phase"] for task in jobs.status(job)["tasks"]} <= {"running", "starting"}
    before = jobs.kill_coordinator(job)  # the supervisor starts it again, in the same network
    jobs.wait(lambda: jobs.coordinator(job) != before)
    incarnations = {jobs.running(job, f"worker-{i}")["incarnation"] for i in range(2)}
    assert incarnations == {1, 2}  # nothing was started again
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()
