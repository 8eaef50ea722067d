"""The model of testbed/deep_model.py in PyTorch, from memory, on one thread."""

import csv
import math
import zlib

import torch
from pytorch_common import adagrad, batches_of, flags_of, relu_layers, shuffled, train

NUMBERS = [f"I{i}" for i in range(1, 14)]
WORDS = [f"C{i}" for i in range(1, 27)]
TABLE_ROWS, DIMENSION, HIDDEN = 1000, 32, [1024, 512, 256]
LEARNING_RATE, MEAN, DEVIATION = 0.02, 3.5, 1.2


def load(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = torch.tensor(
        [[(math.log1p(float(row[n] or 0)) - MEAN) / DEVIATION for n in NUMBERS] for row in rows]
    )
    # One table for all columns, 1000 rows each.
    ids = torch.tensor(
        [
            [i * TABLE_ROWS + zlib.crc32((row[w] or "none").encode()) % TABLE_ROWS
             for i, w in enumerate(WORDS)]
            for row in rows
        ]
    )  # fmt: skip
    labels = torch.tensor([float(row["label"]) for row in rows])
    return shuffled(numbers, ids, labels)


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(len(WORDS) * TABLE_ROWS, DIMENSION)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=1 / math.sqrt(DIMENSION))
        self.layers = relu_layers([len(NUMBERS) + len(WORDS) * DIMENSION, *HIDDEN, 1])

    def forward(self, numbers, ids):
        return self.layers(torch.cat([numbers, self.embedding(ids).flatten(1)], 1)).squeeze(1)


def main():
    flags = flags_of(["eager", "autocast"])
    batches = batches_of(load(flags.train), flags.batch_size)
    model = Deep()

    def forward(numbers, ids):
        if flags.mode == "eager":
            return model(numbers, ids)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(numbers, ids)

    def loss_of(numbers, ids, labels):
        logits = forward(numbers, ids).float()
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)

    train(batches, flags.epochs, adagrad(model.parameters(), lr=LEARNING_RATE), loss_of)


main()
