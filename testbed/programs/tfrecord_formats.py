"""Writes and reads TFRecord files with the formats of java/tfrecord. usage: tfrecord_formats.py GIVEN FOLDER...

GIVEN is a JSON file: "partitions", a list of records in hexadecimal for each, and "names" of files. Writes `plain` and
`gzip` in each folder, and prints one JSON object: by folder and name what the files of FOLDER/read hold, or why
they cannot be read.
"""

import hashlib
import json
import sys

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

FORMATS = "org.tensorflow.hadoop.io.TFRecordFile%sFormat"
CLASSES = ("org.apache.hadoop.io.BytesWritable", "org.apache.hadoop.io.NullWritable")
COMPRESS = "mapreduce.output.fileoutputformat.compress"
GZIP = {COMPRESS: "true", COMPRESS + ".codec": "org.apache.hadoop.io.compress.GzipCodec"}
UNCHECKED = {"tensorflow.read.crc32check": "false"}

with open(sys.argv[1]) as file:
    given = json.load(file)
sc = SparkContext()
partitions = sc.parallelize(given["partitions"], len(given["partitions"]))
pairs = partitions.flatMap(lambda records: [(bytes.fromhex(record), None) for record in records])


def read(path, conf=None):
    try:  # the first record is looked at before there is an RDD
        rows = sc.newAPIHadoopFile(path, FORMATS % "Input", *CLASSES, conf=conf)
        found = rows.map(lambda row: (hashlib.sha256(row[0]).hexdigest(), row[1])).collect()
    except Py4JJavaError as error:
        return str(error.java_exception)
    return {"records": found, "partitions": rows.getNumPartitions()}


def use(folder):
    for name, conf in (("plain", {}), ("gzip", GZIP)):
        pairs.saveAsNewAPIHadoopFile(folder + "/" + name, FORMATS % "Output", *CLASSES, conf=conf)
    found = {name: read(folder + "/read/" + name) for name in given["names"]}
    found["unchecked"] = read(folder + "/read/data", UNCHECKED)
    found["written"] = read(folder + "/plain," + folder + "/gzip")
    return found


print(json.dumps({folder: use(folder) for folder in sys.argv[2:]}))
