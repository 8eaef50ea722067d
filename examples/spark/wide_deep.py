"""A wide & deep model of clicks, from a CSV file that Spark reads to scores that Spark writes.

usage: spark-submit wide_deep.py MODEL_FILE CLICKS.csv SCORES
"""

import sys

from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.sql import SparkSession

from muster.spark import MusterEstimator

model_file, clicks, scores = sys.argv[1:]
spark = SparkSession.builder.appName("clicks").getOrCreate()
table = spark.read.csv(clicks, header=True, inferSchema=True)
train, test = table.randomSplit([0.8, 0.2], seed=1)

model = MusterEstimator(model=model_file, label="label", epochs=2, batchSize=128).fit(train)
scored = model.transform(test)

print("AUC of the test rows: %.3f" % BinaryClassificationEvaluator().evaluate(scored))
scored.select("label", "prediction").write.mode("overwrite").parquet(scores)
spark.stop()
