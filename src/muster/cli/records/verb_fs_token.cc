#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/files/hdfs/hadoop_environment.h"
#include "muster/files/hdfs/hadoop_token.h"
#include "muster/io/path_scheme.h"
#include "muster/io/private_file_system.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxTokenFileBytes = uint64_t{16} << 20;

struct TokenFlags {
  std::string url, path, renewer;
};

struct Hdfs {
  std::string service = {};  // its name in tokens
  std::unique_ptr<files::WebHdfs> calls = {};
};

absl::StatusOr<Hdfs> OpenHdfs(const std::string& url) {
  const auto hadoop = files::OpenHadoopEnvironment();
  MUSTER_ASSIGN_OR_RETURN(
      files::NameNodes nodes,
      hadoop->Resolve(io::PathScheme(url), std::string(io::PathAuthority(url))));
  Hdfs hdfs = {.service = files::GetTokenService(nodes)};
  MUSTER_ASSIGN_OR_RETURN(hdfs.calls, hadoop->Open(std::move(nodes)));
  return hdfs;
}

absl::Status RunGet(const TokenFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const Hdfs hdfs, OpenHdfs(flags.url));
  MUSTER_ASSIGN_OR_RETURN(const files::HadoopToken token,
                          hdfs.calls->GetToken(flags.renewer, hdfs.service));
  return io::WriteFileAtomically(*io::NewPrivateFileSystem(), flags.path,
                                 files::PrintTokenFile({token}));
}

// The token for this HDFS in the file.
absl::StatusOr<files::HadoopToken> ReadToken(const std::string& path, const Hdfs& hdfs) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes,
                          io::ReadFile(*files::OpenFileSystems(), path, kMaxTokenFileBytes));
  MUSTER_ASSIGN_OR_RETURN(const auto tokens, files::ParseTokenFile(bytes, path));
  for (const files::HadoopToken& token : tokens) {
    if (token.service == hdfs.service && token.kind == files::kHdfsTokenKind) return token;
  }
  return absl::NotFoundError(
      StrCat(path, ": no ", files::kHdfsTokenKind, " for ", hdfs.service, " is in this file"));
}

absl::Status RunRenew(const TokenFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const Hdfs hdfs, OpenHdfs(flags.url));
  MUSTER_ASSIGN_OR_RETURN(const files::HadoopToken token, ReadToken(flags.path, hdfs));
  MUSTER_ASSIGN_OR_RETURN(const int64_t until, hdfs.calls->RenewToken(token));
  std::printf("valid until %s\n",
              absl::FormatTime(absl::RFC3339_sec, absl::FromUnixMillis(until), absl::UTCTimeZone())
                  .c_str());
  return absl::OkStatus();
}

absl::Status RunCancel(const TokenFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const Hdfs hdfs, OpenHdfs(flags.url));
  MUSTER_ASSIGN_OR_RETURN(const files::HadoopToken token, ReadToken(flags.path, hdfs));
  return hdfs.calls->CancelToken(token);
}

CLI::App* AddVerb(CLI::App& token, const char* name, const char* what, const char* example,
                  const std::shared_ptr<TokenFlags>& flags,
                  absl::Status (*run)(const TokenFlags&)) {
  CLI::App* verb = token.add_subcommand(name, what);
  verb->footer(example);
  verb->add_option("url", flags->url, "The HDFS, as hdfs://NAMENODE/")
      ->required()
      ->type_name("URL");
  verb->add_option("file", flags->path, "The file of tokens")->required()->type_name("FILE");
  verb->callback([flags, run] { FailUnlessOk(run(*flags)); });
  return verb;
}

}  // namespace

void AddFsToken(CLI::App& fs) {
  CLI::App* token = fs.add_subcommand(
      "token", "Delegation tokens, for programs without a Kerberos ticket of their own");
  token->require_subcommand(1);
  token->footer(
      "The environment variable HADOOP_TOKEN_FILE_LOCATION names the file to a program of Muster "
      "or Hadoop. Whoever can read the file can do all that you may do on this HDFS.\n"
      "Example:\n  muster fs token get hdfs:/// me.token");
  const auto flags = std::make_shared<TokenFlags>();
  CLI::App* get =
      AddVerb(*token, "get", "Get a token, by your ticket, into a new file",
              "Example:\n  muster fs token get hdfs:/// me.token --renewer yarn", flags, RunGet);
  get->add_option("--renewer", flags->renewer, "The user who may renew it (default: you)")
      ->type_name("USER");
  AddVerb(*token, "renew", "Make a token valid for longer",
          "Example:\n  muster fs token renew hdfs:/// me.token", std::make_shared<TokenFlags>(),
          RunRenew);
  AddVerb(*token, "cancel", "Make a token invalid",
          "Example:\n  muster fs token cancel hdfs:/// me.token", std::make_shared<TokenFlags>(),
          RunCancel);
}

}  // namespace muster::cli
