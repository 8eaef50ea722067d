"""Fixtures of the component tests on a real Kafka."""

from __future__ import annotations

from testbed.kafka.clicks import local
from testbed.kafka.fixtures import kafka, topic
from testbed.kafka.followed import follow

__all__ = ["follow", "kafka", "local", "topic"]
