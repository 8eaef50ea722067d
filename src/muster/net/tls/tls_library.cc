#include "muster/net/tls/tls_library.h"

#include <openssl/crypto.h>

#include "muster/base/strings.h"

namespace muster::net {
namespace {

// What OpenSSL asks for before it takes its AVX-512 code for AES-GCM (OPENSSL_ia32cap).
bool HasVectorAes() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq");
}

}  // namespace

TlsLibrary GetTlsLibrary() {
  const unsigned major = OPENSSL_version_major(), minor = OPENSSL_version_minor();
  const bool uses_vectors = major > 3 || (major == 3 && minor >= 1);
  return {.version = StrCat("OpenSSL ", major, ".", minor, ".", OPENSSL_version_patch()),
          .newer_is_faster = !uses_vectors && HasVectorAes()};
}

}  // namespace muster::net
