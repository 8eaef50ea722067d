#include "muster/net/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

#include "muster/net/secret_file.h"

namespace muster::net {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kTokenFileBytes = 1024;

}  // namespace

Token::~Token() { OPENSSL_cleanse(hex_.data(), hex_.size()); }

absl::StatusOr<Token> Token::Make() {
  std::string bytes(kTokenBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "make a token: random bytes from the operating system");
  }
  Token token(absl::BytesToHexString(bytes));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return token;
}

absl::StatusOr<Token> Token::Parse(std::string_view text, std::string_view where) {
  const std::string_view hex = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  const bool digits =
      std::all_of(hex.begin(), hex.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); });
  if (hex.size() != 2 * kTokenBytes || !digits) {
    return absl::InvalidArgumentError(
        StrCat("token in ", where, ": ", hex.size(), " characters, which are not the ",
               2 * kTokenBytes, " hex digits of a key; make one by: openssl rand -hex 32"));
  }
  return Token(absl::AsciiStrToLower(ToAbsl(hex)));
}

Token Token::Derive(std::string_view purpose) const {
  std::string bytes(kTokenBytes, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), hex_.data(), static_cast<int>(hex_.size()),
       reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size(),
       reinterpret_cast<unsigned char*>(bytes.data()), &size);
  Token derived(absl::BytesToHexString(bytes));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return derived;
}

bool Token::Matches(std::string_view presented) const {
  return presented.size() == hex_.size() &&
         CRYPTO_memcmp(presented.data(), hex_.data(), hex_.size()) == 0;
}

absl::StatusOr<Token> MakeTokenFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(Token token, Token::Make());
  std::string line = token.Reveal() + "\n";
  const absl::Status written = WriteSecretFile(path, line);
  OPENSSL_cleanse(line.data(), line.size());
  MUSTER_RETURN_IF_ERROR(written);
  return token;
}

absl::StatusOr<Token> ReadTokenFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::string text, ReadSecretFile(path, kTokenFileBytes));
  absl::StatusOr<Token> token = Token::Parse(text, path);
  OPENSSL_cleanse(text.data(), text.size());
  return token;
}

absl::StatusOr<Token> ReadTokenDescriptor(int descriptor) {
  const std::string name = StrCat("descriptor ", descriptor);
  MUSTER_ASSIGN_OR_RETURN(std::string text,
                          ReadSecretDescriptor(descriptor, name, kTokenFileBytes));
  absl::StatusOr<Token> token = Token::Parse(text, name);
  OPENSSL_cleanse(text.data(), text.size());
  return token;
}

}  // namespace muster::net
