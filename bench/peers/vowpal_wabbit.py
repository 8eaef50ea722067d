"""Vowpal Wabbit's side of `bench/run cached-features`: a linear click model from its own cache.

vowpal_wabbit.py convert CSV OUT: writes the rows of `muster sample clicks` in VW's text format: 13 bucketized
    numbers and 26 categories, the columns of the linear model of bench/cached_features.py.
vowpal_wabbit.py train DATA CACHE PASSES MODEL: trains, and keeps the cache.
vowpal_wabbit.py score DATA MODEL: prints {"auc": ..., "average_loss": ...}.
"""

import csv
import json
import math
import sys

import vowpalwabbit

# Of the table of weights: it has 2^22 rows.
BITS = 22


def convert(source: str, out: str) -> None:
    with open(source, newline="", encoding="utf-8") as file, open(out, "w", encoding="utf-8") as to:
        rows = csv.reader(file)
        header = next(rows)
        for row in rows:
            words = []
            for name, value in zip(header[1:], row[1:], strict=True):
                if name.startswith("I"):
                    number = float(value or 0)
                    value = str(int(2 * math.log1p(number))) if number > 0 else "none"
                words.append(f"{name}={value or 'none'}")
            to.write(f"{1 if row[0] == '1' else -1} | {' '.join(words)}\n")


def train(data: str, cache: str, passes: str, model: str) -> None:
    workspace = vowpalwabbit.Workspace(
        f"-d {data} --cache_file {cache} --passes {passes} --holdout_off --loss_function logistic "
        f"-b {BITS} -f {model} --quiet"
    )
    workspace.finish()


def score(data: str, model: str) -> None:
    workspace = vowpalwabbit.Workspace(f"-t -i {model} --quiet --loss_function logistic")
    scored = []
    with open(data, encoding="utf-8") as file:
        for line in file:
            raw = workspace.predict(line.rstrip("\n"))
            scored.append((raw, line.startswith("1 ")))
    workspace.finish()
    loss = sum(math.log1p(math.exp(-raw if label else raw)) for raw, label in scored) / len(scored)
    scored.sort()
    positives, above = 0, 0
    for _, label in scored:
        if label:
            positives += 1
        else:
            above += positives
    negatives = len(scored) - positives
    print(json.dumps({"auc": 1 - above / (positives * negatives), "average_loss": loss}))


{"convert": convert, "train": train, "score": score}[sys.argv[1]](*sys.argv[2:])
