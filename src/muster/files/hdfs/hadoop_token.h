// HadoopToken: a delegation token, by which a process calls HDFS in place of a Kerberos ticket, and
// the files in which Hadoop keeps tokens (HADOOP_TOKEN_FILE_LOCATION; YARN gives each container
// one). The formats are those of Hadoop's classes Token and Credentials:
// docs/formats/hadoop_token.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::files {

struct HadoopToken {
  std::string identifier = {};  // bytes
  std::string password = {};    // bytes; secret
  std::string kind = {};        // "HDFS_DELEGATION_TOKEN"
  std::string service = {};     // "10.0.0.1:8020", "ha-hdfs:nameservice"
  friend bool operator==(const HadoopToken&, const HadoopToken&) = default;
};

inline constexpr std::string_view kHdfsTokenKind = "HDFS_DELEGATION_TOKEN";

// The text of a token in URLs (Token.encodeToUrlString). Parsing says INVALID_ARGUMENT; no message
// repeats a token.
std::string PrintTokenText(const HadoopToken& token);
absl::StatusOr<HadoopToken> ParseTokenText(std::string_view text);

// A file of tokens (Credentials.writeTokenStorageFile). Parsing knows both of Hadoop's forms,
// leaves out the secret keys that such a file may hold, and says INVALID_ARGUMENT, with `path`.
std::string PrintTokenFile(const std::vector<HadoopToken>& tokens);
absl::StatusOr<std::vector<HadoopToken>> ParseTokenFile(std::string_view bytes,
                                                        const std::string& path);

}  // namespace muster::files
