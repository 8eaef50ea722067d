"""The model of examples/adult/adult.yaml in PyTorch, from memory, on one thread."""

import csv
import math
import zlib

import torch
from pytorch_common import adagrad, batches_of, flags_of, relu_layers, shuffled, train

VOCABULARIES = {
    "workclass": "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc "
    "State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors "
    "Doctorate HS-grad Masters Preschool Prof-school Some-college",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
    "Never-married Separated Widowed",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
}
AGES = [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]
WORDS = {
    name: {word: i for i, word in enumerate(words.split())} for name, words in VOCABULARIES.items()
}
DEEP_SIZES = [len(words) for words in WORDS.values()] + [1000, 1000]
WIDE_SIZES = [*DEEP_SIZES, len(AGES) + 1, 1000, 1000]


def bucket(text):
    return zlib.crc32(text.encode()) % 1000


def ids_of(row):
    """Ids in the 11 wide columns, -1 for missing; the first 8 are the deep ones too."""
    ids = [words.get(row[name], -1) for name, words in WORDS.items()]
    ids += [-1 if row[n] == "?" else bucket(row[n]) for n in ("occupation", "native-country")]
    age = sum(float(row["age"]) >= boundary for boundary in AGES)
    occupation = "" if row["occupation"] == "?" else row["occupation"]
    cross = f"{row['education']}_X_{occupation}"
    return [*ids, age, bucket(cross), bucket(f"{age}_X_{cross}")]


def floats_of(row):
    return [
        (float(row["age"]) - 38.641982) / 13.697271,
        (float(row["education-num"]) - 10.069254) / 2.571195,
        (float(row["hours-per-week"]) - 40.368767) / 12.410660,
        math.log1p(float(row["capital-gain"])),
        math.log1p(float(row["capital-loss"])),
    ]


def load(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = torch.tensor([floats_of(row) for row in rows], dtype=torch.float32)
    ids = torch.tensor([ids_of(row) for row in rows])
    labels = torch.tensor([row["income-per-year"] == ">50K" for row in rows], dtype=torch.float32)
    # One table for all columns: each column's ids follow the ones before; row 0 is for missing ids.
    first = torch.cumsum(torch.tensor([1, *WIDE_SIZES[:-1]]), 0)
    ids = torch.where(ids < 0, 0, ids + first)
    return shuffled(numbers, ids, labels)


class WideDeep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.EmbeddingBag(1 + sum(WIDE_SIZES), 1, mode="sum", padding_idx=0)
        self.wide_bias = torch.nn.Parameter(torch.zeros(1))
        torch.nn.init.zeros_(self.wide.weight)
        self.embedding = torch.nn.Embedding(1 + sum(DEEP_SIZES), 8, padding_idx=0)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=1 / math.sqrt(8))
        with torch.no_grad():
            self.embedding.weight[0].zero_()
        self.deep = relu_layers([5 + 8 * len(DEEP_SIZES), 100, 75, 50, 25, 1])

    def forward(self, numbers, ids, labels):
        embedded = self.embedding(ids[:, : len(DEEP_SIZES)]).flatten(1)
        logits = self.deep(torch.cat([numbers, embedded], 1)) + self.wide(ids) + self.wide_bias
        return torch.nn.functional.binary_cross_entropy_with_logits(logits.squeeze(1), labels)


def main():
    flags = flags_of(["eager", "compiled"])
    batches = batches_of(load(flags.train), flags.batch_size)
    model = WideDeep()
    wide = [*model.wide.parameters(), model.wide_bias]
    deep = [*model.embedding.parameters(), *model.deep.parameters()]
    optimizer = adagrad([{"params": wide, "lr": 0.1}, {"params": deep, "lr": 0.05}])
    loss_of = torch.compile(model, dynamic=False) if flags.mode == "compiled" else model
    train(batches, flags.epochs, optimizer, loss_of)


main()
