#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/launch/kubernetes/operator.h"

namespace muster::cli {
namespace {

constexpr int kArenas = 1;
constexpr auto kInterruptLook = std::chrono::milliseconds(100);

struct OperatorFlags {
  launch::kubernetes::KubeConfigPlaces places = launch::kubernetes::GetKubeConfigPlaces();
  launch::kubernetes::OperatorOptions options;
};

// Gives memory that a burst of work has left free back to the machine, once the work is done.
class Trimmer {
 public:
  void Look(launch::kubernetes::Operator* op) {
    const uint64_t passes = op->passes();
    still_ = passes == seen_ ? still_ + 1 : 0;
    seen_ = passes;
    if (still_ != kStillLooks || trimmed_ == passes) return;
    op->Rest();
    malloc_trim(0);
    trimmed_ = passes;
  }

 private:
  static constexpr int kStillLooks = 10;
  uint64_t seen_ = 0, trimmed_ = 0;
  int still_ = 0;
};

absl::Status RunOperator(const OperatorFlags& flags) {
  // Many threads read JSON for moments: with an arena for each of them freed memory stays unused.
  mallopt(M_ARENA_MAX, kArenas);
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(launch::kubernetes::KubeAccess access,
                          launch::kubernetes::ReadKubeAccess(flags.places, *files));
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const auto made,
                          launch::kubernetes::Operator::New(std::move(access), flags.options));
  if (made->health_port() >= 0) {
    std::fprintf(stderr, "muster operator: /healthz and /metrics at port %d\n",
                 made->health_port());
  }
  const std::jthread stopper([&](const std::stop_token& done) {
    Trimmer trimmer;
    while (!done.stop_requested() && !InterruptScope::requested()) {
      std::this_thread::sleep_for(kInterruptLook);
      trimmer.Look(made.get());
    }
    made->Stop();
  });
  return made->Run();
}

}  // namespace

void AddOperator(CLI::App& app) {
  const auto flags = std::make_shared<OperatorFlags>();
  CLI::App* verb = app.add_subcommand(
      "operator", "Runs TFJobs of a Kubernetes cluster as pods (docs/kubernetes.md)");
  verb->add_option("--kubeconfig", flags->places.kubeconfig,
                   "A kubeconfig file; else KUBECONFIG, this pod's service account, or "
                   "~/.kube/config")
      ->type_name("FILE");
  verb->add_option("--context", flags->places.context,
                   "A context of that file; else its current-context");
  verb->add_option("--namespace", flags->options.name_space,
                   "Only jobs of this namespace; else those of all")
      ->check(NamespaceError);
  verb->add_option("--lease-namespace", flags->options.own_name_space,
                   "Where operators agree on who leads; else the pod's or context's namespace")
      ->check(NamespaceError);
  verb->add_option("--lease", flags->options.leader.lease_seconds,
                   "Seconds after which another operator takes over from one that is silent")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  verb->add_option("--cluster-domain", flags->options.cluster_domain,
                   "As in cluster.local: for tasks that need whole host names")
      ->envname("CUSTOM_CLUSTER_DOMAIN");
  verb->add_option("--gang-scheduler-name", flags->options.gang_scheduler,
                   "Makes a PodGroup for each job: of volcano, or of another scheduler with "
                   "scheduler-plugins")
      ->type_name("NAME");
  verb->add_option("--workers", flags->options.workers, "Jobs that are looked at, at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb->add_option("--health-address", flags->options.health_address,
                   "Where /healthz and /metrics listen")
      ->capture_default_str();
  verb->add_option("--health-port", flags->options.health_port,
                   "Their port; 0: the system chooses; -1: none")
      ->check(CLI::Range(-1, 65535))
      ->capture_default_str();
  verb->footer(
      "Example:\n  kubectl apply -f deploy/kubernetes/crd.yaml\n"
      "  muster operator --namespace training");
  verb->callback([flags] { FailUnlessOk(RunOperator(*flags)); });
}

}  // namespace muster::cli
