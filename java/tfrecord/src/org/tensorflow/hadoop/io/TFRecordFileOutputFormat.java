package org.tensorflow.hadoop.io;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import muster.tfrecord.RecordOutput;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * TFRecord files as output of Hadoop and Spark, under the name that tensorflow-hadoop gave it: a key is a record, and
 * its value is not looked at. With the setting mapreduce.output.fileoutputformat.compress=true the codec that
 * mapreduce.output.fileoutputformat.compress.codec names compresses the files, and their names end as it has it.
 */
public class TFRecordFileOutputFormat extends FileOutputFormat<BytesWritable, NullWritable> {
  @Override
  public RecordWriter<BytesWritable, NullWritable> getRecordWriter(TaskAttemptContext context) throws IOException {
    Configuration settings = context.getConfiguration();
    CompressionCodec codec = null;
    if (getCompressOutput(context)) {
      codec = ReflectionUtils.newInstance(getOutputCompressorClass(context, GzipCodec.class), settings);
    }
    Path path = getDefaultWorkFile(context, codec == null ? "" : codec.getDefaultExtension());
    OutputStream file = path.getFileSystem(settings).create(path, true);
    try {
      OutputStream bytes = codec == null ? file : codec.createOutputStream(file);
      return new Writer(new RecordOutput(new BufferedOutputStream(bytes, TFRecordFileReader.BUFFER_BYTES)));
    } catch (IOException | RuntimeException error) {
      file.close();
      throw error;
    }
  }

  private static final class Writer extends RecordWriter<BytesWritable, NullWritable> {
    private final RecordOutput records;

    Writer(RecordOutput records) {
      this.records = records;
    }

    @Override
    public void write(BytesWritable key, NullWritable value) throws IOException {
      records.write(key.getBytes(), 0, key.getLength());
    }

    @Override
    public void close(TaskAttemptContext context) throws IOException {
      records.close();
    }
  }
}
