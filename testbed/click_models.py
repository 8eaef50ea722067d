"""Model files of current click models over `muster sample clicks`, for tests and measurements."""

from __future__ import annotations

MEAN, DEVIATION = 3.5, 1.2  # of the numbers' logarithms
BOUNDARIES = [0.005, *(2**i for i in range(11))]  # the first bucket has the missing values
KINDS = ("fm", "deepfm", "dcn", "dcn-parallel")
QUERY_WORDS, TOWERS_DIMENSION, TEMPERATURE = 13, 32, 0.5  # of two_tower; the other words are the item's
NUMBERS, WORDS = range(1, 14), range(1, 27)


def click_spec(
    kind: str, buckets: int = 1000, dimension: int = 8, hidden: tuple[int, ...] = (64, 32),
    rank: int = 0, activation: str = "relu", rate: float = 0.05, batch_size: int = 256, epochs: int = 1,
) -> str:  # fmt: skip
    """Returns a model of 13 numbers and their buckets, and of 26 hashed words: each bucket and each
    word has a vector of length `dimension`. In two towers the query has the numbers and half of the
    words."""
    lines = ["inputs:", "  label: int"]
    lines += [f"  I{i}: {{type: float, default: 0}}" for i in NUMBERS]
    lines += [f"  C{i}: {{type: string, default: none}}" for i in WORDS]
    lines += ["label: label", "columns:"]
    lines += [
        f"  n{i}: {{numeric: I{i}, log1p: true, mean: {MEAN}, stddev: {DEVIATION}}}" for i in NUMBERS
    ]
    lines += [f"  b{i}: {{bucketized: I{i}, boundaries: {BOUNDARIES}}}" for i in NUMBERS]
    lines += [f"  v{i}: {{embedding: b{i}, dimension: {dimension}}}" for i in NUMBERS]
    lines += [f"  c{i}: {{hash: C{i}, buckets: {buckets}}}" for i in WORDS]
    lines += [f"  e{i}: {{embedding: c{i}, dimension: {dimension}}}" for i in WORDS]
    numbers = ", ".join(f"n{i}" for i in NUMBERS)
    ids = ", ".join([*(f"b{i}" for i in NUMBERS), *(f"c{i}" for i in WORDS)])
    vectors = ", ".join([*(f"v{i}" for i in NUMBERS), *(f"e{i}" for i in WORDS)])
    optimizer = f"optimizer: {{adagrad: {{learning_rate: {rate}}}}}"
    type_name = "dcn" if kind.startswith("dcn") else kind
    lines += ["model:", f"  type: {type_name}"]
    if type_name == "two_tower":
        query = ", ".join([*(f"v{i}" for i in NUMBERS), *(f"e{i}" for i in WORDS[:QUERY_WORDS])])
        item = ", ".join(f"e{i}" for i in WORDS[QUERY_WORDS:])
        for tower, columns in (("query", f"{numbers}, {query}"), ("item", item)):
            lines += [f"  {tower}: {{columns: [{columns}], hidden_units: {list(hidden)},",
                      f"    activation: {activation}, {optimizer}}}"]  # fmt: skip
        lines += [f"  dimension: {TOWERS_DIMENSION}",
                  f"head: {{in_batch_softmax: {{temperature: {TEMPERATURE}}}}}"]  # fmt: skip
    elif type_name != "dcn":
        lines += [f"  linear: {{columns: [{numbers}, {ids}], {optimizer}}}",
                  f"  fm: {{columns: [{vectors}, {numbers}], {optimizer}}}"]  # fmt: skip
    if type_name == "dcn":
        structure = "parallel" if kind == "dcn-parallel" else "stacked"
        lines += [f"  cross: {{layers: 2, rank: {rank}, structure: {structure}}}"]
    if type_name not in ("fm", "two_tower"):
        lines += [f"  dnn: {{columns: [{numbers}, {vectors}], hidden_units: {list(hidden)},",
                  f"        activation: {activation}, {optimizer}}}"]
    lines += [f"train: {{batch_size: {batch_size}, epochs: {epochs}}}"]
    return "\n".join(lines) + "\n"


def two_tower_spec(corrected: bool = False, dimension: int = 8, batch_size: int = 128) -> str:
    """Returns a model of users and items, for `pairs_csv` of testbed/click_pairs.py."""
    probability = ", sampling_probability: share" if corrected else ""
    return f"""inputs:
  user: string
  age: float
  item: string
  topic: string
  price: float
  share: float
  clicked: int
label: clicked
columns:
  user: {{hash: user, buckets: 500}}
  age: {{numeric: age, mean: 40, stddev: 12}}
  item: {{hash: item, buckets: 500}}
  topic: {{vocabulary: topic, words: [t0, t1, t2, t3, t4, t5, t6, t7]}}
  price: {{numeric: price, log1p: true}}
  share: {{numeric: share}}
  user_vector: {{embedding: user, dimension: 8}}
  item_vector: {{embedding: item, dimension: 8}}
  topic_vector: {{embedding: topic, dimension: 4}}
model:
  type: two_tower
  query: {{columns: [user_vector, age], hidden_units: [16], optimizer: {{adagrad: {{learning_rate: 0.1}}}}}}
  item:
    columns: [item_vector, topic_vector, price]
    hidden_units: [16]
    optimizer: {{adagrad: {{learning_rate: 0.1}}}}
  dimension: {dimension}
head: {{in_batch_softmax: {{temperature: 0.1{probability}}}}}
metrics: {{top_k: [5]}}
train: {{batch_size: {batch_size}}}
"""
