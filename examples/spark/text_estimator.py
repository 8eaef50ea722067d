"""Which module of Python's standard library is a line of code from? Spark makes word vectors, Kafka carries
the rows, three parameter sets are tried at once, two workers train the best one, and Spark scores.

usage: spark-submit text_estimator.py BROKER:9092,... MODEL_FOLDER SCORES
"""

import importlib
import inspect
import os
import sys
import time

import numpy as np
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import RegexTokenizer, Word2Vec
from pyspark.sql import SparkSession, functions

from muster.text_estimator import TextEstimator

MODULES = ["argparse", "asyncio.base_events", "decimal", "email.message", "inspect", "tarfile"]
WORDS, VECTOR, WINDOW, EPOCHS = 16, 16, 3, 6
SETS = [
    {"filters": 16, "rate": 0.05, "batch_size": 32},
    {"filters": 64, "rate": 0.05, "batch_size": 32},
    {"filters": 64, "rate": 0.0005, "batch_size": 64},
]


def lines():
    """(line of code, number of its module), each once."""
    for number, name in enumerate(MODULES):
        source = inspect.getsource(importlib.import_module(name))
        for line in dict.fromkeys(source.splitlines()):
            if len(line.split()) >= 3:
                yield line, float(number)


def first_weights(params):
    chance = np.random.default_rng(1)
    return {
        "filters": chance.normal(0, 0.1, (WINDOW * VECTOR, params["filters"])),
        "bias": np.zeros(params["filters"]),
        "out": chance.normal(0, 0.1, (params["filters"], len(MODULES))),
        "out_bias": np.zeros(len(MODULES)),
    }


def forward(weights, matrices):
    """The windows of words, the one that each filter likes best, how much it does, and the logits."""
    length = matrices.shape[1] - WINDOW + 1
    windows = np.concatenate([matrices[:, i : i + length] for i in range(WINDOW)], axis=2)
    liked = windows @ weights["filters"] + weights["bias"]
    pooled = np.maximum(liked.max(axis=1), 0)
    logits = pooled @ weights["out"] + weights["out_bias"]
    return windows, liked.argmax(axis=1), pooled, logits


def train_step(weights, sums, matrices, labels, rate):
    """A step of Adagrad on the cross entropy."""
    windows, best, pooled, logits = forward(weights, matrices)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    error = (chances - np.eye(len(MODULES))[labels]) / len(labels)
    of_pooled = (error @ weights["out"].T) * (pooled > 0)
    picked = np.take_along_axis(windows, best[:, :, None], axis=1)
    gradients = {
        "filters": np.einsum("bfv,bf->vf", picked, of_pooled),
        "bias": of_pooled.sum(axis=0),
        "out": pooled.T @ error,
        "out_bias": error.sum(axis=0),
    }
    for name, gradient in gradients.items():
        sums[name] = sums.get(name, 0.1) + gradient**2
        weights[name] -= rate * gradient / np.sqrt(sums[name])


def averaged(weights, folder, epoch, ctx):
    """The mean of the workers' weights after an epoch, which they exchange as files."""
    mine = os.path.join(folder, f"epoch-{epoch}-worker-{ctx.task_index}.npz")
    np.savez(mine + ".tmp.npz", **weights)
    os.rename(mine + ".tmp.npz", mine)
    paths = [
        os.path.join(folder, f"epoch-{epoch}-worker-{index}.npz") for index in range(ctx.num_workers)
    ]
    end = time.monotonic() + 300
    while not all(map(os.path.exists, paths)):
        if time.monotonic() > end:
            raise TimeoutError(f"a worker has not ended epoch {epoch} for 300 s")
        time.sleep(0.05)
    all_weights = [np.load(path) for path in paths]
    return {name: np.mean([one[name] for one in all_weights], axis=0) for name in weights}


def map_fun(args={}, ctx=None, _read_data=None):
    """Trains on the rows, and returns the weights and the accuracy on those that are held back."""
    params = args["params"]["fitParam"] if ctx is None else args["params"]["fitParam"][0]
    weights, sums = first_weights(params), {}
    for epoch in range(EPOCHS):
        right, held = 0, 0
        for rows in _read_data(max_records=params["batch_size"]):
            matrices = np.array([row["sentence_matrix"] for row in rows])
            labels = np.array([int(row["label"]) for row in rows])
            for_test = np.array([row["held_back"] for row in rows])
            if for_test.any():
                logits = forward(weights, matrices[for_test])[-1]
                right += (logits.argmax(axis=1) == labels[for_test]).sum()
                held += for_test.sum()
            if not for_test.all():
                train_step(weights, sums, matrices[~for_test], labels[~for_test], params["rate"])
        if ctx is not None:
            weights = averaged(weights, params["folder"], epoch, ctx)
    return {"accuracy": right / held, "weights": weights}


def with_matrices(spark, table):
    """The table with a matrix of each line's word vectors, which are learned from all lines."""
    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(table)
    word2vec = Word2Vec(
        vectorSize=VECTOR, minCount=2, maxIter=3, seed=1, inputCol="words", outputCol="mean"
    )
    vectors = {
        row.word: row.vector.toArray().tolist() for row in word2vec.fit(words).getVectors().collect()
    }
    known = spark.sparkContext.broadcast(vectors)

    def matrix(words):
        found = [known.value[word] for word in words[:WORDS] if word in known.value]
        return found + [[0.0] * VECTOR] * (WORDS - len(found))

    make = functions.udf(matrix, "array<array<double>>")
    return words.withColumn("sentence_matrix", make("words"))


def scored(spark, table, weights):
    known = spark.sparkContext.broadcast(weights)

    def predict(matrix):
        return float(forward(known.value, np.array([matrix]))[-1].argmax())

    return table.withColumn("prediction", functions.udf(predict, "double")("sentence_matrix"))


def main(brokers, folder, scores):
    spark = SparkSession.builder.appName("lines of code").getOrCreate()
    table = spark.createDataFrame(list(lines()), "text string, label double").repartition(4, "text")
    train, test = with_matrices(spark, table).cache().randomSplit([0.8, 0.2], seed=1)
    rows = train.select("sentence_matrix", "label", (functions.rand(2) < 0.2).alias("held_back"))
    kafka = {"bootstrap_servers": brokers, "topic": "lines", "group_id": "not used"}

    tried = TextEstimator(kafkaParam=kafka, fitParam=SETS, mapFnParam=map_fun).fit(rows)
    for params, found in tried.collect():
        print("accuracy %.3f with %s" % (found["accuracy"], params))
    best, _ = max(tried.collect(), key=lambda one: one[1]["accuracy"])

    os.makedirs(folder, exist_ok=True)
    workers = {**best, "folder": os.path.abspath(folder), "cluster_size": 2, "num_ps": 0}
    same_rows = {**kafka, "topic": tried.topic, "reuse_topic": True, "delete_topic": True}
    trained = TextEstimator(
        kafkaParam=same_rows, fitParam=[workers], runningMode="TFoS", mapFnParam=map_fun
    ).fit(rows)
    weights = trained.collect()[0][1]["weights"]
    np.savez(os.path.join(folder, "weights.npz"), **weights)

    result = scored(spark, test, weights)
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    print("accuracy of the test rows: %.3f" % evaluator.evaluate(result))
    result.select("text", "label", "prediction").write.mode("overwrite").parquet(scores)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
