"""The model of testbed/deep_model.py in PyTorch, from memory, on one thread."""

import argparse
import csv
import json
import math
import time
import zlib

import torch

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
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
    return numbers[order], ids[order], labels[order]


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(len(WORDS) * TABLE_ROWS, DIMENSION)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=1 / math.sqrt(DIMENSION))
        sizes = [len(NUMBERS) + len(WORDS) * DIMENSION, *HIDDEN, 1]
        layers = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            dense = torch.nn.Linear(inputs, outputs)
            torch.nn.init.xavier_uniform_(dense.weight)
            torch.nn.init.zeros_(dense.bias)
            layers += [dense, torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers[:-1])

    def forward(self, numbers, ids):
        return self.layers(torch.cat([numbers, self.embedding(ids).flatten(1)], 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "autocast"], required=True)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = list(zip(*(part.split(flags.batch_size) for part in load(flags.train))))
    model = Deep()
    optimizer = torch.optim.Adagrad(
        model.parameters(), lr=LEARNING_RATE, initial_accumulator_value=0.1, eps=1e-7, fused=True
    )

    def forward(numbers, ids):
        if flags.mode == "eager":
            return model(numbers, ids)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(numbers, ids)

    def epoch():
        total = 0.0
        for numbers, ids, labels in batches:
            optimizer.zero_grad(set_to_none=True)
            logits = forward(numbers, ids).float()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        return total / sum(len(batch[2]) for batch in batches)

    epoch()  # warms caches
    start = time.process_time()
    for _ in range(flags.epochs - 1):
        loss = epoch()
    seconds = time.process_time() - start
    examples = (flags.epochs - 1) * sum(len(batch[2]) for batch in batches)
    print(json.dumps({"rate": examples / seconds, "loss": loss}))


main()
