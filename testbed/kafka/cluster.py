"""Kafka brokers (KRaft, each also a controller) on ports of this machine."""

from __future__ import annotations

import pathlib
import subprocess
import time
from typing import Iterable, Mapping

from confluent_kafka import (
    Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from testbed.daemons import Daemons
from testbed.maven import fetch_jars
from testbed.ports import free_port

HERE = pathlib.Path(__file__).parent
DEADLINE = 120.0
CLUSTER_ID = "bXVzdGVyLXRlc3QtYmVkLQ"  # 16 bytes in base64, as Kafka's tool makes them
JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx384m"]
LOG4J = (
    "log4j.rootLogger=WARN,err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.err.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.err.layout.ConversionPattern=%d %p %c: %m%n\n"
)


class Kafka(Daemons):
    """Started by start(), ended by stop(). Topics have as many copies as there are brokers."""

    def __init__(
        self, folder: pathlib.Path, brokers: int = 1, version: str = "3.9.1", address: str = "127.0.0.1"
    ):
        self.folder, self.version, self.address = folder, version, address
        self.jars = fetch_jars(HERE / "pom.xml", kafka=version)
        self.ports = [free_port() for _ in range(brokers)]
        self.controller_ports = [free_port() for _ in range(brokers)]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def brokers(self) -> str:
        """As in a kafka:// URL."""
        return ",".join(f"{self.address}:{port}" for port in self.ports)

    def url(self, topic: str, query: str = "") -> str:
        return f"kafka://{self.brokers}/{topic}{query}"

    def properties(self, broker: int) -> Mapping[str, object]:
        copies = len(self.ports)
        voters = (f"{i + 1}@{self.address}:{port}" for i, port in enumerate(self.controller_ports))
        return {
            "process.roles": "broker,controller",
            "node.id": broker + 1,
            "controller.quorum.voters": ",".join(voters),
            "listeners": f"PLAINTEXT://{self.address}:{self.ports[broker]},"
                         f"CONTROLLER://{self.address}:{self.controller_ports[broker]}",
            "advertised.listeners": f"PLAINTEXT://{self.address}:{self.ports[broker]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.folder / f"broker-{broker}",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": min(copies, 2),
            "transaction.state.log.num.partitions": 4,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.check.interval.ms": 1000,
            "log.cleaner.backoff.ms": 500,
            "log.segment.delete.delay.ms": 100,
            "log.initial.task.delay.ms": 500,
        }  # fmt: skip

    def client(self) -> dict[str, object]:
        """What each client needs to reach the brokers."""
        return {"bootstrap.servers": self.brokers, "log_level": 0}

    def java(self, program: str, *arguments: object) -> list[str]:
        classes = f"{self.folder}:{self.jars}/*"
        return [*JAVA, "-cp", classes, program, *map(str, arguments)]

    def start(self) -> None:
        (self.folder / "log4j.properties").write_text(LOG4J)
        for broker in range(len(self.ports)):
            path = self.folder / f"server-{broker}.properties"
            path.write_text("".join(f"{k}={v}\n" for k, v in self.properties(broker).items()))
            formatted = subprocess.run(
                self.java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", path),
                capture_output=True, text=True,
            )  # fmt: skip
            assert formatted.returncode == 0, formatted.stdout + formatted.stderr
            self.start_broker(broker)
        self.wait_until_usable()

    def start_broker(self, broker: int) -> None:
        with open(self.folder / f"broker-{broker}.log", "ab") as log:
            self.processes[broker] = subprocess.Popen(
                self.java("kafka.Kafka", self.folder / f"server-{broker}.properties"),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
            )  # fmt: skip

    def admin(self) -> AdminClient:
        return AdminClient(self.client())

    def wait_until_usable(self) -> None:
        """Until all brokers that were started are known."""
        end, last = time.monotonic() + DEADLINE, "nothing was tried"
        while time.monotonic() < end:
            for broker, process in self.processes.items():
                log = (self.folder / f"broker-{broker}.log").read_text(errors="replace")
                assert process.poll() is None, f"broker {broker} has ended: {log[-4000:]}"
            try:
                known = self.admin().list_topics(timeout=5).brokers
                if len(known) >= len(self.processes):
                    return
                last = f"{len(known)} brokers are known"
            except KafkaException as error:
                last = str(error)
            time.sleep(0.2)
        raise AssertionError(f"Kafka is not usable after {DEADLINE:.0f} s: {last}")

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        wanted = NewTopic(
            topic, num_partitions=partitions, replication_factor=len(self.ports),
            config={name.replace("_", "."): value for name, value in settings.items()},
        )  # fmt: skip
        admin = self.admin()
        admin.create_topics([wanted], operation_timeout=30)[topic].result(60)

    def add_partitions(self, topic: str, partitions: int) -> None:
        admin = self.admin()
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads the partition, as start_broker() numbers them."""
        described = self.admin().list_topics(topic, timeout=30).topics[topic]
        return int(described.partitions[partition].leader) - 1

    def delete(self, topic: str) -> None:
        admin = self.admin()
        admin.delete_topics([topic], operation_timeout=30)[topic].result(60)

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Removes the records before this offset, as retention does."""
        admin = self.admin()
        place = TopicPartition(topic, partition, offset)
        admin.delete_records([place])[place].result(60)

    def producer(self, **settings: object) -> Producer:
        """One whose messages are stored once; with transactional_id=ID in transactions."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({**self.client(), "enable.idempotence": True, "linger.ms": 5, **given})

    def send(self, topic: str, values: Iterable[bytes | str], partition: int = 0) -> None:
        self.send_messages(topic, ({"value": value} for value in values), partition)

    def send_messages(self, topic: str, messages: Iterable[Mapping[str, object]], partition: int = 0) -> None:
        """Each message as Producer.produce takes it: value, key, headers, timestamp."""
        producer = self.producer()
        for message in messages:
            while True:
                try:
                    producer.produce(topic, partition=partition, **message)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """The offset that the group has committed; -1001 if it has none."""
        consumer = Consumer({**self.client(), "group.id": group})
        found = consumer.committed([TopicPartition(topic, partition)], timeout=30)[0]
        consumer.close()
        return int(found.offset)

    def consumer(self, committed: bool = True) -> Consumer:
        return Consumer({
            **self.client(), "group.id": "tests", "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True, "auto.offset.reset": "error",
        })  # fmt: skip

    def wait_for_messages(self, topic: str, count: int) -> None:
        """Until the topic's first partition has so many messages, committed or not."""
        consumer, end = self.consumer(committed=False), time.monotonic() + DEADLINE
        while consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1] < count:
            assert time.monotonic() < end, f"{topic} has no {count} messages"
        consumer.close()

    def count(self, topic: str, partition: int = 0) -> int:
        """The offset after the partition's last committed message."""
        consumer = self.consumer()
        end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)[1]
        consumer.close()
        return int(end)

    def read(self, topic: str, partition: int = 0) -> list[bytes]:
        """The values of the partition's committed messages."""
        return [message.value() for message in self.read_messages(topic, partition)]

    def read_messages(self, topic: str, partition: int = 0) -> list[Message]:
        """The partition's committed messages."""
        consumer = self.consumer()
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages: list[Message] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{topic} is silent"
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return messages
            else:
                raise KafkaException(message.error())
