#include "muster/net/tls/tls_library.h"

#include <openssl/crypto.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "muster/base/strings.h"

namespace muster::net {
namespace {

// What OpenSSL asks for before it takes its AVX-512 code for AES-GCM (OPENSSL_ia32cap).
bool HasVectorAes() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7, kVaes = 1U << 9, kVpclmulqdq = 1U << 10;  // cpuid, in ecx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (c & kVaes) != 0 &&
         (c & kVpclmulqdq) != 0;
#else
  return false;
#endif
}

}  // namespace

bool UsesVectorAes(unsigned major, unsigned minor) {
  return major > 3 || (major == 3 && minor >= 1);
}

TlsLibrary GetTlsLibrary() {
  const unsigned major = OPENSSL_version_major(), minor = OPENSSL_version_minor();
  return {.version = StrCat("OpenSSL ", major, ".", minor, ".", OPENSSL_version_patch()),
          .newer_is_faster = HasVectorAes() && !UsesVectorAes(major, minor)};
}

}  // namespace muster::net
