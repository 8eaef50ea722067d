"""Feature columns: names, model files, and TensorFlow's errors."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from muster import columns
from muster import feature_column as fc
from muster.batch_stream import StreamColumn
from muster.model_file import ModelFile, SampleInput, input_uses, stream_columns, walk
from muster.normalizer import Normalizer, log1p


def entries(folder: pathlib.Path, *given: columns.FeatureColumn, inputs=("a", "b")) -> dict:
    """Returns the columns of the model file."""
    file = ModelFile(folder)
    file.add_inputs([StreamColumn(name, "string") for name in inputs], {}, {})
    file.part(given)
    return json.loads(file.text("label", {}))["columns"]


@pytest.mark.parametrize(
    "function, mean, stddev, of_log",
    [
        (None, 0, 1, False),
        (lambda x: (x - 38.5) / 13.25, 38.5, 13.25, False),
        (lambda x: x / 4, 0, 4, False),
        (lambda x: 2 * x + 1, -0.5, 0.5, False),
        (lambda x: 1 + x, -1, 1, False),
        (log1p, 0, 1, True),
        (np.log1p, 0, 1, True),
        (lambda x: (log1p(x) - 3) / 2, 3, 2, True),
    ],
)
def test_normalizers(tmp_path, function, mean, stddev, of_log) -> None:
    column = fc.numeric_column("a", normalizer_fn=function)
    assert column.normalizer == Normalizer(of_log, mean, stddev)
    entry = entries(tmp_path, column)["a"]
    found = (entry.get("mean", 0), entry.get("stddev", 1), entry.get("log1p", False))
    assert found == (mean, stddev, of_log)


@pytest.mark.parametrize(
    "function", [lambda x: x * x, lambda x: -1 * x, lambda x: 5, lambda x: x / 0, lambda x: abs(x)]
)
def test_normalizers_that_need_python_are_refused(function) -> None:
    with pytest.raises(ValueError, match="numeric_column 'a': the trained model must compute"):
        fc.numeric_column("a", normalizer_fn=function)


def test_entries_of_the_model_file(tmp_path) -> None:
    age = fc.numeric_column("age", default_value=3)
    words = fc.categorical_column_with_vocabulary_list("a", ["x", b"y"], num_oov_buckets=2)
    buckets = fc.bucketized_column(age, [1, 2.5])
    cross = fc.crossed_column([buckets, "a", words], 10, hash_key=7)
    made = [
        fc.embedding_column(words, 8, combiner="sum"),
        fc.indicator_column(cross),
        fc.categorical_column_with_identity("b", 5, default_value=0),
        fc.categorical_column_with_hash_bucket("b", 9),
    ]
    assert entries(tmp_path, *made) == {
        "a": {"vocabulary": "a", "words": ["x", "y"], "oov_buckets": 2},
        "a_embedding": {"embedding": "a", "dimension": 8, "combiner": "sum"},
        "age_bucketized": {"bucketized": "age", "boundaries": [1, 2.5]},
        "a_ids": {"vocabulary": "a", "words": ["x", "y"], "oov_buckets": 2},
        "a_X_a_X_age_bucketized": {
            "cross": ["age_bucketized", "a", "a_ids"],
            "buckets": 10,
            "hash_key": 7,
        },
        "a_X_a_X_age_bucketized_indicator": {"indicator": "a_X_a_X_age_bucketized"},
        "b": {"identity": "b", "buckets": 5, "default": 0},
        "b_2": {"hash": "b", "buckets": 9},
    }


def test_entries_of_columns_of_several_values(tmp_path) -> None:
    tags = fc.categorical_column_with_hash_bucket("tags", 9)
    shown = fc.sequence_categorical_column_with_hash_bucket("shown", 9)
    weighted = fc.weighted_categorical_column(tags, "weights")
    numbers = fc.numeric_column("numbers", shape=3)
    made = [
        numbers,
        fc.bucketized_column(numbers, [0]),
        fc.embedding_column(weighted, 2, max_norm=1.5),
        *fc.shared_embeddings([tags, weighted], 4, shared_embedding_collection_name="table"),
        fc.embedding_column(shown, 2, pooling="last"),
        fc.sequence_numeric_column("steps", normalizer_fn=lambda x: x / 2, pooling="max"),
    ]
    assert entries(tmp_path, *made) == {
        "numbers": {"numeric": "numbers", "shape": 3},
        "numbers_bucketized": {"bucketized": "numbers", "boundaries": [0], "shape": 3},
        "tags": {"hash": "tags", "buckets": 9},
        "tags_weighted_by_weights": {"weighted": "tags", "weights": "weights"},
        "tags_weighted_by_weights_embedding": {
            "embedding": "tags_weighted_by_weights",
            "dimension": 2,
            "combiner": "mean",
            "max_norm": 1.5,
        },
        "tags_shared_embedding": {
            "embedding": "tags",
            "dimension": 4,
            "combiner": "mean",
            "shared": "table",
        },
        "tags_weighted_by_weights_shared_embedding": {
            "embedding": "tags_weighted_by_weights",
            "dimension": 4,
            "combiner": "mean",
            "shared": "table",
        },
        "shown": {"hash": "shown", "buckets": 9},
        "shown_embedding": {"embedding": "shown", "dimension": 2, "pooling": "last"},
        "steps": {"sequence_numeric": "steps", "pooling": "max", "stddev": 2},
    }
    sample = {
        name: SampleInput(kind, list=True)
        for name, kind in [
            ("tags", "string"), ("weights", "float"), ("numbers", "float"), ("shown", "string"),
            ("steps", "float"),
        ]
    }  # fmt: skip
    assert {column.name: column.weighs for column in stream_columns(input_uses(made), sample)} == {
        "numbers": "", "tags": "", "weights": "tags", "shown": "", "steps": "",
    }  # fmt: skip
    with pytest.raises(ValueError, match="'numbers' has one value a row"):
        stream_columns(input_uses(made), {**sample, "numbers": SampleInput("float")})
    one = [fc.numeric_column("numbers")]
    with pytest.raises(ValueError, match=r"say numeric_column's shape=\(N,\)"):
        stream_columns(input_uses(one), sample)


def test_vocabulary_files(tmp_path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("x\ny\nz\n")
    whole = fc.categorical_column_with_vocabulary_file("a", str(path), default_value=1)
    first = fc.categorical_column_with_vocabulary_file("b", str(path), 2)
    assert entries(tmp_path, whole, first) == {
        "a": {"vocabulary": "a", "file": str(path), "default": 1},
        "b": {"vocabulary": "b", "words": ["x", "y"]},
    }
    more = fc.categorical_column_with_vocabulary_file("b", str(path), 4)
    with pytest.raises(ValueError, match="has 3 words, vocabulary_size of 'b' is 4"):
        entries(tmp_path, more)


def test_long_vocabularies_go_into_files(tmp_path) -> None:
    words = [f"word {i}" for i in range(5000)]
    column = fc.categorical_column_with_vocabulary_list("a", words)
    entry = entries(tmp_path, column)["a"]
    assert (tmp_path / entry["file"]).read_text().splitlines() == words


def test_types_of_inputs() -> None:
    made = [
        fc.numeric_column("n"),
        fc.categorical_column_with_identity("i", 5),
        fc.crossed_column(["i", "s", "raw"], 10),
        fc.categorical_column_with_hash_bucket("s", 10),
    ]
    uses = input_uses(made)
    sample = {
        "n": SampleInput("int"),
        "i": SampleInput("int"),
        "s": SampleInput("string", list=True),
        "raw": SampleInput("int"),
    }
    assert stream_columns(uses, sample) == [
        StreamColumn("n", "float"),
        StreamColumn("i", "int"),
        StreamColumn("s", "string", True),
        StreamColumn("raw", "int"),
    ]
    for name, wrong, says in [
        ("s", SampleInput("int"), "columns want string, the data is int"),
        ("n", SampleInput("string"), "columns want float, the data is string"),
    ]:
        with pytest.raises(ValueError, match=says):
            stream_columns(uses, {**sample, name: wrong})
    cut = stream_columns(uses, {**sample, "raw": SampleInput("float")})
    assert cut[3] == StreamColumn("raw", "int", truncated=True)
    both = input_uses([*made, fc.numeric_column("raw")])
    with pytest.raises(ValueError, match="give the cross a bucketized_column of it"):
        stream_columns(both, {**sample, "raw": SampleInput("float")})
    with pytest.raises(ValueError, match="Feature raw is not in features"):
        stream_columns(uses, {name: sample[name] for name in "nis"})


def test_an_input_cannot_be_of_two_types() -> None:
    text = fc.categorical_column_with_hash_bucket("x", 10)
    number = fc.categorical_column_with_identity("x", 10)
    with pytest.raises(ValueError, match="one column reads it as int, another as string"):
        stream_columns(input_uses([text, number]), {"x": SampleInput("int")})
    both = [text, fc.numeric_column("x")]
    with pytest.raises(ValueError, match="a number to one column, a string to another"):
        stream_columns(input_uses(both), {"x": SampleInput("string")})


def test_walk_gives_parents_first_and_each_once() -> None:
    words = fc.categorical_column_with_vocabulary_list("a", ["x"])
    made = [fc.indicator_column(words), fc.embedding_column(words, 2), words]
    assert walk(made) == [words, made[0], made[1]]


def test_parse_spec_without_tensorflow(monkeypatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    column = fc.crossed_column(
        [fc.bucketized_column(fc.numeric_column("n", default_value=1), [0.0]), "s"], 5
    )
    assert fc.make_parse_example_spec([column]) == {
        "n": columns.FixedLenFeature((1,), "float32", (1.0,)),
        "s": columns.VarLenFeature("string"),
    }


HASHED = fc.categorical_column_with_hash_bucket("h", 5)
NUMBER = fc.numeric_column("n")
WORDS = fc.categorical_column_with_vocabulary_list("v", ["x"])
SEQUENCE = fc.sequence_categorical_column_with_hash_bucket("s", 5)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: fc.numeric_column("a", shape=()), "one value or more"),
        (lambda: fc.sequence_numeric_column("a", shape=(3, 2)), "one dimension"),
        (lambda: fc.bucketized_column(fc.numeric_column("a", shape=(3, 2)), [0]),
         "one-dimensional column"),
        (lambda: fc.numeric_column("a", shape=(0,)), "greater than 0"),
        (lambda: fc.weighted_categorical_column(NUMBER, "w"), "must be a CategoricalColumn"),
        (lambda: fc.embedding_column(SEQUENCE, 2), "must not be of type SequenceCategorical"),
        (lambda: fc.embedding_column(SEQUENCE, 2, pooling="first"), "sum, mean, sqrtn, max, last"),
        (lambda: fc.embedding_column(HASHED, 2, pooling="max"), "say combiner"),
        (lambda: fc.indicator_column(SEQUENCE), "must not be of type SequenceCategorical"),
        (lambda: fc.shared_embeddings([HASHED, WORDS], 2), "must have the same type"),
        (lambda: fc.crossed_column(["a", fc.weighted_categorical_column(WORDS, "w")], 5),
         "no weights"),
        (lambda: fc.numeric_column("a", dtype="string"), "convertible to float"),
        (lambda: fc.numeric_column(5), "key must be a string"),
        (lambda: fc.bucketized_column(HASHED, [1]), "generated with numeric_column"),
        (lambda: fc.bucketized_column(NUMBER, [2, 1]), "sorted list"),
        (lambda: fc.bucketized_column(NUMBER, []), "not be empty|not empty"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", []), "must be non-empty"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", ["x", "x"]), "Duplicate keys"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", ["x", 1]), "string or integer"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", ["x"], "int64"), "do not match"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", ["x"], None, 0, 2),
         "both num_oov_buckets and default_value"),
        (lambda: fc.categorical_column_with_vocabulary_file("a", ""), "Missing vocabulary_file"),
        (lambda: fc.categorical_column_with_identity("a", 0), "num_buckets 0 < 1"),
        (lambda: fc.categorical_column_with_identity("a", 5, 5), r"not in range \[0, 5\)"),
        (lambda: fc.categorical_column_with_hash_bucket("a", 0), "at least 1"),
        (lambda: fc.categorical_column_with_hash_bucket("a", 5, float), "string or integer"),
        (lambda: fc.crossed_column(["a"], 5), "length > 1"),
        (lambda: fc.crossed_column(["a", HASHED], 5), "not supported for crossing"),
        (lambda: fc.crossed_column(["a", NUMBER], 5), "Unsupported key type"),
        (lambda: fc.indicator_column(NUMBER), "must be a CategoricalColumn"),
        (lambda: fc.embedding_column(HASHED, 0), "Invalid dimension 0"),
        (lambda: fc.embedding_column(HASHED, 2, combiner="max"), "mean, sum or sqrtn"),
        (lambda: fc.embedding_column(HASHED, 2, initializer=print), "Muster has no initializer"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()
