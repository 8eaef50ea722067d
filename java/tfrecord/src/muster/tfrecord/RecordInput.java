package muster.tfrecord;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Reads the records of a TFRecord file in their order, for one thread. Errors name the file and the byte at
 * which the record begins, counted in what the file holds after decompression.
 */
public final class RecordInput implements Closeable {
  private static final int LENGTH = 8;
  private static final int CRC = 4;
  private static final int STEP = 1 << 20; // allocated before as many bytes have been read
  private static final int LONGEST = Integer.MAX_VALUE - 16; // what an array of Java can hold

  private final InputStream stream;
  private final String file;
  private final boolean check;
  private final MaskedCrc crc = new MaskedCrc();
  private final byte[] header = new byte[LENGTH + CRC];
  private final byte[] footer = new byte[CRC];
  private long begin; // of the record that is read next

  /** close() closes the stream. `check`: whether checksums are compared. */
  public RecordInput(InputStream stream, String file, boolean check) {
    this.stream = stream;
    this.file = file;
    this.check = check;
  }

  /** Returns the next record, an array that is the caller's, or null at the file's end. */
  public byte[] read() throws IOException {
    int got = fill(header, 0, header.length);
    if (got == 0) {
      return null;
    }
    requireAll(got, header.length);
    compare(header, LENGTH, getInt(header, LENGTH), "length");
    long length = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getLong();
    if (length < 0 || length > LONGEST) {
      throw error("the record has " + Long.toUnsignedString(length) + " bytes, more than Java can hold");
    }
    byte[] data = readData((int) length);
    requireAll(fill(footer, 0, CRC), CRC);
    compare(data, data.length, getInt(footer, 0), "data");
    begin += header.length + length + CRC;
    return data;
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }

  /** Allocates at most twice what is there, whatever length the record claims. */
  private byte[] readData(int length) throws IOException {
    byte[] data = new byte[Math.min(length, STEP)];
    int read = 0;
    while (read < length) {
      if (read == data.length) {
        data = Arrays.copyOf(data, (int) Math.min(length, 2L * read));
      }
      requireAll(fill(data, read, data.length - read), data.length - read);
      read = data.length;
    }
    return data;
  }

  /** Returns how many bytes were read: fewer than wanted at the file's end only. */
  private int fill(byte[] into, int from, int wanted) throws IOException {
    int got = 0;
    try {
      while (got < wanted) {
        int more = stream.read(into, from + got, wanted - got);
        if (more < 0) {
          break;
        }
        got += more;
      }
    } catch (IOException cause) { // also that of a compressed file that is cut
      IOException named = error("it cannot be read: " + cause.getMessage());
      named.initCause(cause);
      throw named;
    }
    return got;
  }

  private void requireAll(int got, int wanted) throws IOException {
    if (got < wanted) {
      throw error("the file ends within the record: it is cut, or no TFRecord file");
    }
  }

  private void compare(byte[] bytes, int length, int expected, String what) throws IOException {
    if (check && crc.compute(bytes, 0, length) != expected) {
      throw error("the checksum of the record's " + what + " is wrong: the file is damaged, or no TFRecord file");
    }
  }

  private static int getInt(byte[] bytes, int from) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(from);
  }

  private IOException error(String what) {
    return new IOException(file + ": the record at byte " + begin + ": " + what);
  }
}
