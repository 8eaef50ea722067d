package muster.tfrecord;

import java.util.zip.Checksum;
import org.apache.hadoop.util.PureJavaCrc32C;

/** The checksum of TFRecord: CRC-32C, rotated and added to a constant, since records may hold checksums themselves. */
final class MaskedCrc {
  private static final int ADDED = 0xa282ead8;

  private final Checksum crc = makeCrc();

  int compute(byte[] bytes, int from, int length) {
    crc.reset();
    crc.update(bytes, from, length);
    return Integer.rotateRight((int) crc.getValue(), 15) + ADDED;
  }

  /** Java's own, which uses the processor's instruction, is there from Java 9 on. */
  private static Checksum makeCrc() {
    try {
      return (Checksum) Class.forName("java.util.zip.CRC32C").getConstructor().newInstance();
    } catch (ReflectiveOperationException missing) {
      return new PureJavaCrc32C();
    }
  }
}
