"""Training from brokers that die, change their leader, are of version 4, or want TLS and passwords."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import threading
import time
from typing import Iterator

import pytest

from testbed.daemons import run
from testbed.kafka.clicks import (
    IN_ORDER, ROWS, fail, files, fill, train, values, weights,
)
from testbed.kafka.cluster import Kafka
from testbed.kafka.secure import SecureKafka
from testbed.muster import Muster
from testbed.trainings import last_checkpoint
from testbed.waiting import wait


def own(kafka: Kafka) -> Iterator[Kafka]:
    """A cluster of the test's own."""
    kafka.folder.mkdir(exist_ok=True)
    yield from run(kafka)


@pytest.fixture
def one(tmp_path: pathlib.Path) -> Iterator[Kafka]:
    yield from own(Kafka(tmp_path / "broker"))


@pytest.fixture
def three(tmp_path: pathlib.Path) -> Iterator[Kafka]:
    yield from own(Kafka(tmp_path / "brokers", brokers=3))


@pytest.fixture
def secure(tmp_path: pathlib.Path) -> Iterator[SecureKafka]:
    (tmp_path / "broker").mkdir()
    yield from run(SecureKafka(tmp_path / "broker"))


def start(muster: Muster, model: pathlib.Path, command: list[object]) -> subprocess.Popen[str]:
    """Starts a training, and returns after its first checkpoint."""
    running = subprocess.Popen([muster.binary, *map(str, command)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    end = time.monotonic() + 120
    while not list(model.glob("model.ckpt-[1-9]*.index")):
        assert running.poll() is None and time.monotonic() < end, running.communicate()
        time.sleep(0.01)
    return running


def wait_for_warning(running: subprocess.Popen[str], what: str) -> None:
    """Reads the training's stderr until it warns that brokers are silent."""
    assert running.stderr is not None
    end = threading.Timer(120, running.kill)
    end.start()
    lines = []
    while not lines or (lines[-1] and not lines[-1].startswith("warning: kafka://")):
        lines.append(running.stderr.readline())
    end.cancel()
    assert what in lines[-1] and ": no answer for 1" in lines[-1], lines
    assert lines[-1].endswith(" s; this waits until 60 s\n")


def test_a_broker_that_dies_is_waited_for(muster, one, local, tmp_path) -> None:
    fill(one, "clicks", local, "jsonl")
    flags = ("--epochs", 30, "--save-steps", 300)
    ranges = muster.run("records", "ranges", one.url("clicks")).strip()
    running = start(muster, tmp_path / "k", train(local, tmp_path / "k", ranges, *flags))
    one.kill(0)
    wait_for_warning(running, "reading clicks/")
    assert running.poll() is None
    one.start_broker(0)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    muster.run(*train(local, tmp_path / "whole", ranges, *flags))
    assert last_checkpoint(tmp_path / "k") == last_checkpoint(tmp_path / "whole")
    # A training that is told to end meanwhile does so.
    command = train(local, tmp_path / "stopped", ranges, *flags)
    running = start(muster, tmp_path / "stopped", command)
    one.kill(0)
    time.sleep(2)
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 143 and "stopped by a signal at step" in errors, errors
    one.start_broker(0)
    one.wait_until_usable()
    muster.run(*command)
    assert last_checkpoint(tmp_path / "stopped") == last_checkpoint(tmp_path / "whole")


def test_a_training_that_follows_waits_for_a_broker_that_dies(muster, one, local, tmp_path) -> None:
    fill(one, "clicks", local, "jsonl")
    model = tmp_path / "k"
    running = start(muster, model, train(local, model, one.url("clicks"), "--follow", "--follow-secs", 1,
                                         "--save-secs", 1, "--json"))  # fmt: skip

    def is_saved(step: int) -> bool:
        assert running.poll() is None, running.communicate()
        return (model / f"model.ckpt-{step}.index").exists()

    wait(lambda: is_saved(ROWS // 50), "the records that were there")
    one.kill(0)
    wait_for_warning(running, "asking for new records")
    one.start_broker(0)
    one.wait_until_usable()
    one.send("clicks", values(local, "jsonl", 0)[:500])
    wait(lambda: is_saved(ROWS // 50 + 10), "the records that came")
    running.terminate()
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 143, errors
    trained = {"trained": ROWS + 500, "dropped": 0, "repeated": 0}
    assert json.loads(out.splitlines()[-1])["records"] == trained


def test_another_broker_leads_after_the_leader_has_died(muster, three, local, tmp_path) -> None:
    fill(three, "clicks", local, "jsonl")
    flags = ("--epochs", 30, "--save-steps", 300)
    ranges = muster.run("records", "ranges", three.url("clicks")).strip()
    muster.run(*train(local, tmp_path / "whole", ranges, *flags))
    running = start(muster, tmp_path / "k", train(local, tmp_path / "k", ranges, *flags))
    leader = three.leader("clicks")
    three.kill(leader)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert three.leader("clicks") != leader
    assert last_checkpoint(tmp_path / "k") == last_checkpoint(tmp_path / "whole")
    # A broker that is named first and is down does not keep a training from starting.
    muster.run(*train(local, tmp_path / "again", ranges, *flags))
    assert last_checkpoint(tmp_path / "again") == last_checkpoint(tmp_path / "whole")


def test_a_broker_of_version_4(muster, local, tmp_path) -> None:
    for kafka in own(Kafka(tmp_path / "broker", version="4.1.1")):
        fill(kafka, "clicks", local, "jsonl")
        muster.run(*train(local, tmp_path / "f", files(local, "jsonl"), *IN_ORDER))
        muster.run(*train(local, tmp_path / "k", kafka.url("clicks"), *IN_ORDER))
        assert weights(tmp_path / "k") == weights(tmp_path / "f")


def test_brokers_that_want_tls_a_password_and_permissions(muster, secure, local, tmp_path) -> None:
    fill(secure, "clicks", local, "jsonl")
    name = secure.url("clicks")
    config = secure.config(tmp_path / "kafka.config")
    flags = ("--kafka-config", config)
    assert "the user needs Read and Describe on it" in fail(muster, local, tmp_path, name, *flags)
    secure.allow("clicks", "READ", "WRITE", "DESCRIBE")
    muster.run(*train(local, tmp_path / "f", files(local, "jsonl"), *IN_ORDER))
    muster.run(*train(local, tmp_path / "k", name, *IN_ORDER, *flags))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")
    write = ("records", "to-kafka", *files(local, "jsonl"), "--to", name, *flags)
    assert "Write and Describe on the transactional id" in muster.fail(*write)
    secure.allow_transactions("muster-")
    muster.run(*write)
    wrong = secure.config(tmp_path / "wrong.config", sasl_password="guessed")
    errors = fail(muster, local, tmp_path, name, "--kafka-config", wrong)
    assert "uthentication" in errors and "guessed" not in errors
    unknown = secure.config(tmp_path / "unknown.config", ssl_ca_location="/etc/ssl/certs/ca-certificates.crt")
    assert "certificate" in fail(muster, local, tmp_path, name, "--kafka-config", unknown)
    plain = fail(muster, local, tmp_path, name)
    assert "security.protocol" in plain
