// The OpenSSL that this process encrypts with.
#pragma once

#include <string>

namespace muster::net {

struct TlsLibrary {
  std::string version;  // "OpenSSL 3.0.19", of the library that is loaded or linked
  // This processor has AES instructions for vectors of 512 bits, which OpenSSL uses from 3.1 on.
  // With them it encrypts about three times as fast.
  bool newer_is_faster = false;
};
TlsLibrary GetTlsLibrary();

}  // namespace muster::net
