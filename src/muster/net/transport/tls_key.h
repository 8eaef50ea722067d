// The keys of TLS 1.3 with which one side of a connection encrypts what it sends (RFC 8446, 7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net::transport {

// The types of TLS records (RFC 8446, 5.1) other than data.
inline constexpr uint8_t kAlertRecord = 21;
inline constexpr uint8_t kHandshakeRecord = 22;

// The suites of TLS 1.3 (RFC 8446, B.4) whose keys can be made here.
inline constexpr uint16_t kAes128Suite = 0x1301;    // TLS_AES_128_GCM_SHA256
inline constexpr uint16_t kAes256Suite = 0x1302;    // TLS_AES_256_GCM_SHA384
inline constexpr uint16_t kChaCha20Suite = 0x1303;  // TLS_CHACHA20_POLY1305_SHA256

// The key of records that are numbered from 0. Its memory is overwritten at its end.
struct TlsKey {
  TlsKey() = default;
  ~TlsKey();
  TlsKey(TlsKey&&) = default;
  TlsKey& operator=(TlsKey&&) = delete;

  uint16_t suite = 0;
  std::string key = {};
  std::string iv = {};  // 12 bytes
};

// What the keys of one direction are made from. Its memory is overwritten at its end.
class TlsSecret {
 public:
  TlsSecret() = default;
  // Of the suite with this number; bytes of another length than its hash has are not taken.
  TlsSecret(uint16_t suite, std::string bytes);
  ~TlsSecret();
  TlsSecret(TlsSecret&&) = default;
  TlsSecret& operator=(TlsSecret&& other) noexcept;

  bool empty() const { return bytes_.empty(); }
  // Becomes the secret after a KeyUpdate. INTERNAL if OpenSSL fails.
  absl::Status Advance();
  absl::StatusOr<TlsKey> MakeKey() const;

 private:
  absl::StatusOr<std::string> Expand(std::string_view label, size_t bytes) const;

  uint16_t suite_ = 0;
  std::string bytes_;
};

}  // namespace muster::net::transport
