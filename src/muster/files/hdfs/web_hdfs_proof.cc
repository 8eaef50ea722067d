// How WebHdfs proves to a NameNode who calls.
#include "muster/base/strings.h"
#include "muster/files/hdfs/web_hdfs_calls.h"
#include "muster/net/http/message.h"

namespace muster::files {
namespace {

using formats::Json;
using formats::JsonFields;

bool IsAboutTokens(const WebHdfsCall& call) { return call.op.ends_with("DELEGATIONTOKEN"); }

absl::StatusOr<HadoopToken> ParseTokenAnswer(const Json& json, const std::string& what) {
  JsonFields answer(json, what);
  JsonFields token(answer.Object("Token"), what);
  const std::string text = token.Text("urlString");
  MUSTER_RETURN_IF_ERROR(token.status());
  if (text.empty()) {
    return absl::FailedPreconditionError(
        StrCat(what, ": the NameNode gives no delegation tokens; it is not secure"));
  }
  return ParseTokenText(text);
}

}  // namespace

WebHdfs::Answer WebHdfs::SendWithTicket(const WebHdfsCall& call) {
  std::string authorization;
  Answer failed;
  {
    const std::lock_guard lock(proof_mutex_);
    if (spnego_ == nullptr) {
      auto loaded = Spnego::Load();
      failed.verdict.status = loaded.status();
      if (!loaded.ok()) return failed;
      spnego_ = *std::move(loaded);
    }
  }
  const std::string& url = name_nodes_.urls[active_ % name_nodes_.urls.size()];
  const auto made = spnego_->MakeAuthorization(GetServiceHost(url));
  failed.verdict.status = made.status();
  if (!made.ok()) return failed;
  Answer answer = Send(call, nullptr, {.authorization = *made});
  if (answer.verdict.wants_proof) {
    answer.verdict.status = Annotate(answer.verdict.status,
                                     "the NameNode does not accept this user's Kerberos ticket "
                                     "(klist shows it)");
  }
  return answer;
}

WebHdfs::Answer WebHdfs::ReplaceToken(std::string* token) {
  {
    const std::lock_guard lock(proof_mutex_);
    if (token_ != *token) {  // another thread was quicker
      *token = token_;
      return {};
    }
  }
  const WebHdfsCall call = {.method = "GET", .op = "GETDELEGATIONTOKEN", .path = "/"};
  Answer answer = SendWithTicket(call);
  if (!answer.verdict.status.ok()) {
    if (!token->empty() && *token == options_.token) {
      answer.verdict.status = Annotate(answer.verdict.status,
                                       "the delegation token of HADOOP_TOKEN_FILE_LOCATION is not "
                                       "valid, and there is no ticket in its place");
    }
    return answer;
  }
  const auto json = formats::ParseJsonObject(answer.text, What(call));
  const auto got =
      json.ok() ? ParseTokenAnswer(*json, What(call)) : absl::StatusOr<HadoopToken>(json.status());
  answer.verdict.status = got.status();
  if (!got.ok()) return answer;
  *token = PrintTokenText(*got);
  const std::lock_guard lock(proof_mutex_);
  token_ = *token;
  return answer;
}

WebHdfs::Answer WebHdfs::Ask(const WebHdfsCall& call, const net::BodySink& sink) {
  if (IsAboutTokens(call)) return SendWithTicket(call);
  Proof proof;
  {
    const std::lock_guard lock(proof_mutex_);
    proof.token = token_;
  }
  Answer answer = Send(call, sink, proof);
  if (!answer.verdict.wants_proof) return answer;
  const std::string* const wanted = answer.head->Find("WWW-Authenticate");
  if (proof.token.empty() && (wanted == nullptr || !wanted->starts_with("Negotiate"))) {
    answer.verdict.status = absl::UnauthenticatedError(
        StrCat("the server wants to know who calls, by something else than Kerberos: ",
               answer.verdict.status.message()));
    return answer;
  }
  Answer replaced = ReplaceToken(&proof.token);
  if (!replaced.verdict.status.ok()) return replaced;
  return Send(call, sink, proof);
}

absl::StatusOr<HadoopToken> WebHdfs::GetToken(const std::string& renewer,
                                              const std::string& service) {
  WebHdfsCall call = {.method = "GET", .op = "GETDELEGATIONTOKEN", .path = "/"};
  if (!renewer.empty()) call.parameters.emplace_back("renewer", renewer);
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call(call));
  MUSTER_ASSIGN_OR_RETURN(HadoopToken token, ParseTokenAnswer(json, What(call)));
  token.kind = kHdfsTokenKind;
  token.service = service;
  return token;
}

absl::StatusOr<int64_t> WebHdfs::RenewToken(const HadoopToken& token) {
  const WebHdfsCall call = {.method = "PUT",
                            .op = "RENEWDELEGATIONTOKEN",
                            .path = "/",
                            .parameters = {{"token", PrintTokenText(token)}}};
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call(call));
  JsonFields answer(json, What(call));
  const int64_t until = answer.Int("long", 0, 0, INT64_MAX);
  MUSTER_RETURN_IF_ERROR(answer.status());
  return until;
}

absl::Status WebHdfs::CancelToken(const HadoopToken& token) {
  return Call({.method = "PUT",
               .op = "CANCELDELEGATIONTOKEN",
               .path = "/",
               .parameters = {{"token", PrintTokenText(token)}}})
      .status();
}

}  // namespace muster::files
