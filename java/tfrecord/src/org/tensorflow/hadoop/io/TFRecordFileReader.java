package org.tensorflow.hadoop.io;

import java.io.IOException;
import java.io.InputStream;
import muster.tfrecord.RecordInput;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;

/** The records of one split, which is a file. Each key is an object of its own, so that Spark may keep it. */
final class TFRecordFileReader extends RecordReader<BytesWritable, NullWritable> {
  static final int BUFFER_BYTES = 1 << 16;

  private FSDataInputStream file;
  private long fileBytes;
  private RecordInput records;
  private BytesWritable key;

  @Override
  public void initialize(InputSplit split, TaskAttemptContext context) throws IOException, InterruptedException {
    Configuration settings = context.getConfiguration();
    Path path = ((FileSplit) split).getPath();
    fileBytes = split.getLength();
    CompressionCodec codec = new CompressionCodecFactory(settings).getCodec(path);
    file = path.getFileSystem(settings).open(path, BUFFER_BYTES);
    try {
      InputStream bytes = codec == null ? file : codec.createInputStream(file);
      boolean check = settings.getBoolean("tensorflow.read.crc32check", true);
      records = new RecordInput(bytes, path.toString(), check);
    } catch (IOException | RuntimeException error) {
      file.close();
      throw error;
    }
  }

  @Override
  public boolean nextKeyValue() throws IOException {
    byte[] record = records.read();
    key = record == null ? null : new BytesWritable(record);
    return record != null;
  }

  @Override
  public BytesWritable getCurrentKey() {
    return key;
  }

  @Override
  public NullWritable getCurrentValue() {
    return NullWritable.get();
  }

  @Override
  public float getProgress() throws IOException {
    return fileBytes == 0 ? 1 : (float) file.getPos() / fileBytes;
  }

  @Override
  public void close() throws IOException {
    if (records != null) { // null where initialize() has failed
      records.close();
    }
  }
}
