"""Ranges of records: what a fit has written, and the share of it that a worker or a thread reads."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence


class Range(NamedTuple):
    """The records of a partition from offset `begin` up to, but without, `end`."""

    partition: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


def share(ranges: Sequence[Range], index: int, count: int) -> List[Range]:
    """The part of the ranges that reader `index` of `count` reads.

    The parts of all readers are the ranges, each offset once; their sizes differ by one at most.
    """
    total = sum(part.size for part in ranges)
    first, last = total * index // count, total * (index + 1) // count
    found, at = [], 0
    for part in ranges:
        begin = part.begin + min(max(first - at, 0), part.size)
        end = part.begin + min(max(last - at, 0), part.size)
        if begin < end:
            found.append(Range(part.partition, begin, end))
        at += part.size
    return found
