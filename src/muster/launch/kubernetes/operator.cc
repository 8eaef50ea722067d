#include "muster/launch/kubernetes/operator.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/time/time.h"

#include "muster/process/proc.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kConflictSeconds = 1;  // for the watch to bring what has changed
constexpr int kCallsAtOnce = 8;         // what makes an API server of 2 cores busy
constexpr double kTurnPause = 0.05;     // between two passes over a job
// Of jobs that come together, all pods are made before those of the first jobs are admitted: the
// API server is the limit, and schedulers see a pod either way.
constexpr double kHeadStart = 1;
constexpr double kReflectorLook = 5;   // seconds between two looks at what reflectors say
constexpr double kNeighbourLook = 60;  // seconds between two looks for Kubeflow's operator
constexpr double kReleaseSeconds = 3;  // for each of the two calls that give the lease back

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

void Say(const std::string& line) {
  const std::string now =
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                       absl::FromUnixSeconds(static_cast<int64_t>(SystemClock().WallSeconds())),
                       absl::UTCTimeZone());
  std::fprintf(stderr, "muster operator: %s %s\n", now.c_str(), line.c_str());
}

// Names the file with the operator's rights, if the API server says that it lacks one. The server
// also forbids what a quota or a policy does not allow.
absl::Status NameRights(const absl::Status& status) {
  const std::string_view message = ToStd(status.message());
  if (message.find(" cannot ") == message.npos || message.find("forbidden") == message.npos) {
    return status;
  }
  const bool is_lease = message.find(" leases ") != message.npos;
  return absl::Status(status.code(),
                      StrCat(message,
                             "; the operator's rights: kubectl apply -f "
                             "deploy/kubernetes/rbac.yaml",
                             is_lease ? ", which has that to its lease in the namespace muster: "
                                        "--lease-namespace muster"
                                      : ""));
}

std::string OursOnly() { return StrCat(kOperatorLabel, "=", kOperatorName); }

}  // namespace

Operator::Operator(std::unique_ptr<KubeClient> client, std::unique_ptr<KubeClient> lease_client,
                   OperatorOptions options)
    : options_(std::move(options)),
      client_(std::move(client)),
      lease_client_(std::move(lease_client)),
      writes_(*client_, clock_),
      queue_(clock_, {.pause = kTurnPause, .head_start = kHeadStart}),
      cache_([this](const std::string& key) { queue_.Add(key); },
             [this](const std::string& key) { queue_.Hurry(key); }),
      jobs_(*client_, GetTarget(kTfJobs, options_.name_space), "", cache_.jobs()),
      pods_(*client_, GetTarget(kPods, options_.name_space), OursOnly(), cache_.pods_sink()),
      services_(*client_, GetTarget(kServices, options_.name_space), OursOnly(), cache_.services()),
      looks_(MakePodQuestions(*client_), clock_),
      groups_(*client_, options_.gang_scheduler, [this](const auto& key) { queue_.Add(key); }),
      group_reflector_(*client_, GetTarget(groups_.kind(), options_.name_space), "", groups_),
      namespaces_([this](const std::string& name_space) { AddJobs(name_space); }),
      namespace_reflector_(*client_, "/api/v1/namespaces",
                           GetOwnNamespaceSelector(options_.name_space), namespaces_),
      leader_(*lease_client_, clock_, GetLeaderOptions(options_)),
      others_([this](const std::string& target) { return client_->Get(target); }, clock_, Say),
      controller_({.client = writes_,
                   .cache = cache_,
                   .clock = clock_,
                   .metrics = metrics_,
                   .clock_id = GetBootId(),
                   .leads = [this] { return leader_.leads(); },
                   .pods = {.cluster_domain = options_.cluster_domain},
                   .looks = &looks_,
                   .groups = options_.gang_scheduler.empty() ? nullptr : &groups_,
                   .calls_at_once = kCallsAtOnce,
                   .lease = StrCat(options_.own_name_space, "/", options_.leader.name),
                   .others = &others_,
                   .owns =
                       [this](const std::string& name_space) {
                         return kubeflow_.empty() || namespaces_.Has(name_space);
                       }}) {}

Operator::~Operator() { Stop(); }

absl::StatusOr<std::unique_ptr<Operator>> Operator::New(KubeAccess access,
                                                        OperatorOptions options) {
  if (options.own_name_space.empty()) {
    options.own_name_space = access.name_space.empty() ? "default" : access.name_space;
  }
  MUSTER_ASSIGN_OR_RETURN(
      auto lease_client,
      KubeClient::New(access, {.patience = 0, .call_seconds = options.leader.renew_seconds()}));
  MUSTER_ASSIGN_OR_RETURN(auto client,
                          KubeClient::New(std::move(access), {.leaves_out_specs = true}));
  std::unique_ptr<Operator> made(
      new Operator(std::move(client), std::move(lease_client), std::move(options)));
  MUSTER_RETURN_IF_ERROR(NameRights(made->CheckDefinition()));
  MUSTER_RETURN_IF_ERROR(NameRights(made->CheckNeighbour()));
  made->WarnOfNamespace();
  if (!made->options_.gang_scheduler.empty()) {
    MUSTER_RETURN_IF_ERROR(made->groups_.CheckKind(made->options_.name_space));
  }
  made->reflectors_ = made->GetReflectors();
  MUSTER_RETURN_IF_ERROR(made->Listen());
  return made;
}

std::vector<Reflector*> Operator::GetReflectors() {
  std::vector<Reflector*> reflectors = {&jobs_, &pods_, &services_};
  if (!options_.gang_scheduler.empty()) reflectors.push_back(&group_reflector_);
  if (!kubeflow_.empty()) reflectors.push_back(&namespace_reflector_);
  return reflectors;
}

absl::Status Operator::CheckNeighbour() {
  MUSTER_ASSIGN_OR_RETURN(kubeflow_, FindKubeflow(*client_, clock_.WallSeconds()));
  if (kubeflow_.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckOwnNamespaces(*client_, options_.name_space, kubeflow_));
  Say(StrCat("Kubeflow's training operator is in this cluster (", kubeflow_,
             "): acts only in namespaces labelled muster/operator=enabled"));
  return absl::OkStatus();
}

// A namespace may also be made later, and the right to see it is needed for nothing else.
void Operator::WarnOfNamespace() {
  if (options_.name_space.empty()) return;
  int found = 0;
  const auto listed = client_->List(
      "/api/v1/namespaces", StrCat("kubernetes.io/metadata.name=", options_.name_space), [] {},
      [&](const Json& /*object*/) { ++found; });
  if (!listed.ok() || found > 0) return;
  Say(StrCat("there is no namespace ", options_.name_space,
             ": waits for jobs in it; --namespace may be misspelt (kubectl get namespaces)"));
}

void Operator::AddJobs(const std::string& name_space) {
  for (const std::string& key : cache_.Keys()) {
    if (key.starts_with(name_space + "/")) queue_.Add(key);
  }
}

// A definition of another controller would drop what the operator writes into a job's status.
absl::Status Operator::CheckDefinition() {
  const std::string target = GetTarget(kDefinitions, "", kDefinitionName);
  auto definition = lease_client_->Get(target);  // which has no patience: a wait is told
  if (absl::IsUnavailable(definition.status())) {
    Say(StrCat("cannot reach the API server: ", ToStd(definition.status().message()),
               "; tries again for half a minute (--kubeconfig and --context say where it is)"));
    definition = client_->Get(target);
  }
  if (absl::IsNotFound(definition.status())) {
    return absl::FailedPreconditionError(
        StrCat("the cluster does not know TFJobs; install their definition: ", kInstallDefinition));
  }
  MUSTER_RETURN_IF_ERROR(definition.status());
  const Json& annotations = Child(Child(*definition, "metadata"), "annotations");
  if (Child(annotations, kDefinitionAnnotation).is_string()) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      "the CustomResourceDefinition ", kDefinitionName,
      " is not Muster's but that of another controller, probably of Kubeflow's training "
      "operator, and does not keep what Muster writes into a job's status. Replace it; stored "
      "jobs stay, and Kubeflow's operator works with it, too: ",
      kReplaceDefinition));
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
  for (const Reflector* const reflector : reflectors_) {
    while (!reflector->synced()) {
      if (!client_->Wait(kTurnPause)) return;
    }
  }
  while (const auto key = queue_.Take()) {
    if (!leader_.leads()) {  // it may lead again
      queue_.Add(*key, kConflictSeconds);
      queue_.Done(*key, WorkQueue::Outcome::kDone);
      continue;
    }
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
      Say(StrCat("job ", *key, ": ", ToStd(NameRights(wake.status()).message())));
    }
    queue_.Done(*key, outcome);
    if (wake.ok() && !std::isfinite(*wake)) queue_.Forget(*key);
  }
}

void Operator::WatchReflectors() {
  std::string told;
  while (client_->Wait(kReflectorLook)) {
    std::string problem;
    for (const Reflector* const reflector : reflectors_) {
      if (problem.empty()) problem = reflector->problem();
    }
    if (problem.empty() == told.empty()) continue;
    told = problem;
    Say(problem.empty() ? "follows the API server again"
                        : StrCat("cannot follow the API server: ",
                                 ToStd(NameRights(absl::UnavailableError(problem)).message())));
  }
}

void Operator::WatchNeighbour() {
  while (client_->Wait(kNeighbourLook)) {
    auto found = FindKubeflow(*client_, clock_.WallSeconds());
    if (!found.ok() || found->empty()) continue;
    {
      const MutexLock lock(&mutex_);
      newcomer_ = *std::move(found);
    }
    return Stop();
  }
}

absl::Status Operator::Run() {
  std::vector<std::jthread> threads;
  threads.emplace_back([this] { WatchReflectors(); });
  if (kubeflow_.empty()) threads.emplace_back([this] { WatchNeighbour(); });
  for (Reflector* const reflector : reflectors_) {
    threads.emplace_back([reflector] { reflector->Run(); });
  }
  const auto began = [&] {
    for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this] { Work(); });
  };
  const absl::Status status = leader_.Run(began, Say);
  Stop();
  threads.clear();  // nobody acts any more
  if (leader_.leads()) {
    const auto client =
        KubeClient::New(client_->access(), {.patience = 0, .call_seconds = kReleaseSeconds});
    if (client.ok()) leader_.Release(**client);
    Say("has given its lease back, and ends");
  }
  const MutexLock lock(&mutex_);
  if (status.ok() && !newcomer_.empty()) {
    return absl::FailedPreconditionError(
        StrCat("Kubeflow's training operator has come into this cluster (", newcomer_,
               "): start again, to act in namespaces labelled muster/operator=enabled alone "
               "(docs/kubernetes.md)"));
  }
  return NameRights(status);
}

void Operator::Stop() {
  queue_.Stop();
  client_->Cancel();
  lease_client_->Cancel();
}

net::HttpResponse Operator::Health() const {
  std::string problems;
  for (const Reflector* const reflector : reflectors_) {
    if (const std::string problem = reflector->problem(); !problem.empty()) {
      problems += StrCat(problem, "\n");
    }
  }
  if (const std::string problem = writes_.problem(); !problem.empty()) {
    problems += StrCat(ToStd(NameRights(absl::PermissionDeniedError(problem)).message()), "\n");
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
