"""A table as TFRecord files with Spark, for programs of TensorFlow and for `muster train`; and back.

usage: spark-submit tfrecords.py MODEL_FILE CLICKS.csv FOLDER
"""

import sys

from pyspark.sql import SparkSession

from muster.spark import read_tfrecords, write_tfrecords

model_file, clicks, folder = sys.argv[1:]
spark = SparkSession.builder.appName("tfrecords").getOrCreate()
table = spark.read.csv(clicks, header=True, inferSchema=True).repartition(4)

written = write_tfrecords(table, folder, model=model_file, mode="overwrite")
print("wrote %d rows to %d files" % (written.rows, written.files))
read_tfrecords(spark, folder).groupBy("label").count().orderBy("label").show()
spark.stop()
