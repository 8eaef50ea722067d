"""Click log CSV to TFRecord the usual Python way; and a comparison of two such sets."""

import json
import sys
from pathlib import Path

import pandas as pd
import tensorflow as tf

MISSING = {"int": 0, "float": 0.0, "word": "none"}  # as examples/clicks/clicks.yaml says


def feature(value, kind):
    if kind == "int":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))
    if kind == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))


def convert(source, target):
    header = pd.read_csv(source, nrows=0).columns
    kinds = {name: "word" for name in header}
    kinds |= {name: "float" for name in header if name.startswith("I")}
    kinds["label"] = "int"
    words = {name: str for name, kind in kinds.items() if kind == "word"}
    table = pd.read_csv(source, dtype=words)
    table = table.fillna({name: MISSING[kind] for name, kind in kinds.items()})
    names = list(table.columns)
    with tf.io.TFRecordWriter(str(target)) as writer:
        for row in table.itertuples(index=False, name=None):
            features = {
                name: feature(value, kinds[name])
                for name, value in zip(names, row)
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def records(path):
    path = Path(path)
    files = sorted(f for f in path.glob("part-*") if f.suffix != ".index") if path.is_dir() else [path]
    for record in tf.data.TFRecordDataset([str(file) for file in files]).as_numpy_iterator():
        parsed = tf.train.Example.FromString(record).features.feature
        yield {
            name: list(getattr(value, value.WhichOneof("kind")).value)
            for name, value in parsed.items()
            if value.WhichOneof("kind")
        }


def compare(ours, theirs):
    count = features = 0
    for mine, other in zip(records(ours), records(theirs), strict=True):
        mine = {name: value for name, value in mine.items() if value}
        if mine != other:
            sys.exit(f"record {count} differs:\n{mine}\n{other}")
        count += 1
        features += len(mine)
    print(json.dumps({"records": count, "features": features}))


{"convert": convert, "compare": compare}[sys.argv[1]](*sys.argv[2:])
