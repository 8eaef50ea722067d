#include "muster/launch/kubernetes/api/kube_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

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

std::string Query(const std::string& selector) {
  return selector.empty() ? "" : StrCat("&labelSelector=", net::EscapeForTarget(selector));
}

}  // namespace

// What one sending of a call gave.
struct KubeClient::Attempt {
  absl::StatusOr<Json> result = absl::UnknownError("no attempt was made");
  bool again = false;       // another attempt may succeed
  double retry_after = -1;  // seconds, as the server asks; less than 0: it does not
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
  auto exchange = net::HttpExchange::Create(
      {.url = access.server, .token = access.token, .pool = *std::move(made)});
  MUSTER_RETURN_IF_ERROR(Annotate(exchange.status(), access.source));
  return std::unique_ptr<KubeClient>(
      new KubeClient(std::move(access), options, *std::move(exchange)));
}

absl::Status KubeClient::ToStatus(const net::HttpAnswerHead& head, std::string_view body,
                                  const std::string& what) const {
  std::string reason, message;
  if (const auto status = ParseKubeObject(body, "status"); status.ok()) {
    reason = TextOf(*status, "reason");
    message = TextOf(*status, "message");
  }
  if (message.empty()) message = StrCat("HTTP status ", head.status);
  if (head.status == 401) {
    message = StrCat("the server does not accept the token or certificate of ", access_.source);
  }
  return absl::Status(GetCode(head.status, reason), StrCat(what, ": ", message));
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
  if (answer->head.status < 300) return {.result = ParseKubeObject(answer->body, what)};
  return {.result = ToStatus(answer->head, answer->body, what),
          .again = IsTemporary(answer->head.status),
          .retry_after = GetRetryAfter(answer->head)};
}

absl::StatusOr<Json> KubeClient::Call(std::string_view method, const std::string& target,
                                      const std::string& content_type, const std::string& body) {
  const auto end = steady_clock::now() + duration<double>(options_.patience);
  for (double pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Attempt attempt = Try(method, target, content_type, body);
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

absl::StatusOr<Json> KubeClient::Create(const std::string& target, const Json& object) {
  return Call("POST", target, "application/json", formats::PrintJson(object));
}

absl::StatusOr<Json> KubeClient::Replace(const std::string& target, const Json& object) {
  return Call("PUT", target, "application/json", formats::PrintJson(object));
}

absl::StatusOr<Json> KubeClient::MergePatch(const std::string& target, const Json& patch) {
  return Call("PATCH", target, "application/merge-patch+json", formats::PrintJson(patch));
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
    next = TextOf(Child(*page, "metadata"), "continue");
    if (next.empty()) return TextOf(Child(*page, "metadata"), "resourceVersion");
  }
}

absl::Status KubeClient::Watch(const std::string& target, const std::string& selector,
                               const std::string& version,
                               const std::function<void(KubeEvent event)>& take) {
  const net::HttpCall call = {
      .method = "GET",
      .target = StrCat(target, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=",
                       options_.watch_seconds, "&resourceVersion=", version, Query(selector)),
      .fields = {{"Accept", "application/json"}}};
  const std::string what = StrCat("watch ", target);
  WatchLines lines(what, take);
  net::HttpAnswerHead head;
  std::string error;
  const auto body = [&](std::string_view bytes) {
    if (head.status == 200) return lines.Put(bytes);
    if (error.size() < kMaxErrorBytes) error += bytes;
    return absl::OkStatus();
  };
  const auto keep = [&](const net::HttpAnswerHead& arrived) {
    head = arrived;
    return absl::OkStatus();
  };
  ++calls_;
  const auto sent = exchange_->Send(call, {.head = keep, .body = body},
                                    {.total_seconds = options_.watch_seconds + 30.0,
                                     .silence_seconds = options_.silence_seconds});
  if (sent.ok() && head.status != 200) return ToStatus(head, error, what);
  return sent.status();
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
