// The token that a client presents to another system's server as `Authorization: Bearer` (RFC
// 6750): a text, a file whose contents may change, such as the ServiceAccount token that Kubernetes
// renews in a running pod, or what a function returns, such as a program's output.
//
// No message contains a token or a part of one, and a BearerToken does not print. The token between
// a job's own programs, which is also checked by a server, is the class Token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net {

// A value; copies are wiped when destroyed. Const calls from any thread.
class BearerToken {
 public:
  // White space around the token is dropped. INVALID_ARGUMENT for text that cannot be used in a
  // header field: empty, longer than 16 KiB, or with other characters than letters, digits and
  // -._~+/=. `where` is for messages, which say how long the text was but not what it was.
  static absl::StatusOr<BearerToken> FromText(std::string_view text, std::string_view where);
  // A file that only its owner may read, by the rules of ReadSecretFile() (secret_file.h).
  static BearerToken FromFile(std::string path);
  // A file that the platform mounted, by the rules of ReadMountedSecretFile().
  static BearerToken FromMountedFile(std::string path);
  // `read` is called at each call, from any thread; it keeps what it need not ask for again.
  // `where` is for messages.
  using ReadFunction = std::function<absl::StatusOr<std::string>()>;
  static BearerToken FromFunction(ReadFunction read, std::string where);

  BearerToken(const BearerToken&) = default;
  BearerToken& operator=(const BearerToken&) = default;
  ~BearerToken();

  // The token as it is now. A file is opened and read at each call, so that a renewed token is used
  // from the next call on, and no old one is kept in memory; this costs some microseconds. The
  // caller must wipe the result. Errors are those of FromText() and of reading the file, which they
  // name.
  absl::StatusOr<std::string> Read() const;

 private:
  enum class Kind : uint8_t { kText, kFile, kMountedFile, kFunction };
  BearerToken(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_;
  std::string text_;  // the token, the file's path, or where the function's token is from
  ReadFunction read_ = nullptr;
};

}  // namespace muster::net
