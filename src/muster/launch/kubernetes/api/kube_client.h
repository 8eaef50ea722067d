// Calls of Kubernetes' API. What an API server says about a failed call becomes a status whose code
// tells what to do next:
//   NOT_FOUND          404: the object is not there, or its kind is not installed
//   ALREADY_EXISTS     409: an object of that name exists
//   ABORTED            409: the object has changed since it was read (or its uid is another)
//   OUT_OF_RANGE       410: that version is too old; list again
//   INVALID_ARGUMENT   400, 413, 415, 422: the object is refused
//   PERMISSION_DENIED  403: the message says who may not do what; also an exceeded quota
//   UNAUTHENTICATED    401, or one side does not trust the other's certificate
//   UNAVAILABLE        the server cannot be reached or cannot answer now
// A call is repeated after 429 and 503, when the time that the server asks for has passed, and
// after errors of the server or the connection, with growing pauses, up to
// KubeClientOptions::patience seconds. So a call may be done twice. That is harmless for objects
// with names, versions and uids of their own: the second time gives ALREADY_EXISTS, ABORTED or
// NOT_FOUND.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/kubernetes/api/kube_calls.h"
#include "muster/launch/kubernetes/api/kube_config.h"
#include "muster/launch/kubernetes/api/kube_object.h"
#include "muster/net/http/exchange.h"

namespace muster::launch::kubernetes {

struct KubeClientOptions {
  double patience = 30;      // seconds for a call with its repetitions
  double call_seconds = 20;  // for one attempt
  int page_size = 500;       // objects in an answer to List
  int watch_seconds = 300;   // the server ends a watch after this time at the latest
  // Services are listed, watched and made without their `spec` in the answer, and pods without what
  // is long in theirs (commands, environments, volumes): to read these is most of the work.
  bool leaves_out_specs = false;
  double silence_seconds = 90;  // of a watch: a server that watches sends a bookmark each minute
};

struct KubeEvent {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark };
  Kind kind = Kind::kModified;
  Json object = {};  // kBookmark: only its version
};

// Any thread; calls run at the same time.
class KubeClient : public KubeCalls {
 public:
  // Makes no connection. Errors of an unusable URL, certificate or key.
  static absl::StatusOr<std::unique_ptr<KubeClient>> New(KubeAccess access,
                                                         KubeClientOptions options = {});
  KubeClient(const KubeClient&) = delete;
  KubeClient& operator=(const KubeClient&) = delete;

  absl::StatusOr<Json> Get(const std::string& target) override;
  absl::StatusOr<Json> Create(const std::string& target, const Json& object,
                              std::vector<std::string>* warnings = nullptr) override;
  absl::StatusOr<Json> Replace(const std::string& target, const Json& object) override;
  absl::StatusOr<Json> MergePatch(const std::string& target, const Json& patch) override;
  absl::StatusOr<Json> StrategicPatch(const std::string& target, const Json& patch) override;
  absl::Status Delete(const std::string& target, const std::string& uid,
                      int64_t grace_seconds = -1) override;

  // Calls `put` for each object, page by page, and returns the version of the list, at which a
  // watch begins. A list whose next page has expired is begun again: `begin` is called before each
  // beginning. `selector`: labels, as in "app=a,tier!=b"; "": all.
  absl::StatusOr<std::string> List(const std::string& target, const std::string& selector,
                                   const std::function<void()>& begin,
                                   const std::function<void(Json object)>& put);
  // Calls `take` for each change after `version`. OK when the server ends the watch in order, or
  // after watch_seconds; OUT_OF_RANGE if the version is too old. It is not repeated here.
  // `is_known`: as in watch_lines.h. `begun` is called when the server has agreed to watch.
  absl::Status Watch(const std::string& target, const std::string& selector,
                     const std::string& version, const std::function<void(KubeEvent event)>& take,
                     const std::function<bool(int64_t version)>& is_known = {},
                     const std::function<void()>& begun = {});

  // Reads what is no object, such as a pod's log, and hands it to `take` as it arrives. `query`:
  // "follow=true&container=a". It takes as long as the server sends. It is not repeated here.
  absl::Status Read(const std::string& target, const std::string& query, const net::BodySink& take);

  // Makes a call that is no object's, such as one of a Service through the server's proxy, and
  // returns whatever answer there is. It is not repeated here. `seconds`: for the whole call.
  absl::StatusOr<net::HttpAnswer> Fetch(const net::HttpCall& call, double seconds);
  // What an answer of the API server to `what` says that is not a good one.
  absl::Status ToStatus(const net::HttpAnswerHead& head, std::string_view body,
                        const std::string& what) const;

  // Closes connections that no call uses, but for so many: each has buffers of 100 KB.
  void CloseIdle(size_t keep) { pool_->CloseIdle(keep); }
  // Ends all calls, and those to come, with CANCELLED.
  void Cancel();
  // Waits; false if Cancel() was called before the time has passed.
  bool Wait(double seconds);

  const KubeAccess& access() const { return access_; }
  uint64_t calls() const { return calls_; }  // attempts, watches too

 private:
  struct Attempt;
  KubeClient(KubeAccess access, KubeClientOptions options, std::shared_ptr<net::HttpPool> pool,
             std::unique_ptr<net::HttpExchange> exchange)
      : access_(std::move(access)),
        options_(options),
        pool_(std::move(pool)),
        exchange_(std::move(exchange)) {}
  absl::StatusOr<Json> Call(std::string_view method, const std::string& target,
                            const std::string& content_type, const std::string& body,
                            std::vector<std::string>* warnings = nullptr);
  Attempt Try(std::string_view method, const std::string& target, const std::string& content_type,
              const std::string& body);
  absl::Status Stream(const net::HttpCall& call, const std::string& what,
                      const net::HttpTimeouts& timeouts, const net::BodySink& take,
                      const std::function<void()>& begun = {});

  const KubeAccess access_;
  const KubeClientOptions options_;
  const std::shared_ptr<net::HttpPool> pool_;
  const std::unique_ptr<net::HttpExchange> exchange_;
  std::atomic<uint64_t> calls_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;  // guarded by mutex_
};

}  // namespace muster::launch::kubernetes
