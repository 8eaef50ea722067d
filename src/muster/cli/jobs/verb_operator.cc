#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/launch/kubernetes/operator.h"

namespace muster::cli {
namespace {

constexpr auto kInterruptLook = std::chrono::milliseconds(100);

struct OperatorFlags {
  launch::kubernetes::KubeConfigPlaces places = launch::kubernetes::GetKubeConfigPlaces();
  launch::kubernetes::OperatorOptions options;
};

absl::Status RunOperator(const OperatorFlags& flags) {
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
    while (!done.stop_requested() && !InterruptScope::requested()) {
      std::this_thread::sleep_for(kInterruptLook);
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
                   "Only jobs of this namespace; else those of all");
  verb->add_option("--lease-namespace", flags->options.own_name_space,
                   "Where operators agree on who leads; else the pod's or context's namespace");
  verb->add_option("--lease", flags->options.leader.lease_seconds,
                   "Seconds after which another operator takes over from one that is silent")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  verb->add_option("--cluster-domain", flags->options.cluster_domain,
                   "As in cluster.local: for tasks that need whole host names")
      ->envname("CUSTOM_CLUSTER_DOMAIN");
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
