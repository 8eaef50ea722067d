"""TextEstimator with brokers that want TLS, a password and permissions."""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

import pytest

from muster.binary import MusterError
from muster.text_estimator import TextEstimator
from testbed.daemons import run
from testbed.kafka.secure import SecureKafka
from testbed.spark import sessions


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    yield from run(SecureKafka(pathlib.Path(tmp_path_factory.mktemp("kafka"))))


def read_ids(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    return [row["id"] for batch in _read_data() for row in batch]


def test_settings_and_permissions(secure: SecureKafka, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    config = str(secure.config(tmp_path / "kafka.config"))
    monkeypatch.setenv("MUSTER_KAFKA_CONFIG", config)
    where = {"bootstrap_servers": secure.brokers, "topic": "texts", "delete_topic": True}
    made = TextEstimator(kafkaParam=where, mapFnParam=read_ids)
    for spark in sessions.running(spark__executorEnv__MUSTER_KAFKA_CONFIG=config):
        with pytest.raises(MusterError, match="/texts_.*: making the topic: Authorization failed: the user needs"):
            made.fit(spark.range(10))
        secure.allow_topics("texts_", "CREATE", "WRITE", "READ", "DESCRIBE", "DELETE")
        secure.allow_transactions("muster-texts_")
        assert made.fit(spark.range(0, 100, 1, 3)).collect() == [({}, list(range(100)))]
