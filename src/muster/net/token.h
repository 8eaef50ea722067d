// The secret by which a job's own programs authenticate to each other: 32 random bytes, written as
// 64 hex digits.
//
// It is passed in a 0600 file, in an inherited descriptor and in the field `Authorization: Bearer`,
// but never in arguments, environment, logs or a journal. No message of this layer contains a token
// or a part of one, and a Token does not print.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net {

// A value; copies are wiped when destroyed. Const calls from any thread.
class Token {
 public:
  // Makes a token from the operating system's random numbers.
  static absl::StatusOr<Token> Make();
  // 64 hex digits; white space around them is allowed. `where` is for messages, which say how long
  // the text was but not what it was.
  static absl::StatusOr<Token> Parse(std::string_view text, std::string_view where);

  Token(const Token&) = default;
  Token& operator=(const Token&) = default;
  ~Token();

  // Another secret, from which this one cannot be computed: HMAC-SHA256 of `purpose` under this
  // one.
  Token Derive(std::string_view purpose) const;
  // Whether `presented` is this token. Takes the same time wherever they differ.
  bool Matches(std::string_view presented) const;
  // For the header and the file; do not store it anywhere else.
  const std::string& Reveal() const { return hex_; }

 private:
  explicit Token(std::string hex) : hex_(std::move(hex)) {}
  std::string hex_;
};

// Makes a new token in a new file of mode 0600; replaces an older one.
absl::StatusOr<Token> MakeTokenFile(const std::string& path);
// Refuses a file that others may read (secret_file.h).
absl::StatusOr<Token> ReadTokenFile(const std::string& path);
// Reads the descriptor to its end and closes it.
absl::StatusOr<Token> ReadTokenDescriptor(int descriptor);

}  // namespace muster::net
