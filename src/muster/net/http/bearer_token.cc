#include "muster/net/http/bearer_token.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"

#include "muster/net/secret_file.h"

namespace muster::net {
namespace {

constexpr size_t kMaxBearerBytes = size_t{16} << 10;

bool IsBearerCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

// Returns the token without the white space around it.
absl::StatusOr<std::string_view> CheckBearer(std::string_view text, std::string_view where) {
  const std::string_view token = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  if (!token.empty() && token.size() <= kMaxBearerBytes &&
      std::all_of(token.begin(), token.end(), IsBearerCharacter)) {
    return token;
  }
  return absl::InvalidArgumentError(StrCat("bearer token in ", where, ": ", token.size(),
                                           " characters, which are not the 1 to ", kMaxBearerBytes,
                                           " letters, digits and -._~+/= of a bearer token"));
}

}  // namespace

BearerToken::~BearerToken() { OPENSSL_cleanse(text_.data(), text_.size()); }

absl::StatusOr<BearerToken> BearerToken::FromText(std::string_view text, std::string_view where) {
  MUSTER_ASSIGN_OR_RETURN(const std::string_view token, CheckBearer(text, where));
  return BearerToken(Kind::kText, std::string(token));
}

BearerToken BearerToken::FromFile(std::string path) { return {Kind::kFile, std::move(path)}; }

BearerToken BearerToken::FromMountedFile(std::string path) {
  return {Kind::kMountedFile, std::move(path)};
}

BearerToken BearerToken::FromFunction(ReadFunction read, std::string where) {
  BearerToken token(Kind::kFunction, std::move(where));
  token.read_ = std::move(read);
  return token;
}

absl::StatusOr<std::string> BearerToken::Read() const {
  if (kind_ == Kind::kText) return text_;
  if (kind_ == Kind::kFunction) {
    MUSTER_ASSIGN_OR_RETURN(std::string read, read_());
    const absl::Cleanup wipe = [&] { OPENSSL_cleanse(read.data(), read.size()); };
    MUSTER_ASSIGN_OR_RETURN(const std::string_view token, CheckBearer(read, text_));
    return std::string(token);
  }
  // White space and a line's end besides the token.
  constexpr size_t kMaxFileBytes = kMaxBearerBytes + 1024;
  MUSTER_ASSIGN_OR_RETURN(std::string contents, kind_ == Kind::kFile
                                                    ? ReadSecretFile(text_, kMaxFileBytes)
                                                    : ReadMountedSecretFile(text_, kMaxFileBytes));
  const absl::Cleanup wipe = [&] { OPENSSL_cleanse(contents.data(), contents.size()); };
  MUSTER_ASSIGN_OR_RETURN(const std::string_view token, CheckBearer(contents, text_));
  return std::string(token);
}

}  // namespace muster::net
