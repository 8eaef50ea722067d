"""A wide & deep model of a Hive table: two processes train it, and the scores of another table become a third one.

usage: spark-submit hive_table.py MODEL_FILE TABLE NEW_TABLE SCORES
"""

import sys

from pyspark.sql import SparkSession

from muster.spark import MusterEstimator

model_file, table, new_table, scores = sys.argv[1:]
spark = SparkSession.builder.appName("hive table").enableHiveSupport().getOrCreate()

model = MusterEstimator(model=model_file, workers=2).fit(spark.table(table))
scored = model.transform(spark.table(new_table))
scored.write.format("orc").mode("overwrite").saveAsTable(scores)
print("scored %d rows" % spark.table(scores).count())
spark.stop()
