"""A search for a better learning rate and better layers of the clicks' model, with trials on Spark's executors.

usage: spark-submit search.py MODEL_FILE CLICKS.csv STUDY

After a kill the same command continues the study.
"""

import sys

from pyspark.sql import SparkSession

from muster import spark as muster_spark

model_file, clicks, study = sys.argv[1:]
spark = SparkSession.builder.appName("search").getOrCreate()
table = spark.read.csv(clicks, header=True, inferSchema=True)
train, test = table.randomSplit([0.8, 0.2], seed=1)

search = {
    "model": model_file,
    "train": train,
    "eval": test,
    "flags": ["--epochs", "1"],
    "space": {
        "model.dnn.optimizer.adagrad.learning_rate": {"loguniform": [0.001, 0.3]},
        "model.dnn.hidden_units": {"choice": [[64, 32], [32]]},
    },
    "metric": {"maximize": "auc"},
    "budget": {"trials": 6},
}
found = muster_spark.tune(spark, search, study, parallel=2)

print("best of %d trials: AUC %.3f with %s" % (found.trials, found.best_value, found.best_params))
print("the same model by itself: %s" % found.command)
spark.stop()
