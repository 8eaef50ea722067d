#include "muster/launch/kubernetes/operator.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "muster/process/proc.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kConflictSeconds = 1;  // for the watch to bring what has changed
constexpr double kTurnPause = 0.05;     // between two passes over a job
constexpr char kDefinitionName[] = "tfjobs.kubeflow.org";
constexpr char kDefinitionAnnotation[] = "muster/definition";
constexpr char kInstall[] = "kubectl apply -f deploy/kubernetes/crd.yaml";

std::string MakeIdentity() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return StrCat(host, "_", getpid(), "_", absl::Hex(SystemClock().MonotonicNanos()));
}

std::string GetBootId() {
  return process::ReadSmallFile("/proc/sys/kernel/random/boot_id").value_or("unknown");
}

LeaderOptions GetLeaderOptions(const OperatorOptions& options) {
  LeaderOptions leader = options.leader;
  leader.name_space = options.own_name_space;
  leader.identity = options.identity.empty() ? MakeIdentity() : options.identity;
  return leader;
}

std::string OursOnly() { return StrCat(kOperatorLabel, "=", kOperatorName); }

}  // namespace

Operator::Operator(std::unique_ptr<KubeClient> client, OperatorOptions options)
    : options_(std::move(options)),
      client_(std::move(client)),
      queue_(clock_, {.pause = kTurnPause}),
      cache_([this](const std::string& key) { queue_.Add(key); }),
      jobs_(*client_, GetTarget(kTfJobs, options_.name_space), "", cache_.jobs()),
      pods_(*client_, GetTarget(kPods, options_.name_space), OursOnly(), cache_.pods_sink()),
      services_(*client_, GetTarget(kServices, options_.name_space), OursOnly(), cache_.services()),
      leader_(*client_, clock_, GetLeaderOptions(options_)),
      controller_({.client = *client_,
                   .cache = cache_,
                   .clock = clock_,
                   .metrics = metrics_,
                   .clock_id = GetBootId(),
                   .leads = [this] { return leader_.leads(); },
                   .pods = {.cluster_domain = options_.cluster_domain}}) {}

Operator::~Operator() { Stop(); }

absl::StatusOr<std::unique_ptr<Operator>> Operator::New(KubeAccess access,
                                                        OperatorOptions options) {
  if (options.own_name_space.empty()) {
    options.own_name_space = access.name_space.empty() ? "default" : access.name_space;
  }
  MUSTER_ASSIGN_OR_RETURN(auto client, KubeClient::New(std::move(access)));
  std::unique_ptr<Operator> made(new Operator(std::move(client), std::move(options)));
  MUSTER_RETURN_IF_ERROR(made->CheckDefinition());
  MUSTER_RETURN_IF_ERROR(made->Listen());
  return made;
}

// A definition of another controller would drop what the operator writes into a job's status.
absl::Status Operator::CheckDefinition() {
  const auto definition = client_->Get(GetTarget(kDefinitions, "", kDefinitionName));
  if (absl::IsNotFound(definition.status())) {
    return absl::FailedPreconditionError(
        StrCat("the cluster does not know TFJobs; install their definition: ", kInstall));
  }
  MUSTER_RETURN_IF_ERROR(definition.status());
  const Json& annotations = Child(Child(*definition, "metadata"), "annotations");
  if (Child(annotations, kDefinitionAnnotation).is_string()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("the CustomResourceDefinition ", kDefinitionName,
             " is not Muster's but that of another controller, probably of Kubeflow's training "
             "operator, and two controllers must not act on the same jobs. Stop that one, and "
             "replace its definition (stored jobs stay): ",
             kInstall));
}

absl::Status Operator::Listen() {
  if (options_.health_port < 0) return absl::OkStatus();
  auto server =
      net::OpenServer::Start(options_.health_address, static_cast<uint16_t>(options_.health_port),
                             {{"/healthz", [this] { return Health(); }},
                              {"/livez", [] { return net::TextResponse("ok\n"); }},
                              {"/metrics", [this] { return Metrics(); }}});
  MUSTER_RETURN_IF_ERROR(Annotate(server.status(), "/healthz and /metrics"));
  server_ = *std::move(server);
  return absl::OkStatus();
}

void Operator::Work() {
  // Only an operator that has seen everything acts.
  for (const Reflector* const reflector : {&jobs_, &pods_, &services_}) {
    while (!reflector->synced()) {
      if (!client_->Wait(kTurnPause)) return;
    }
  }
  while (const auto key = queue_.Take()) {
    ++passes_;
    const auto wake = controller_.Run(*key);
    auto outcome = WorkQueue::Outcome::kDone;
    if (wake.ok()) {
      if (std::isfinite(*wake)) queue_.Add(*key, *wake);
    } else if (absl::IsAborted(wake.status())) {
      queue_.Add(*key, kConflictSeconds);
    } else if (!absl::IsCancelled(wake.status())) {
      ++failures_;
      outcome = WorkQueue::Outcome::kFailed;
      std::fprintf(stderr, "muster operator: job %s: %s\n", key->c_str(),
                   ToStd(wake.status().message()).data());
    }
    queue_.Done(*key, outcome);
    if (wake.ok() && !std::isfinite(*wake)) queue_.Forget(*key);
  }
}

absl::Status Operator::Run() {
  std::vector<std::jthread> threads;
  for (Reflector* const reflector : {&jobs_, &pods_, &services_}) {
    threads.emplace_back([reflector] { reflector->Run(); });
  }
  const auto began = [&] {
    for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this] { Work(); });
  };
  const absl::Status status = leader_.Run(began);
  Stop();
  return status;
}

void Operator::Stop() {
  queue_.Stop();
  client_->Cancel();
}

net::HttpResponse Operator::Health() const {
  std::string problems;
  for (const Reflector* const reflector : {&jobs_, &pods_, &services_}) {
    if (const std::string problem = reflector->problem(); !problem.empty()) {
      problems += StrCat(problem, "\n");
    }
  }
  if (!problems.empty()) return net::TextResponse(problems, 503);
  return net::TextResponse("ok\n");
}

net::HttpResponse Operator::Metrics() const {
  const auto gauge = [](std::string_view name, const auto& value) {
    return StrCat("# TYPE ", name, " gauge\n", name, " ", value, "\n");
  };
  return net::TextResponse(StrCat(
      metrics_.Print(), gauge("muster_operator_leads", leader_.leads() ? 1 : 0),
      gauge("muster_operator_jobs", cache_.Keys().size()),
      gauge("muster_operator_pods", cache_.pods()), gauge("muster_operator_queue", queue_.size()),
      gauge("muster_operator_api_calls_total", client_->calls()),
      gauge("muster_operator_passes_total", passes_.load()),
      gauge("muster_operator_failed_passes_total", failures_.load())));
}

}  // namespace muster::launch::kubernetes
