package org.tensorflow.hadoop.io;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;

/**
 * TFRecord files as input of Hadoop and Spark, under the name that tensorflow-hadoop gave it: a record is a key,
 * its value is null, and a file is one split. Files whose name ends as a codec of Hadoop has it, such as .gz, are
 * decompressed. The setting tensorflow.read.crc32check=false leaves checksums unread.
 */
public class TFRecordFileInputFormat extends FileInputFormat<BytesWritable, NullWritable> {
  @Override
  public RecordReader<BytesWritable, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
    return new TFRecordFileReader();
  }

  @Override
  protected boolean isSplitable(JobContext context, Path file) {
    return false;
  }
}
