"""The models of testbed/click_models.py in PyTorch, from memory, on one thread."""

import argparse
import bisect
import csv
import json
import math
import time
import zlib

import torch
from pytorch_common import adagrad, batches_of, relu_layers, shuffled

NUMBERS = [f"I{i}" for i in range(1, 14)]
WORDS = [f"C{i}" for i in range(1, 27)]
BOUNDARIES = [0.005, *(2**i for i in range(11))]
FIELDS = len(NUMBERS) + len(WORDS)  # a bucket of each number, and the words
BUCKETS, LEARNING_RATE, MEAN, DEVIATION = 1000, 0.05, 3.5, 1.2


def load(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = torch.tensor(
        [[(math.log1p(float(row[n] or 0)) - MEAN) / DEVIATION for n in NUMBERS] for row in rows]
    )

    def ids_of(row):
        numbers = [bisect.bisect_right(BOUNDARIES, float(row[n] or 0)) for n in NUMBERS]
        words = [zlib.crc32((row[w] or "none").encode()) % BUCKETS for w in WORDS]
        return [i * BUCKETS + value for i, value in enumerate(numbers + words)]  # of one table

    ids = torch.tensor([ids_of(row) for row in rows])
    return numbers, ids, torch.tensor([float(row["label"]) for row in rows])


class FactorizationMachine(torch.nn.Module):
    """With a deep tower DeepFM. Linear weights, and vectors, of buckets, words and numbers."""

    def __init__(self, dimension, hidden):
        super().__init__()
        self.weights = torch.nn.EmbeddingBag(FIELDS * BUCKETS, 1, mode="sum")
        torch.nn.init.zeros_(self.weights.weight)
        self.linear = torch.nn.Linear(len(NUMBERS), 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)
        self.embedding = torch.nn.Embedding(FIELDS * BUCKETS, dimension)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=0.01)
        self.vectors = torch.nn.Parameter(torch.empty(len(NUMBERS), dimension))
        torch.nn.init.trunc_normal_(self.vectors, std=0.01)
        width = len(NUMBERS) + FIELDS * dimension
        self.deep = relu_layers([width, *hidden, 1]) if hidden else None

    def forward(self, numbers, ids):
        vectors = self.embedding(ids)
        fields = torch.cat([vectors, numbers[:, :, None] * self.vectors], 1)
        pairs = 0.5 * (fields.sum(1).square() - fields.square().sum(1)).sum(1)
        logits = pairs + (self.linear(numbers) + self.weights(ids)).squeeze(1)
        if self.deep is None:
            return logits
        return logits + self.deep(torch.cat([numbers, vectors.flatten(1)], 1)).squeeze(1)


class CrossNetwork(torch.nn.Module):
    """Two full cross layers, then the deep tower."""

    def __init__(self, dimension, hidden):
        super().__init__()
        self.embedding = torch.nn.Embedding(FIELDS * BUCKETS, dimension)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=1 / math.sqrt(dimension))
        width = len(NUMBERS) + FIELDS * dimension
        self.crosses = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(2))
        for cross in self.crosses:
            torch.nn.init.xavier_uniform_(cross.weight)
            torch.nn.init.zeros_(cross.bias)
        self.deep = relu_layers([width, *hidden, 1])

    def forward(self, numbers, ids):
        x0 = x = torch.cat([numbers, self.embedding(ids).flatten(1)], 1)
        for cross in self.crosses:
            x = torch.addcmul(x, x0, cross(x))
        return self.deep(x).squeeze(1)


class TwoTowers(torch.nn.Module):
    """The vectors of a query (numbers, buckets, half of the words) and of an item (the other words)."""

    def __init__(self, dimension, hidden, size, temperature):
        super().__init__()
        self.embedding = torch.nn.Embedding(FIELDS * BUCKETS, dimension)
        torch.nn.init.trunc_normal_(self.embedding.weight, std=1 / math.sqrt(dimension))
        self.queries, self.temperature = FIELDS - len(WORDS) // 2, temperature
        width = len(NUMBERS) + self.queries * dimension
        self.query = relu_layers([width, *hidden, size])
        self.item = relu_layers([(FIELDS - self.queries) * dimension, *hidden, size])

    def forward(self, numbers, ids):
        vectors = self.embedding(ids)
        query, item = vectors[:, : self.queries], vectors[:, self.queries :]
        return self.query(torch.cat([numbers, query.flatten(1)], 1)), self.item(item.flatten(1))

    def loss(self, vectors, rewards):
        """The mean over all rows of the reward times the softmax loss among the batch's items."""
        scores = vectors[0] @ vectors[1].T / self.temperature
        own = torch.arange(len(scores))
        return (rewards * torch.nn.functional.cross_entropy(scores, own, reduction="none")).mean()


def area_under_curve(scores, labels):
    """Exact but for ties, which these scores have not."""
    order = scores.argsort()
    ranks = torch.empty(len(scores), dtype=torch.float64)
    ranks[order] = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    positive = labels.sum().double()
    return ((ranks[labels > 0].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive))).item()


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--train", "--test", "--kind"):
        parser.add_argument(flag, required=True)
    for flag in ("--batch-size", "--epochs", "--dimension"):
        parser.add_argument(flag, type=int, required=True)
    parser.add_argument("--hidden", type=int, nargs="+", required=True)
    parser.add_argument("--towers-dimension", type=int)
    parser.add_argument("--temperature", type=float)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = batches_of(shuffled(*load(flags.train)), flags.batch_size)
    rows = sum(len(batch[-1]) for batch in batches)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    if flags.kind == "two_tower":
        model = TwoTowers(flags.dimension, flags.hidden, flags.towers_dimension, flags.temperature)
        loss_of = model.loss
    elif flags.kind == "dcn":
        model = CrossNetwork(flags.dimension, flags.hidden)
    else:
        model = FactorizationMachine(flags.dimension, flags.hidden if flags.kind == "deepfm" else [])
    optimizer = adagrad(model.parameters(), lr=LEARNING_RATE)
    seconds = loss = auc = 0.0
    for epoch in range(flags.epochs):
        start, total = time.process_time(), 0.0
        for numbers, ids, labels in batches:
            optimizer.zero_grad(set_to_none=True)
            step = loss_of(model(numbers, ids), labels)
            step.backward()
            optimizer.step()
            total += step.item() * len(labels)
        if epoch == 0 and flags.kind != "two_tower":
            numbers, ids, labels = load(flags.test)
            with torch.no_grad():
                auc = area_under_curve(model(numbers, ids), labels)
        if epoch > 0:  # the first one warms the caches
            seconds += time.process_time() - start
        loss = total / rows
    print(json.dumps({"rate": (flags.epochs - 1) * rows / seconds, "loss": loss, "auc": auc}))


main()
