// The OpenSSL that this process encrypts with.
#pragma once

#include <string>

namespace muster::net {

struct TlsLibrary {
  std::string version;  // "OpenSSL 3.0.19", of the library that is loaded or linked
  // This processor has AES instructions for vectors of 512 bits, and this version does not use
  // them. With them OpenSSL encrypts about three times as fast.
  bool newer_is_faster = false;
};
TlsLibrary GetTlsLibrary();

// Whether this version of OpenSSL has AES-GCM for vectors of 512 bits: 3.1 and later ones have.
bool UsesVectorAes(unsigned major, unsigned minor);

}  // namespace muster::net
