#include "muster/control/service.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <utility>

#include "muster/base/cpu_time.h"
#include "muster/control/job_metrics.h"
#include "muster/control/status_page.h"

namespace muster::control {
namespace {

using formats::JsonFields;
using formats::PrintJson;

constexpr double kRetrySeconds = 1;  // after a Pass that failed
// After a pass agents get as much time as it took, so that the reports of a thousand of them are
// handled together and not with a pass for each.
constexpr double kMaxRestSeconds = 0.1;
constexpr int64_t kRefusalVersion = std::numeric_limits<int64_t>::max();  // no coordinator's own
constexpr double kMaxHoldSeconds = 1;  // so that what agents say stays fresh

Json Ordered(const net::Json& json) { return Json(json); }

std::chrono::duration<double> Seconds(double seconds) {
  return std::chrono::duration<double>(std::min(seconds, 3600.0));
}

absl::Status NotYet() {
  return absl::UnavailableError("the job's coordinator is starting: ask again");
}

net::HttpResponse Answer(const Json& json) {
  net::HttpResponse response;
  response.body = PrintJson(json);
  return response;
}

}  // namespace

Service::Service(ListenPlace place)
    : place_(std::move(place)), change_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::StatusOr<std::unique_ptr<Service>> Service::Listen(const JobFolder& folder,
                                                         const ListenPlace& place,
                                                         const ServiceOptions& options) {
  std::unique_ptr<Service> service(new Service(place));
  MUSTER_ASSIGN_OR_RETURN(net::HttpServerOptions server, ServerOptions(folder, place));
  server.browsers = true;
  MUSTER_ASSIGN_OR_RETURN(
      service->server_, net::HttpServer::Start(std::move(server), service->Routes(options.routes)));
  if (options.open_port) {
    auto open =
        net::OpenServer::Start(place.address, static_cast<uint16_t>(*options.open_port),
                               {{"/healthz", [raw = service.get()] { return raw->Health(); }},
                                {"/metrics", [raw = service.get()] { return raw->Metrics(); }}});
    if (!open.ok()) return Annotate(open.status(), "the port of /healthz and /metrics");
    service->open_ = *std::move(open);
  }
  return service;
}

Service::~Service() { Stop(); }

void Service::Stop() {
  loop_.request_stop();
  work_.notify_all();
  if (loop_.joinable()) loop_.join();
  if (open_ != nullptr) open_->Stop();
  if (server_ != nullptr) server_->Stop();
}

// The answer has no reason: everybody may ask, and the coordinator's log has the reason.
net::HttpResponse Service::Health() {
  const std::lock_guard lock(mutex_);
  if (!complaint_.empty()) return net::TextResponse("cannot decide: see the log\n", 503);
  return passed_ ? net::TextResponse("ok\n") : net::TextResponse("starting\n", 503);
}

net::HttpResponse Service::Metrics() {
  net::HttpResponse response = net::TextResponse(JobMetrics(Describe()));
  response.content_type = kMetricsType;
  return response;
}

void Service::HandleRoute(const ServiceRoute& route, const net::HttpRequest& request,
                          const net::HttpReply& reply) {
  const Json body = Ordered(request.body);
  const std::lock_guard lock(mutex_);
  if (coordinator_ == nullptr) return reply.SendError(NotYet());
  const absl::StatusOr<Json> answer = route.handle(body);
  dirty_ = true;
  work_.notify_all();
  if (!answer.ok()) return reply.SendError(answer.status());
  reply.Send(Answer(*answer));
}

std::vector<net::HttpRoute> Service::Routes(const std::vector<ServiceRoute>& more) {
  std::vector<net::HttpRoute> routes = {
      {"POST", "/v1/agent",
       [this](const net::HttpRequest& request, net::HttpReply reply) {
         HandleReport(request, std::move(reply));
       }},
      {"GET", "/v1/status",
       [this](const net::HttpRequest&, const net::HttpReply& reply) {
         const std::lock_guard lock(mutex_);
         if (coordinator_ == nullptr) return reply.SendError(NotYet());
         reply.Send(Answer(coordinator_->Describe()));
       }},
      {"GET", "/v1/page",
       [this](const net::HttpRequest&, const net::HttpReply& reply) {
         net::HttpResponse page = net::TextResponse(PrintStatusPage(Describe()));
         page.content_type = "text/html; charset=utf-8";
         reply.Send(std::move(page));
       }},
      {"POST", "/v1/suspend",
       [this](const net::HttpRequest& request, const net::HttpReply& reply) {
         HandleSuspend(request, reply);
       }},
      {"POST", "/v1/stop", [this](const net::HttpRequest& request, const net::HttpReply& reply) {
         HandleStop(request, reply);
       }}};
  for (const ServiceRoute& route : more) {
    routes.push_back({route.method, route.path,
                      [this, route](const net::HttpRequest& request, const net::HttpReply& reply) {
                        HandleRoute(route, request, reply);
                      }});
  }
  return routes;
}

void Service::HandleStop(const net::HttpRequest& request, const net::HttpReply& reply) {
  const Json body = Ordered(request.body);
  JsonFields fields(body, "stop");
  const std::string why = fields.Text("why", "stopped by a request");
  if (!fields.status().ok()) return reply.SendError(fields.status());
  const std::lock_guard lock(mutex_);
  if (coordinator_ == nullptr) return reply.SendError(NotYet());
  coordinator_->Cancel(why);
  dirty_ = true;
  work_.notify_all();
  reply.Send(Answer(Json::object()));
}

void Service::HandleSuspend(const net::HttpRequest& request, const net::HttpReply& reply) {
  const Json body = Ordered(request.body);
  JsonFields fields(body, "suspend");
  const bool suspend = fields.Bool("suspend", true);
  if (!fields.status().ok()) return reply.SendError(fields.status());
  const std::lock_guard lock(mutex_);
  if (coordinator_ == nullptr) return reply.SendError(NotYet());
  if (const absl::Status set = coordinator_->SetSuspended(suspend); !set.ok()) {
    return reply.SendError(set);
  }
  dirty_ = true;
  work_.notify_all();
  reply.Send(Answer(Json::object()));
}

void Service::HandleReport(const net::HttpRequest& request, net::HttpReply reply) {
  const auto report = ReportFromJson(Ordered(request.body));
  if (!report.ok()) return reply.SendError(report.status());
  const std::lock_guard lock(mutex_);
  // Before the first pass every task is unknown, which must not look as if its agent had been
  // replaced.
  if (coordinator_ == nullptr || !passed_) return reply.SendError(NotYet());
  const Admission admission = coordinator_->Admits(*report);
  if (admission == Admission::kNotYet) {
    return reply.SendError(absl::UnavailableError(StrCat(
        "the slot '", report->slot, "' of ", IncarnationName(report->task, report->incarnation),
        " is not known yet: ask again")));
  }
  if (admission == Admission::kNo) return Refuse(*report, reply);
  if (coordinator_->Take(*report)) {
    dirty_ = true;
    work_.notify_all();
  }
  const IncarnationId id{report->task, report->incarnation};
  const int64_t version = coordinator_->OrdersVersion(id.task, id.incarnation);
  if (version != report->seen) {
    coordinator_->NoteAnswer(id.task, id.incarnation, 0);
    return reply.Send(Answer(ToJson(coordinator_->OrdersFor(id.task, id.incarnation))));
  }
  const double lease = coordinator_->options().lease_seconds;
  const double hold = std::min(kMaxHoldSeconds, lease / 4);
  coordinator_->NoteAnswer(id.task, id.incarnation, hold);
  reply.AnswerAfter(hold, Answer(NothingNew(version, lease, hold)));
  waiters_.insert_or_assign(id, Waiter{report->seen, std::move(reply)});
}

// An agent that is not that of its incarnation ends, and nobody waits for its end.
void Service::Refuse(const AgentReport& report, const net::HttpReply& reply) {
  const double lease = coordinator_->options().lease_seconds;
  if (report.seen == kRefusalVersion) {  // it is ending
    return reply.AnswerAfter(kMaxHoldSeconds,
                             Answer(NothingNew(report.seen, lease, kMaxHoldSeconds)));
  }
  reply.Send(Answer(
      ToJson(AgentOrders{.version = kRefusalVersion,
                         .stop = true,
                         .stop_reason = "another agent has this incarnation, or it has ended",
                         .lease_seconds = lease,
                         .end_taken = true})));
}

void Service::Within(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  work();
  dirty_ = true;
  work_.notify_all();
}

void Service::Run(std::unique_ptr<Coordinator> coordinator) {
  {
    const std::lock_guard lock(mutex_);
    coordinator_ = std::move(coordinator);
  }
  loop_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
}

void Service::Wake() {
  const std::lock_guard lock(mutex_);
  dirty_ = true;
  work_.notify_all();
}

void Service::Cancel(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (coordinator_ != nullptr) coordinator_->Cancel(why);
  dirty_ = true;
  work_.notify_all();
}

void Service::SetPaused(bool paused) {
  const std::lock_guard lock(mutex_);
  if (coordinator_ == nullptr) return;
  coordinator_->SetPaused(paused);
  AnswerWaiters();
  dirty_ = true;
  work_.notify_all();
}

void Service::AnswerWaiters() {
  std::erase_if(waiters_, [this](const auto& entry) {
    const auto& [id, waiter] = entry;
    if (waiter.reply.over()) return true;
    if (coordinator_->OrdersVersion(id.task, id.incarnation) == waiter.seen) return false;
    coordinator_->NoteAnswer(id.task, id.incarnation, 0);
    waiter.reply.Send(Answer(ToJson(coordinator_->OrdersFor(id.task, id.incarnation))));
    return true;
  });
}

// Does one pass, with the mutex held. Returns the seconds until the next one.
double Service::PassOnce() {
  dirty_ = false;
  const auto wake_after = coordinator_->Pass();
  if (!wake_after.ok()) {
    const std::string complaint(ToStd(wake_after.status().message()));
    if (complaint != complaint_) std::fprintf(stderr, "muster: %s\n", complaint.c_str());
    complaint_ = complaint;
    return kRetrySeconds;
  }
  complaint_.clear();
  passed_ = true;
  finished_ = coordinator_->finished();
  AnswerWaiters();
  const uint64_t one = 1;
  (void)!write(change_fd_.get(), &one, sizeof one);  // full is readable too
  return *wake_after;
}

void Service::Loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const double begin = ThreadCpuSeconds();
    const double wake_after = PassOnce();
    const double rest = std::min(ThreadCpuSeconds() - begin, kMaxRestSeconds);
    work_.wait_for(lock, stop, Seconds(rest), [] { return false; });
    work_.wait_for(lock, stop, Seconds(wake_after), [this] { return dirty_; });
  }
}

void Service::ClearChange() const {
  uint64_t count = 0;
  (void)!read(change_fd_.get(), &count, sizeof count);
}

bool Service::finished() {
  const std::lock_guard lock(mutex_);
  return finished_;
}

Json Service::Describe() {
  const std::lock_guard lock(mutex_);
  return coordinator_ == nullptr ? Json::object() : coordinator_->Describe();
}

}  // namespace muster::control
