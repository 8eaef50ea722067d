#include "muster/net/http_client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"

namespace muster::net {

namespace internal {
struct UrlParts {
  std::string scheme = {};
  std::string host = {};
  std::string base = {};  // without a slash at its end
};
}  // namespace internal

namespace {

using internal::UrlParts;
using SteadyClock = std::chrono::steady_clock;

// libcurl leaves SIGPIPE to its user, and OpenSSL writes without MSG_NOSIGNAL: while this lives the
// thread gets none, and one that waited is taken away.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec at_once = {};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

struct Answer {
  std::string body = {};
  size_t max_bytes = 0;
  bool too_large = false;
};

size_t TakeBytes(char* bytes, size_t one, size_t count, void* user) {
  auto* answer = static_cast<Answer*>(user);
  const size_t size = one * count;
  if (answer->body.size() + size > answer->max_bytes) {
    answer->too_large = true;
    return 0;
  }
  answer->body.append(bytes, size);
  return size;
}

curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// At least one, for 0 is libcurl's "for ever"; at most a day.
long Milliseconds(double seconds) {
  constexpr double kDay = 86'400'000;
  return seconds > 0 ? static_cast<long>(std::clamp(seconds * 1000, 1.0, kDay)) : 1;
}

curl_blob BlobOf(const std::string& text) {
  return {.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_COPY};
}

std::string PartOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

absl::StatusOr<UrlParts> ParseUrl(const std::string& text) {
  CURLU* url = curl_url();
  const absl::Cleanup free_url = [url] { curl_url_cleanup(url); };
  // The text itself is not repeated: it may hold a password.
  if (curl_url_set(url, CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return absl::InvalidArgumentError(
        "HTTP client: the server's URL is none; write http://HOST:PORT");
  }
  UrlParts parts = {.scheme = PartOf(url, CURLUPART_SCHEME), .host = PartOf(url, CURLUPART_HOST)};
  const bool has_more =
      !PartOf(url, CURLUPART_USER).empty() || !PartOf(url, CURLUPART_PASSWORD).empty() ||
      !PartOf(url, CURLUPART_QUERY).empty() || !PartOf(url, CURLUPART_FRAGMENT).empty();
  if ((parts.scheme != "http" && parts.scheme != "https") || has_more) {
    return absl::InvalidArgumentError(
        "HTTP client: the server's URL must be http://HOST:PORT or https://HOST:PORT, without "
        "user, password or query");
  }
  parts.base = text.substr(0, text.find_last_not_of('/') + 1);
  return parts;
}

bool IsLoopbackHost(const std::string& host) {
  return host == "localhost" || host == "[::1]" ||
         (absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == host.npos);
}

absl::Status CheckSecrecy(const HttpClientOptions& options, const UrlParts& url) {
  if (url.scheme == "https") {
    if (options.tls && !options.tls->authority.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat("HTTP client for ", url.base,
               ": https wants the certificate of the job's own authority (muster certs makes it)"));
  }
  if (!options.token || IsLoopbackHost(url.host)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("HTTP client for ", url.base,
             ": the token would cross the network readable for all; use https"));
}

absl::Status CurlStatus(CURLcode code, const char* detail, const Answer& answer) {
  const std::string cause = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_WRITE_ERROR:
      if (answer.too_large) {
        return absl::ResourceExhaustedError(StrCat(
            "the answer has more than the ", answer.max_bytes, " bytes that are accepted here"));
      }
      return absl::InternalError(cause);
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(StrCat("no answer in time: ", cause));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::UnauthenticatedError(
          StrCat("TLS: ", cause, "; is this server of the same job, and its certificate for this ",
                 "name?"));
    case CURLE_SSL_CACERT_BADFILE:
      return absl::InvalidArgumentError(StrCat("TLS: the job's authority: ", cause));
    default:
      return absl::UnavailableError(cause);
  }
}

}  // namespace

struct HttpClient::State {
  ~State() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    if (multi != nullptr) curl_multi_cleanup(multi);
  }

  void SetUp();
  void SetUpTls() const;
  void SetRequest(std::string_view method, const std::string& url, const std::string& body) const;
  CURLcode Perform(SteadyClock::time_point deadline) const;

  HttpClientOptions options;
  internal::UrlParts url;
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  std::atomic<bool> cancelled = false;
  char error[CURL_ERROR_SIZE] = {};
};

void HttpClient::State::SetUpTls() const {
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3);
  // The system's authorities are as foreign to a job as any other.
  curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
  if (!options.tls) return;
  curl_blob authority = BlobOf(options.tls->authority);
  curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &authority);
  if (options.tls->certificate.empty()) return;
  curl_blob certificate = BlobOf(options.tls->certificate);
  curl_blob key = BlobOf(options.tls->key);
  curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
  curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
}

// Options stay from request to request: curl_easy_reset would end what Cancel() works on.
void HttpClient::State::SetUp() {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, OpenSocket);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, TakeBytes);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.connect_seconds));
  if (options.token) {
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, options.token->Reveal().c_str());
  }
  SetUpTls();
}

void HttpClient::State::SetRequest(std::string_view method, const std::string& target,
                                   const std::string& body) const {
  curl_easy_setopt(easy, CURLOPT_URL, target.c_str());
  if (body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, nullptr);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, std::string(method).c_str());
}

CURLcode HttpClient::State::Perform(SteadyClock::time_point deadline) const {
  for (;;) {
    if (cancelled) return CURLE_ABORTED_BY_CALLBACK;
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg == CURLMSG_DONE) return message->data.result;
    }
    const auto wait =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (wait.count() < 0) return CURLE_OPERATION_TIMEDOUT;
    // Woken by the socket, by libcurl's own timers, or by Cancel().
    const auto bounded = std::min<int64_t>(wait.count() + 1, 60'000);
    curl_multi_poll(multi, nullptr, 0, static_cast<int>(bounded), nullptr);
  }
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpClient::~HttpClient() {
  const NoSigpipe quiet;  // closing may write
  state_.reset();
}

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(HttpClientOptions options) {
  // Counted by libcurl, thread-safe in this version, and never undone: others may use it.
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::InternalError("HTTP client: libcurl does not start");
  }
  auto state = std::make_unique<State>();
  MUSTER_ASSIGN_OR_RETURN(state->url, ParseUrl(options.url));
  MUSTER_RETURN_IF_ERROR(CheckSecrecy(options, state->url));
  state->options = std::move(options);
  state->easy = curl_easy_init();
  state->multi = curl_multi_init();
  if (state->easy == nullptr || state->multi == nullptr) {
    return absl::ResourceExhaustedError("HTTP client: libcurl gives no handle");
  }
  state->SetUp();
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
}

absl::StatusOr<std::string> HttpClient::Exchange(std::string_view method, std::string_view target,
                                                 const Json& body, double seconds) {
  const std::string url = StrCat(state_->url.base, target);
  const std::string what = StrCat(method, " ", url);
  const std::string sent =
      body.is_null() ? "" : body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const long milliseconds = Milliseconds(seconds);
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(milliseconds);
  const NoSigpipe quiet;
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");
  const absl::Cleanup free_headers = [headers] { curl_slist_free_all(headers); };
  Answer answer = {.max_bytes = state_->options.max_answer_bytes};
  state_->error[0] = '\0';
  CURL* easy = state_->easy;
  state_->SetRequest(method, url, sent);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds);
  curl_multi_add_handle(state_->multi, easy);
  const CURLcode code = state_->Perform(deadline);
  curl_multi_remove_handle(state_->multi, easy);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, nullptr);
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError(StrCat(what, ": cancelled"));
  MUSTER_RETURN_IF_ERROR(Annotate(CurlStatus(code, state_->error, answer), what));
  long http_status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &http_status);
  MUSTER_RETURN_IF_ERROR(
      Annotate(StatusOfAnswer(static_cast<int>(http_status), answer.body), what));
  return std::move(answer.body);
}

absl::StatusOr<Json> HttpClient::Call(std::string_view method, std::string_view target,
                                      const Json& body, double seconds) {
  MUSTER_ASSIGN_OR_RETURN(const std::string answer, Exchange(method, target, body, seconds));
  if (answer.empty()) return Json();
  absl::StatusOr<Json> parsed = ParseJson(answer, "answer");
  if (parsed.ok()) return parsed;
  return Annotate(absl::InternalError(parsed.status().message()),
                  StrCat(method, " ", state_->url.base, target));
}

absl::StatusOr<Json> HttpClient::Get(std::string_view target, double seconds) {
  return Call("GET", target, Json(), seconds);
}

absl::StatusOr<Json> HttpClient::Post(std::string_view target, const Json& body, double seconds) {
  return Call("POST", target, body, seconds);
}

absl::StatusOr<std::string> HttpClient::GetText(std::string_view target, double seconds) {
  return Exchange("GET", target, Json(), seconds);
}

void HttpClient::Cancel() {
  state_->cancelled = true;
  curl_multi_wakeup(state_->multi);
}

}  // namespace muster::net
