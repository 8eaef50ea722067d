package muster.tfrecord;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Writes records as a TFRecord file, for one thread. */
public final class RecordOutput implements Closeable {
  private static final int LENGTH = 8;
  private static final int CRC = 4;

  private final OutputStream stream;
  private final MaskedCrc crc = new MaskedCrc();
  private final byte[] header = new byte[LENGTH + CRC];
  private final byte[] footer = new byte[CRC];

  /** close() closes the stream, which should be buffered. */
  public RecordOutput(OutputStream stream) {
    this.stream = stream;
  }

  public void write(byte[] bytes, int from, int length) throws IOException {
    ByteBuffer made = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN);
    made.putLong(length);
    made.putInt(crc.compute(header, 0, LENGTH));
    stream.write(header);
    stream.write(bytes, from, length);
    ByteBuffer.wrap(footer).order(ByteOrder.LITTLE_ENDIAN).putInt(crc.compute(bytes, from, length));
    stream.write(footer);
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
