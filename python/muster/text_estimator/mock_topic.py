"""The topic of a fit as files of a folder, for tests of a map_fun without Kafka (test_mode).

A partition is a file of JSON lines. A file appears by one rename, so the last attempt that ends has it.
"""

from __future__ import annotations

import os
import uuid
from typing import Any, Generator, Iterable, Mapping, NamedTuple, Sequence

from muster import binary
from muster.text_estimator.ranges import Range

_END = "end.json"


class MockTopic(NamedTuple):
    """It has what muster.text_estimator.topic.Topic has."""

    folder: str
    name: str

    def url(self, ranges: Sequence[Range] = ()) -> str:
        return os.path.join(self.folder, self.name)

    def create(self, partitions: int) -> None:
        os.makedirs(self.url(), exist_ok=True)

    def delete(self) -> None:
        for name in os.listdir(self.url()):
            os.remove(os.path.join(self.url(), name))
        os.rmdir(self.url())

    def write(self, partition: int, records: Iterable[str]) -> Range:
        count, name = 0, self._path(f"{partition}.jsonl")
        written = f"{name}.{uuid.uuid4().hex}"
        with open(written, "w", encoding="utf-8") as file:
            for record in records:
                file.write(record + "\n")
                count += 1
        os.rename(written, name)
        return Range(partition, 0, count)

    def write_end(self, record: str) -> None:
        with open(self._path(_END), "w", encoding="utf-8") as file:
            file.write(record)

    def read_end(self) -> str:
        try:
            with open(self._path(_END), encoding="utf-8") as file:
                return file.read()
        except OSError as error:
            raise binary.MusterError(f"no fit has ended with this topic: {error}") from None

    def records(self, ranges: Sequence[Range]) -> Generator[Mapping[str, Any], None, None]:
        for part in ranges:
            path = self._path(f"{part.partition}.jsonl")
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file):
                    if part.begin <= number < part.end:
                        yield {"where": f"{path}: line {number + 1}", "record": line.rstrip("\n")}

    def _path(self, name: str) -> str:
        return os.path.join(self.url(), name)
