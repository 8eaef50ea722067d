#include "muster/files/hdfs/web_hdfs.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "muster/base/strings.h"
#include "muster/files/hdfs/web_hdfs_calls.h"
#include "muster/net/http/message.h"

namespace muster::files {
namespace {

using formats::Json;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::string_view kPrefix = "/webhdfs/v1";
constexpr double kLongestPause = 2;  // seconds between attempts
constexpr double kSilentWait = 1.5;  // seconds after which a person is told what is waited for
constexpr size_t kConnections = 64;

bool IsJson(const net::HttpAnswerHead& head) {
  const std::string* const type = head.Find("Content-Type");
  return type != nullptr && type->starts_with("application/json");
}

}  // namespace

bool WebHdfs::Patience::Wait(const absl::Status& why) {
  const double patience =
      owner_.answered_ ? owner_.options_.patience : owner_.options_.first_patience;
  const bool first_round = ++attempts_ <= owner_.name_nodes_.urls.size();
  const double pause = first_round ? 0 : pause_;
  const double waited = duration<double>(steady_clock::now() - begin_).count();
  if (waited + pause > patience) return false;
  if (owner_.answered_ && waited + pause > kSilentWait) Note(why, patience - waited);
  std::this_thread::sleep_for(duration<double>(pause));
  if (!first_round) pause_ = std::min(2 * pause_, kLongestPause);
  return true;
}

void WebHdfs::Patience::Note(const absl::Status& why, double seconds_left) {
  if (noted_ || !owner_.options_.note) return;
  noted_ = true;
  owner_.options_.note(StrCat("hdfs://", owner_.name_nodes_.authority, ": waiting up to ",
                              static_cast<int64_t>(seconds_left), " s, since ", why.message()));
}

absl::StatusOr<std::unique_ptr<WebHdfs>> WebHdfs::New(NameNodes name_nodes,
                                                      WebHdfsOptions options) {
  // A NameNode names DataNodes by its own scheme. Reading the machine's authorities takes longer
  // than most calls.
  std::optional<net::ClientTls> tls;
  if (std::any_of(name_nodes.urls.begin(), name_nodes.urls.end(),
                  [](const std::string& url) { return url.starts_with("https:"); })) {
    tls = net::ClientTls{.machine_authorities = true, .allow_tls_1_2 = true};
  }
  MUSTER_ASSIGN_OR_RETURN(
      auto pool, net::HttpPool::Create({.tls = std::move(tls), .max_connections = kConnections}));
  std::unique_ptr<WebHdfs> made(
      new WebHdfs(std::move(name_nodes), std::move(options), std::move(pool)));
  for (const std::string& url : made->name_nodes_.urls) {
    MUSTER_RETURN_IF_ERROR(made->Server(url).status());
  }
  return made;
}

absl::StatusOr<net::HttpExchange*> WebHdfs::Server(const std::string& url) {
  const std::lock_guard lock(mutex_);
  auto& server = servers_[url];
  if (server == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(server, net::HttpExchange::Create({.url = url, .pool = pool_}));
  }
  return server.get();
}

std::string WebHdfs::Target(const WebHdfsCall& call, const Proof& proof) const {
  std::string target(kPrefix);
  std::string_view rest = call.path;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the slash
    const std::string_view name = rest.substr(0, rest.find('/'));
    target += StrCat("/", net::EscapeForTarget(name));
    rest.remove_prefix(name.size());
  }
  target += StrCat("?op=", call.op);
  for (const auto& [name, value] : call.parameters) {
    target += StrCat("&", name, "=", net::EscapeForTarget(value));
  }
  if (!proof.token.empty()) {
    // It is that of the one for whom it was got.
    target += StrCat("&delegation=", net::EscapeForTarget(proof.token));
    return target;
  }
  if (proof.authorization.empty() && !options_.user.empty()) {
    target += StrCat("&user.name=", net::EscapeForTarget(options_.user));
  }
  if (!options_.proxy_user.empty()) {
    target += StrCat("&doas=", net::EscapeForTarget(options_.proxy_user));
  }
  return target;
}

WebHdfs::Answer WebHdfs::Send(const WebHdfsCall& call, const net::BodySink& sink,
                              const Proof& proof) {
  const size_t index = active_;
  const std::string& url = name_nodes_.urls[index % name_nodes_.urls.size()];
  Answer answer;
  const auto server = Server(url);
  if (!server.ok()) {
    answer.verdict.status = server.status();
    return answer;
  }
  net::HttpCall request = {.method = call.method, .target = Target(call, proof)};
  if (!proof.authorization.empty()) {
    request.fields.push_back({"Authorization", proof.authorization});
  }
  const net::HttpReceiver receiver = {
      .head =
          [&](const net::HttpAnswerHead& head) {
            answer.has_data = sink != nullptr && head.status == 200 && !IsJson(head);
            return absl::OkStatus();
          },
      .body =
          [&](std::string_view bytes) {
            if (answer.has_data) return sink(bytes);
            if (answer.text.size() + bytes.size() > kMaxTextBytes) {
              return absl::ResourceExhaustedError(StrCat(What(call), ": the answer is too long"));
            }
            answer.text += bytes;
            return absl::OkStatus();
          }};
  answer.head = (*server)->Send(request, receiver, {.total_seconds = options_.call_seconds});
  if (answer.head.ok()) {
    answered_ = true;
    answer.verdict = JudgeAnswer(answer.head->status, answer.text, What(call));
  } else {
    const bool again = IsOfTransport(answer.head.status());
    answer.verdict = {Annotate(answer.head.status(), What(call)), again, again};
  }
  if (answer.verdict.other_name_node) {
    size_t expected = index;
    active_.compare_exchange_strong(expected, index + 1);
  }
  return answer;
}

absl::StatusOr<Json> WebHdfs::Call(const WebHdfsCall& call) {
  Patience patience(*this);
  while (true) {
    const Answer answer = Ask(call, nullptr);
    if (answer.verdict.again && patience.Wait(answer.verdict.status)) continue;
    MUSTER_RETURN_IF_ERROR(answer.verdict.status);
    if (answer.text.empty()) return Json::object();
    return formats::ParseJsonObject(answer.text, What(call));
  }
}

absl::StatusOr<HdfsFileStatus> WebHdfs::GetStatus(const std::string& path) {
  const WebHdfsCall call = {.method = "GET", .op = "GETFILESTATUS", .path = path};
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call(call));
  return ParseFileStatus(json, What(call));
}

absl::Status WebHdfs::Rename(const std::string& from, const std::string& identity,
                             const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(const bool replaces, CanReplace(from));
  if (!replaces) return RenameOverNothing(from, to);
  const auto renamed = Call({.method = "PUT",
                             .op = "RENAME",
                             .path = from,
                             .parameters = {{"destination", to}, {"renameoptions", "OVERWRITE"}}});
  if (renamed.ok() || !absl::IsNotFound(renamed.status())) return renamed.status();
  // The answer of an earlier sending may have been lost.
  const auto now = GetStatus(to);
  return now.ok() && now->info.identity == identity ? absl::OkStatus() : renamed.status();
}

absl::StatusOr<bool> WebHdfs::CanReplace(const std::string& from) {
  if (replacing_ == Replacing::kUnknown) {
    const std::string nothing = StrCat(from, ".muster-no-such-file");
    const auto tried = Call({.method = "PUT",
                             .op = "RENAME",
                             .path = nothing,
                             .parameters = {{"destination", from + ".muster-no-such-file-either"},
                                            {"renameoptions", "OVERWRITE"}}});
    if (!tried.ok() && !absl::IsNotFound(tried.status())) return tried.status();
    replacing_ = tried.ok() ? Replacing::kNo : Replacing::kYes;
  }
  return replacing_ == Replacing::kYes;
}

absl::Status WebHdfs::RenameOverNothing(const std::string& from, const std::string& to) {
  const auto there = GetStatus(to);
  if (there.ok()) {
    if (there->info.is_folder) {
      MUSTER_ASSIGN_OR_RETURN(const Json list,
                              Call({.method = "GET", .op = "LISTSTATUS", .path = to}));
      MUSTER_ASSIGN_OR_RETURN(const auto entries, ParseFileStatuses(list, to));
      if (!entries.empty()) {
        return absl::FailedPreconditionError(StrCat("RENAME ", from, ": ", to, " is not empty"));
      }
    }
    MUSTER_RETURN_IF_ERROR(Call({.method = "DELETE", .op = "DELETE", .path = to}).status());
  } else if (!absl::IsNotFound(there.status())) {
    return there.status();
  }
  const WebHdfsCall call = {
      .method = "PUT", .op = "RENAME", .path = from, .parameters = {{"destination", to}}};
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call(call));
  formats::JsonFields answer(json, What(call));
  if (answer.Bool("boolean", false)) return absl::OkStatus();
  // The answer of an earlier sending may have been lost.
  if (absl::IsNotFound(GetStatus(from).status()) && GetStatus(to).ok()) return absl::OkStatus();
  return absl::NotFoundError(
      StrCat(What(call), ": it was not renamed to ", to, ", whose folder may not be there"));
}

}  // namespace muster::files
