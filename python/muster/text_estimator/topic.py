"""The topic of a fit in Kafka. Partition 0 has one record, the end record, which says what the others
have; each of the others has the rows of a partition of the DataFrame.

The end record is written when all rows are committed, so a topic has one or is not whole. It names
ranges of offsets: what an attempt of Spark has written whose result Spark did not take is in none.
"""

from __future__ import annotations

import os
import time
import uuid
from typing import Any, Collection, Dict, Generator, Iterable, Mapping, NamedTuple, Sequence

from muster import binary
from muster.text_estimator.ranges import Range

FIRST_PARTITION = 1  # of rows
_END = Range(0, 0, 1)
_REACH_SECONDS = 10.0  # for a first answer of any broker
_ANSWER_SECONDS = 60.0
_COMMIT_SECONDS = 120.0
_ABORT_SECONDS = 10.0
_FULL_SECONDS = 0.1  # how long a full queue is waited for at once
# A transaction must end within the 15 minutes that brokers allow by default.
_TRANSACTION_SECONDS = 60.0
_TRANSACTION_MILLIS = 900_000
_CONFIG = "MUSTER_KAFKA_CONFIG"  # docs/kafka.md


class Topic(NamedTuple):
    """Where the records of a fit are. Any machine of the job may use it."""

    brokers: str  # HOST:PORT,HOST:PORT
    name: str

    def url(self, ranges: Sequence[Range] = ()) -> str:
        """The topic, or ranges of it, as docs/kafka.md names them."""
        named = ",".join(f"{part.partition}:{part.begin}-{part.end}" for part in ranges)
        return f"kafka://{self.brokers}/{self.name}" + (f"?ranges={named}" if named else "")

    def create(self, partitions: int) -> None:
        """Makes the topic, for so many partitions of rows. Raises MusterError if the brokers refuse it."""
        wanted = _client().admin.NewTopic(self.name, num_partitions=FIRST_PARTITION + partitions)
        self._ask("making the topic", "create_topics", wanted)

    def delete(self) -> None:
        """Removes the topic."""
        self._ask("deleting the topic", "delete_topics", self.name)

    def _ask(self, what: str, call: str, argument: Any) -> None:
        admin = _client().admin.AdminClient(_settings(self.brokers))
        self._list_topics(admin)  # an answer to all else is waited for longer
        times = {"operation_timeout": _ANSWER_SECONDS, "request_timeout": _ANSWER_SECONDS}
        try:
            getattr(admin, call)([argument], **times)[self.name].result(2 * _ANSWER_SECONDS)
        except Exception as error:  # KafkaException, or a TimeoutError of the future
            raise _failed(self, what, error) from None

    def _list_topics(self, client: Any) -> Collection[str]:
        """Those that the user may see. Raises MusterError if no broker answers."""
        try:
            found: Collection[str] = client.list_topics(timeout=_REACH_SECONDS).topics
            return found
        except _client().KafkaException as error:
            what = f"no broker of {self.brokers} has answered within {_REACH_SECONDS:.0f} s (kafkaParam's bootstrap_servers)"
            raise _failed(self, what, error) from None

    def write(self, partition: int, records: Iterable[str]) -> Range:
        """Writes a partition's records; returns their range when they are committed.

        Of several calls for one partition the last one that begins writes; the others raise
        MusterError, and what they have written is in no range.
        """
        writer = _Writer(self, partition)
        try:
            for record in records:
                writer.append(record)
            return writer.finish()
        except BaseException:
            writer.abort()
            raise

    def write_end(self, record: str) -> None:
        """Writes the end record, after which the topic is whole."""
        self.write(_END.partition, [record])

    def read_end(self) -> str:
        """The end record. Raises MusterError if there is none."""
        if not self._has_end():
            raise binary.MusterError(
                f"{self.url()} has no end record, which a fit writes after its last row: name the topic of a "
                "fit that has ended, or leave reuse_topic out to write the rows anew"
            )
        return str(next(self.records([_END]))["record"])

    def _has_end(self) -> bool:
        kafka = _client()
        # It asks only, and joins no group.
        consumer = kafka.Consumer({**_settings(self.brokers), "group.id": "muster"})
        try:
            if self.name not in self._list_topics(consumer):
                raise binary.MusterError(f"{self.url()}: there is no such topic, or its user may not see it")
            place = kafka.TopicPartition(self.name, _END.partition)
            _, end = consumer.get_watermark_offsets(place, _ANSWER_SECONDS)
            return bool(end >= _END.end)
        except kafka.KafkaException as error:
            raise _failed(self, "asking for its end record", error) from None
        finally:
            consumer.close()

    def records(self, ranges: Sequence[Range]) -> Generator[Mapping[str, Any], None, None]:
        """The records in order, each with "where" it is and its text as "record".

        Nothing is committed, and there is no group: any number of readers may read the same.
        """
        if ranges:
            yield from binary.stream(
                ["records", "cat", self.url(ranges), "--data-format", "jsonl", "--json"]
            )


def fresh(topic: Topic) -> Topic:
    """A topic that no other fit has: the time and some letters are added to the name."""
    now = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
    return topic._replace(name=f"{topic.name}_{now}_{uuid.uuid4().hex[:6]}")


class _Writer:
    """Transactions of one attempt to write a partition."""

    def __init__(self, topic: Topic, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._begin, self._end, self._count = -1, 0, 0
        self._marks = 0  # a committed transaction's mark takes an offset
        self._error: Any = None  # of a message
        kafka = _client()
        self._errors = kafka.KafkaException
        self._producer = kafka.Producer({
            "linger.ms": 20, "client.id": "muster",
            **_settings(topic.brokers),
            "enable.idempotence": True, "transaction.timeout.ms": _TRANSACTION_MILLIS,
            "transactional.id": f"muster-{topic.name}-{partition}",
        })  # fmt: skip
        self._call(self._producer.init_transactions, _COMMIT_SECONDS)
        self._open = False
        self._opened = 0.0

    def append(self, record: str) -> None:
        now = time.monotonic()
        if self._open and now - self._opened > _TRANSACTION_SECONDS:
            self._commit()
        if not self._open:
            self._call(self._producer.begin_transaction)
            self._open, self._opened = True, now
        end = now + _COMMIT_SECONDS
        while True:
            try:
                self._producer.produce(
                    self._topic.name, record.encode(), partition=self._partition,
                    on_delivery=self._delivered,
                )  # fmt: skip
                break
            except BufferError:
                if time.monotonic() > end:
                    raise self._failed("the brokers take no more messages") from None
                self._call(self._producer.poll, _FULL_SECONDS)
            except self._errors as error:
                raise self._failed(error) from None
        self._call(self._producer.poll, 0)
        self._check()

    def finish(self) -> Range:
        if self._open:
            self._commit()
        if self._count == 0:
            return Range(self._partition, 0, 0)
        # All that is between our first and our last record must be ours.
        if self._end - self._begin != self._count + self._marks - 1:
            raise self._failed("another writer has written to this partition at the same time")
        return Range(self._partition, self._begin, self._end)

    def abort(self) -> None:
        """Takes back what is not committed, as far as that can be done."""
        if not self._open:
            return
        self._open = False
        try:
            self._producer.purge()
            self._producer.abort_transaction(_ABORT_SECONDS)
        except self._errors:
            pass  # the broker aborts it when its time is over, or another attempt begins

    def _commit(self) -> None:
        end = time.monotonic() + _COMMIT_SECONDS
        while len(self._producer) > 0 and time.monotonic() < end:
            self._call(self._producer.flush, _FULL_SECONDS)
            self._check()
        self._call(self._producer.commit_transaction, _COMMIT_SECONDS)
        self._check()
        self._open = False
        self._marks += 1

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._error = self._error or error
            return
        if self._begin < 0:
            self._begin = message.offset()
        self._end = message.offset() + 1
        self._count += 1

    def _check(self) -> None:
        if self._error is not None:
            raise self._failed(self._error)

    def _call(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except self._errors as error:
            raise self._failed(error) from None

    def _failed(self, error: Any) -> binary.MusterError:
        return _failed(self._topic, f"writing partition {self._partition}", error)


def _failed(topic: Topic, what: str, error: Any) -> binary.MusterError:
    inner = error.args[0] if getattr(error, "args", None) else error
    text = inner.str() if hasattr(inner, "str") else str(error) or type(error).__name__
    if "authorization failed" in text.lower():
        text = (
            f"{text.rstrip('.')}: the user needs Create, Write, Read and Describe (Delete for delete_topic) on "
            "topics that begin with the name in kafkaParam, and Write and Describe on transactional ids that "
            "begin with muster- and this name"
        )
    return binary.MusterError(f"{topic.url()}: {what}: {text}")


def _client() -> Any:
    """The module confluent_kafka."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise ImportError(
            f"muster.text_estimator writes to Kafka with confluent-kafka: pip install confluent-kafka "
            f"on the driver and on all executors: {error}"
        ) from None
    return confluent_kafka


def _settings(brokers: str) -> Dict[str, Any]:
    """How a client reaches the brokers: the settings of the file that MUSTER_KAFKA_CONFIG names."""
    settings: Dict[str, Any] = {"log_level": 0}
    path = os.environ.get(_CONFIG)
    if path:
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, equals, value = line.strip().partition("=")
                if equals and not key.startswith("#"):
                    settings[key.strip()] = value.strip()
    return {**settings, "bootstrap.servers": brokers}
