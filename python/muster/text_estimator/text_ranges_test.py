"""Shares of ranges: every offset once, in parts of equal size."""

from __future__ import annotations

import random

from muster.text_estimator.ranges import Range, share


def offsets(ranges: list[Range]) -> list[tuple[int, int]]:
    return [(part.partition, at) for part in ranges for at in range(part.begin, part.end)]


def test_shares_are_the_whole() -> None:
    chance = random.Random(5)
    for _ in range(200):
        begins = [chance.randrange(5) for _ in range(chance.randrange(1, 6))]
        ranges = [Range(number, begin, begin + chance.randrange(9)) for number, begin in enumerate(begins)]
        count = chance.randrange(1, 7)
        parts = [offsets(share(ranges, index, count)) for index in range(count)]
        assert [one for part in parts for one in part] == offsets(ranges)
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_a_share_may_cut_a_partition() -> None:
    assert share([Range(0, 10, 14), Range(2, 0, 2)], 0, 2) == [Range(0, 10, 13)]
    assert share([Range(0, 10, 14), Range(2, 0, 2)], 1, 2) == [Range(0, 13, 14), Range(2, 0, 2)]
    assert share([Range(0, 0, 1)], 0, 2) == []
