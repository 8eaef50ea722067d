"""The columns and edge values that ids are checked on, against TensorFlow."""

from __future__ import annotations

import math
import random
import struct

from tf_columns import Column, Field, Row, Value

FIELDS = [
    Field("s", "string"),
    Field("t", "string"),
    Field("i", "int"),
    Field("j", "int"),
    Field("x", "float"),
    Field("y", "float"),
    Field("z", "float"),
    Field("ss", "string", list=True),
    Field("ii", "int", list=True),
    Field("tt", "string", list=True),
    Field("xyz", "float", list=True, length=3),
    Field("yz", "float", list=True, length=2),
    Field("weights", "float", list=True),  # of ss
    Field("counts", "int", list=True),  # of ii
]

WORDS = ["Private", "State-gov", "café", "東京", " padded ", "?", "Private ", "a" * 80]
INT_WORDS = [5, -7, 0, 9223372036854775807, -9223372036854775808, -1]
BOUNDARIES = [-1.5, 0.0, 0.1, 18.0, 25.0, 16777217.0]
MANY_BOUNDARIES = [k * 0.7 - 9 for k in range(60)]

COLUMNS = [
    Column("hash", "hash", "s", {"buckets": 1000}),
    Column("hash_one", "hash", "s", {"buckets": 1}),
    Column("hash_few", "hash", "s", {"buckets": 5}),
    Column("hash_power", "hash", "s", {"buckets": 65536}),
    Column("hash_most", "hash", "s", {"buckets": 2147483647}),
    Column("hash_int", "hash", "j", {"buckets": 1000}),
    Column("hash_strings", "hash", "ss", {"buckets": 1000}),
    Column("hash_ints", "hash", "ii", {"buckets": 997}),
    Column("words", "vocabulary", "s", {"words": WORDS}),
    Column("words_oov", "vocabulary", "s", {"words": WORDS, "oov_buckets": 7}),
    Column("words_default", "vocabulary", "s", {"words": WORDS, "default": 2}),
    Column("words_list", "vocabulary", "ss", {"words": WORDS, "oov_buckets": 3}),
    Column("int_words", "vocabulary", "j", {"words": INT_WORDS}),
    Column("int_words_oov", "vocabulary", "j", {"words": INT_WORDS, "oov_buckets": 5}),
    Column("int_words_list", "vocabulary", "ii", {"words": INT_WORDS, "oov_buckets": 5}),
    Column("identity", "identity", "i", {"buckets": 2147483647}),
    Column("identity_default", "identity", "j", {"buckets": 60, "default": 7}),
    Column("identity_list", "identity", "ii", {"buckets": 60, "default": 7}),
    Column("bucket", "bucketized", "x", {"boundaries": BOUNDARIES}),
    Column("bucket_int", "bucketized", "j", {"boundaries": BOUNDARIES}),
    Column("bucket_many", "bucketized", "x", {"boundaries": MANY_BOUNDARIES}),
    Column("cross", "cross", options={"keys": ["s", "t"], "buckets": 1000}),
    Column("cross_turned", "cross", options={"keys": ["t", "s"], "buckets": 1000}),
    Column("cross_int", "cross", options={"keys": ["j", "s"], "buckets": 1000}),
    Column("cross_key", "cross", options={"keys": ["s", "t"], "buckets": 1000, "hash_key": 5}),
    Column("cross_bucket", "cross", options={"keys": ["bucket", "s", "t"], "buckets": 1000}),
    Column("cross_bucket_last", "cross", options={"keys": ["s", "t", "bucket"], "buckets": 1000}),
    Column("cross_words", "cross", options={"keys": ["bucket", "words"], "buckets": 1000}),
    Column("cross_words_oov", "cross", options={"keys": ["words_oov", "t"], "buckets": 1000}),
    Column("cross_identity", "cross", options={"keys": ["t", "identity_default"], "buckets": 99}),
    Column("cross_lists", "cross", options={"keys": ["t", "ss", "tt"], "buckets": 100000}),
    Column(
        "cross_all",
        "cross",
        options={"keys": ["i", "ii", "words", "ss", "bucket"], "buckets": 2147483647},
    ),
    Column("cross_words_list", "cross", options={"keys": ["words_list", "ii"], "buckets": 5000}),
    Column("bucket_list", "bucketized", "xyz", {"boundaries": BOUNDARIES, "shape": 3}),
    Column("cross_bucket_list", "cross", options={"keys": ["bucket_list", "s"], "buckets": 5000}),
]

WEIGHTED = [
    Column("weighted", "weighted", "words_list", {"weights": "weights"}),
    Column("weighted_hash", "weighted", "hash_strings", {"weights": "weights"}),
    Column("counted", "weighted", "int_words_list", {"weights": "counts"}),
    Column("weighted_cross", "weighted", "cross_one_list", {"weights": "weights"}),
    Column("cross_one_list", "cross", options={"keys": ["ss", "s"], "buckets": 5000}),
]

NUMBERS = [
    Column("plain", "numeric", "y"),
    Column("scaled", "numeric", "y", {"mean": 38.641982, "stddev": 13.697271}),
    Column("scaled_int", "numeric", "j", {"mean": -5.5, "stddev": 0.3}),
    Column("log", "numeric", "z", {"log1p": True, "mean": 1.25, "stddev": 2.5}),
    Column("hash_one_hot", "indicator", "hash_few"),
    Column("words_one_hot", "indicator", "words"),
    Column("list_many_hot", "indicator", "words_list"),
    Column("bucket_one_hot", "indicator", "bucket"),
    Column("pair", "numeric", "yz", {"mean": 2.5, "stddev": 1.25, "shape": 2}),
    Column("bucket_many_hot", "indicator", "bucket_list"),
]

WEIGHTED_NUMBERS = [
    Column("weighted_hot", "indicator", "weighted"),
    Column("counted_hot", "indicator", "counted"),
]

STRINGS: list[bytes] = [
    b"",
    *(word.encode() for word in WORDS),
    b"-1",
    b"0",
    b"?",
    b" ",
    b"\t",
    b"a\nb",
    b'"quoted", and more',
    b"\x00",
    b"nul\x00inside",
    b"\xff\xfe not utf-8",
    "naïve Ωmega".encode(),
    "😀".encode(),
    *(bytes(97 + k % 26 for k in range(n)) for n in (1, 3, 4, 7, 8, 9, 16, 17, 32, 33, 64, 65, 129)),
    b"z" * 1000,
]
INTS = [0, 1, -1, -2, 5, -7, 7, 9, 10, 59, 60, 100, 16777215, 16777216, 16777217, 2147483646]
EXTREME_INTS = [
    *(sign * 2**k + d for k in (31, 32, 53, 62) for sign in (1, -1) for d in (-1, 0, 1)),
    9223372036854775807,
    -9223372036854775808,
]


def float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _neighbours(value: float) -> list[float]:
    """The float32 below, at and above."""
    if value == 0:
        return [-1e-38, -1e-45, -0.0, 0.0, 1e-45, 1e-38]
    bits = struct.unpack("i", struct.pack("f", value))[0]
    return [struct.unpack("f", struct.pack("i", bits + d))[0] for d in (-1, 0, 1)]


FLOATS = [
    math.nan,
    math.inf,
    -math.inf,
    3.4028234663852886e38,
    -3.4028234663852886e38,
    *(near for b in BOUNDARIES + MANY_BOUNDARIES[:3] for near in _neighbours(b)),
]


def random_string(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return rng.choice(STRINGS)
    if rng.random() < 0.5:
        return bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz-_ ") for _ in range(rng.randrange(24)))
    return rng.randbytes(rng.randrange(40))


def random_int(rng: random.Random) -> int:
    choice = rng.random()
    if choice < 0.4:
        return rng.choice(INTS)
    if choice < 0.7:
        return rng.randrange(-3, 70)
    return rng.randrange(-(2**31), 2**31 - 2)


def random_float(rng: random.Random) -> float:
    choice = rng.random()
    if choice < 0.3:
        return rng.choice(FLOATS)
    if choice < 0.6:
        return float32(rng.uniform(-10, 40))
    return float32(rng.uniform(-1, 1) * 10 ** rng.uniform(-6, 12))


def random_row(rng: random.Random) -> Row:
    def several(draw) -> list[Value]:
        return [draw(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]

    row = {
        "s": random_string(rng),
        "t": random_string(rng),
        "i": random_int(rng),
        "j": random_int(rng) if rng.random() < 0.7 else rng.choice(EXTREME_INTS),
        "x": random_float(rng),
        "y": float32(rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 6)),
        "z": float32(rng.choice((0, 1)) * 10 ** rng.uniform(-6, 9)),
        "ss": several(random_string),
        "ii": several(random_int),
        "tt": several(random_string),
    }
    return completed(row)


def completed(row: Row) -> Row:
    """With the lists that are made of the row's other values."""
    return {
        **row,
        "xyz": [row["x"], row["y"], row["z"]],
        "yz": [row["y"], row["z"]],
        "weights": [(k - 1) / 4 for k in range(len(row["ss"]))],
        "counts": [3 - 2 * k for k in range(len(row["ii"]))],
    }


def edge_rows(seed: int = 1) -> list[Row]:
    """Every edge value once in a scalar field and once in a list, the rest of the row at random."""
    rng = random.Random(seed)
    rows: list[Row] = []
    for name, values in (("s", STRINGS), ("t", STRINGS), ("i", INTS), ("j", EXTREME_INTS), ("x", FLOATS)):
        rows.extend({**random_row(rng), name: value} for value in values)
    rows.extend({**random_row(rng), "ss": [value, b"", value]} for value in STRINGS)
    rows.extend({**random_row(rng), "ii": [value, -1]} for value in INTS + EXTREME_INTS)
    rows.append({**random_row(rng), "ss": [], "ii": [], "tt": []})
    return [completed(row) for row in rows]
