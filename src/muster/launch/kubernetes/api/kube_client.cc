#include "muster/launch/kubernetes/api/kube_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/match.h"

#include "muster/launch/kubernetes/api/watch_lines.h"
#include "muster/net/http/message.h"

namespace muster::launch::kubernetes {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;  // a page of 500 objects of 0.5 MB
constexpr size_t kMaxErrorBytes = size_t{1} << 20;
constexpr double kFirstPause = 0.1, kLongestPause = 5;  // seconds between attempts
constexpr int kMaxBeginnings = 5;                       // of a list
constexpr size_t kConnections = 32;                     // a watch occupies one

// The seconds that a server asks to wait; less than 0 if it does not.
double GetRetryAfter(const net::HttpAnswerHead& head) {
  const std::string* const text = head.Find("Retry-After");
  int seconds = 0;
  if (text == nullptr) return -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  return error == std::errc() && end == text->data() + text->size() && seconds >= 0 ? seconds : -1;
}

bool IsTemporary(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

absl::StatusCode GetCode(int status, std::string_view reason) {
  switch (status) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    default:
      if (IsTemporary(status) || status >= 500) return absl::StatusCode::kUnavailable;
      return status >= 400 ? absl::StatusCode::kInvalidArgument
                           : absl::StatusCode::kFailedPrecondition;
  }
}

// What callers do not need of the answer to a call.
Names GetLeftOut(bool leaves_out_specs, std::string_view target) {
  static constexpr std::string_view kOfService[] = {"managedFields", "spec"};
  static constexpr std::string_view kOfPod[] = {"managedFields", "args",    "command",    "env",
                                                "volumeMounts",  "volumes", "tolerations"};
  target = target.substr(0, target.find('?'));
  if (leaves_out_specs && target.ends_with("/services")) return Names(kOfService);
  if (leaves_out_specs && target.ends_with("/pods")) return Names(kOfPod);
  return Names(kManagedFields);
}

// The texts of the fields `Warning: 299 - "TEXT"` (RFC 9111, 5.5).
std::vector<std::string> ReadWarnings(const net::HttpAnswerHead& head) {
  std::vector<std::string> texts;
  for (const net::HttpField& field : head.fields) {
    const size_t begin = field.value.find('"');
    if (!absl::EqualsIgnoreCase(field.name, "Warning") || begin == field.value.npos) continue;
    std::string text;
    for (size_t at = begin + 1; at < field.value.size() && field.value[at] != '"'; ++at) {
      if (field.value[at] == '\\' && at + 1 < field.value.size()) ++at;
      text += field.value[at];
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string Query(const std::string& selector) {
  return selector.empty() ? "" : StrCat("&labelSelector=", net::EscapeForTarget(selector));
}

}  // namespace

// What one sending of a call gave.
struct KubeClient::Attempt {
  absl::StatusOr<Json> result = absl::UnknownError("no attempt was made");
  bool again = false;       // another attempt may succeed
  double retry_after = -1;  // seconds, as the server asks; less than 0: it does not
  std::vector<std::string> warnings = {};
};

absl::StatusOr<std::unique_ptr<KubeClient>> KubeClient::New(KubeAccess access,
                                                            KubeClientOptions options) {
  net::HttpPoolOptions pool = {.max_connections = kConnections, .max_idle = kConnections};
  if (access.server.starts_with("https:")) {
    pool.tls = net::ClientTls{.authority = access.authority,
                              .certificate = access.certificate,
                              .key = access.key,
                              .machine_authorities = access.authority.empty(),
                              .allow_tls_1_2 = true};
  }
  auto made = net::HttpPool::Create(std::move(pool));
  MUSTER_RETURN_IF_ERROR(Annotate(made.status(), access.source));
  auto exchange =
      net::HttpExchange::Create({.url = access.server, .token = access.token, .pool = *made});
  MUSTER_RETURN_IF_ERROR(Annotate(exchange.status(), access.source));
  return std::unique_ptr<KubeClient>(
      new KubeClient(std::move(access), options, *std::move(made), *std::move(exchange)));
}

absl::Status KubeClient::ToStatus(const net::HttpAnswerHead& head, std::string_view body,
                                  const std::string& what) const {
  std::string reason, message;
  if (const auto status = ParseKubeObject(body, "status"); status.ok()) {
    reason = GetText(*status, "reason");
    message = GetText(*status, "message");
  }
  if (message.empty()) message = StrCat("HTTP status ", head.status);
  if (head.status == 401) {
    message = StrCat("the server does not accept the token or certificate of ", access_.source);
  }
  return absl::Status(GetCode(head.status, reason), StrCat(what, ": ", WithoutFullStop(message)));
}

KubeClient::Attempt KubeClient::Try(std::string_view method, const std::string& target,
                                    const std::string& content_type, const std::string& body) {
  net::HttpCall call = {.method = std::string(method), .target = target};
  call.fields = {{"Accept", "application/json"}};
  if (!body.empty()) {
    call.fields.push_back({"Content-Type", content_type});
    call.body = net::MakeTextBody(body);
  }
  const std::string what = StrCat(method, " ", target.substr(0, target.find('?')));
  ++calls_;
  const auto answer =
      exchange_->Fetch(call, kMaxAnswerBytes, {.total_seconds = options_.call_seconds});
  if (!answer.ok()) {
    const bool again =
        absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
    return {.result = answer.status(), .again = again};
  }
  if (answer->head.status < 300) {
    const Names left_out = GetLeftOut(options_.leaves_out_specs, target);
    return {.result = ParseKubeObject(answer->body, what, left_out),
            .warnings = ReadWarnings(answer->head)};
  }
  return {.result = ToStatus(answer->head, answer->body, what),
          .again = IsTemporary(answer->head.status),
          .retry_after = GetRetryAfter(answer->head)};
}

absl::StatusOr<Json> KubeClient::Call(std::string_view method, const std::string& target,
                                      const std::string& content_type, const std::string& body,
                                      std::vector<std::string>* warnings) {
  const auto end = steady_clock::now() + duration<double>(options_.patience);
  for (double pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Attempt attempt = Try(method, target, content_type, body);
    if (warnings != nullptr) *warnings = std::move(attempt.warnings);
    if (!attempt.again) return std::move(attempt.result);
    const double wait = attempt.retry_after >= 0 ? attempt.retry_after : pause;
    if (steady_clock::now() + duration<double>(wait) > end || !Wait(wait)) {
      return std::move(attempt.result);
    }
  }
}

absl::StatusOr<Json> KubeClient::Get(const std::string& target) {
  return Call("GET", target, "", "");
}

absl::StatusOr<Json> KubeClient::Create(const std::string& target, const Json& object,
                                        std::vector<std::string>* warnings) {
  return Call("POST", target, "application/json", formats::PrintJson(object), warnings);
}

absl::StatusOr<Json> KubeClient::Replace(const std::string& target, const Json& object) {
  return Call("PUT", target, "application/json", formats::PrintJson(object));
}

absl::StatusOr<Json> KubeClient::MergePatch(const std::string& target, const Json& patch) {
  return Call("PATCH", target, "application/merge-patch+json", formats::PrintJson(patch));
}

absl::StatusOr<Json> KubeClient::StrategicPatch(const std::string& target, const Json& patch) {
  return Call("PATCH", target, "application/strategic-merge-patch+json", formats::PrintJson(patch));
}

absl::Status KubeClient::Delete(const std::string& target, const std::string& uid,
                                int64_t grace_seconds) {
  Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  options["propagationPolicy"] = "Background";
  options["preconditions"]["uid"] = uid;
  if (grace_seconds >= 0) options["gracePeriodSeconds"] = grace_seconds;
  return Call("DELETE", target, "application/json", formats::PrintJson(options)).status();
}

absl::StatusOr<std::string> KubeClient::List(const std::string& target, const std::string& selector,
                                             const std::function<void()>& begin,
                                             const std::function<void(Json object)>& put) {
  std::string next;
  begin();
  for (int beginnings = 1;;) {
    absl::StatusOr<Json> page =
        Get(StrCat(target, "?limit=", options_.page_size, Query(selector),
                   next.empty() ? "" : StrCat("&continue=", net::EscapeForTarget(next))));
    if (absl::IsOutOfRange(page.status()) && !next.empty() && beginnings < kMaxBeginnings) {
      ++beginnings;
      next.clear();
      begin();
      continue;
    }
    MUSTER_RETURN_IF_ERROR(page.status());
    const auto items = page->find("items");
    if (items != page->end() && items->is_array()) {
      for (Json& item : *items) put(std::move(item));
    }
    next = GetText(Child(*page, "metadata"), "continue");
    if (next.empty()) return GetText(Child(*page, "metadata"), "resourceVersion");
  }
}

// Hands the body of a good answer to `take`, while it arrives.
absl::Status KubeClient::Stream(const net::HttpCall& call, const std::string& what,
                                const net::HttpTimeouts& timeouts, const net::BodySink& take,
                                const std::function<void()>& begun) {
  net::HttpAnswerHead head;
  std::string error;
  const auto body = [&](std::string_view bytes) {
    if (head.status == 200) return take(bytes);
    if (error.size() < kMaxErrorBytes) error += bytes;
    return absl::OkStatus();
  };
  const auto keep = [&](const net::HttpAnswerHead& arrived) {
    head = arrived;
    if (begun && head.status == 200) begun();
    return absl::OkStatus();
  };
  ++calls_;
  const auto sent = exchange_->Send(call, {.head = keep, .body = body}, timeouts);
  if (sent.ok() && head.status != 200) return ToStatus(head, error, what);
  return sent.status();
}

absl::Status KubeClient::Watch(const std::string& target, const std::string& selector,
                               const std::string& version,
                               const std::function<void(KubeEvent event)>& take,
                               const std::function<bool(int64_t version)>& is_known,
                               const std::function<void()>& begun) {
  const net::HttpCall call = {
      .method = "GET",
      .target = StrCat(target, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=",
                       options_.watch_seconds, "&resourceVersion=", version, Query(selector)),
      .fields = {{"Accept", "application/json"}}};
  const std::string what = StrCat("watch ", target);
  WatchLines lines(what, take, GetLeftOut(options_.leaves_out_specs, target), is_known);
  return Stream(
      call, what,
      {.total_seconds = options_.watch_seconds + 30.0, .silence_seconds = options_.silence_seconds},
      [&](std::string_view bytes) { return lines.Put(bytes); }, begun);
}

absl::Status KubeClient::Read(const std::string& target, const std::string& query,
                              const net::BodySink& take) {
  const net::HttpCall call = {.method = "GET",
                              .target = query.empty() ? target : StrCat(target, "?", query),
                              .fields = {{"Accept", "*/*"}}};
  return Stream(call, StrCat("GET ", target),
                {.silence_seconds = std::numeric_limits<double>::infinity()}, take);
}

absl::StatusOr<net::HttpAnswer> KubeClient::Fetch(const net::HttpCall& call, double seconds) {
  ++calls_;
  return exchange_->Fetch(call, kMaxAnswerBytes, {.total_seconds = seconds});
}

void KubeClient::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  exchange_->Cancel();
}

bool KubeClient::Wait(double seconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration<double>(seconds), [this] { return cancelled_; });
}

}  // namespace muster::launch::kubernetes
