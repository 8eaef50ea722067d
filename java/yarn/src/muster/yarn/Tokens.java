package muster.yarn;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.PrivilegedExceptionAction;
import java.util.Iterator;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.authentication.util.KerberosUtil;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/**
 * The delegation tokens that containers get: those of the submission, which the ResourceManager renews for as long as
 * HDFS allows (seven days), or fresh ones by the user's keytab, if that came with the job.
 */
final class Tokens {
  private static final long FRESH_MILLIS = 3600_000;

  private final File keytab; // null: none
  private final String renewer;
  private Credentials credentials;
  private long gotAt;

  Tokens(File keytab, String renewer) throws IOException {
    this.keytab = keytab;
    this.renewer = renewer;
    credentials = new Credentials(UserGroupInformation.getCurrentUser().getCredentials());
    // It is the ApplicationMaster's alone.
    for (Iterator<Token<?>> each = credentials.getAllTokens().iterator(); each.hasNext(); ) {
      if (each.next().getKind().equals(AMRMTokenIdentifier.KIND_NAME)) {
        each.remove();
      }
    }
    gotAt = System.nanoTime() / 1_000_000;
  }

  /** As a container's launch context has them; null if Hadoop wants none. */
  synchronized ByteBuffer get() throws IOException {
    long now = System.nanoTime() / 1_000_000;
    if (keytab != null && now - gotAt > FRESH_MILLIS) {
      credentials = fetch();
      gotAt = now;
    }
    if (credentials.numberOfTokens() == 0) {
      return null;
    }
    DataOutputBuffer bytes = new DataOutputBuffer();
    credentials.writeTokenStorageToStream(bytes);
    return ByteBuffer.wrap(bytes.getData(), 0, bytes.getLength());
  }

  private Credentials fetch() throws IOException {
    String[] names = KerberosUtil.getPrincipalNames(keytab.getPath(), Pattern.compile(".*"));
    UserGroupInformation user =
        UserGroupInformation.loginUserFromKeytabAndReturnUGI(names[0], keytab.getPath());
    Credentials fresh = new Credentials();
    try {
      user.doAs(
          (PrivilegedExceptionAction<Void>)
              () -> {
                FileSystem.newInstance(new Configuration()).addDelegationTokens(renewer, fresh);
                return null;
              });
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
    return fresh;
  }
}
