// A coordinator of a job of many workers, as `muster run` has one, but for its launcher, which
// starts nothing: whoever knows its URL and its token's file says what agents say. Prints both and
// runs until its input ends.
//
// usage: coordinator_alone FOLDER WORKERS
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/control/service.h"
#include "muster/io/local_file_system.h"
#include "muster/job/pod_template.h"

namespace muster::control {
namespace {

// Every agent that was asked for lives, until it is killed.
class ElsewhereLauncher : public Launcher {
 public:
  void Start(const StartRequest& request) override {
    seen_.try_emplace({request.task, request.incarnation}, job::TaskObservation::Phase::kStarting);
  }
  void Kill(job::TaskId task, int64_t incarnation) override {
    seen_[{task, incarnation}] = job::TaskObservation::Phase::kGone;
  }
  std::vector<job::TaskObservation> Observe() override {
    std::vector<job::TaskObservation> all;
    all.reserve(seen_.size());
    for (const auto& [key, phase] : seen_) {
      all.push_back({.id = key.first, .incarnation = key.second, .phase = phase});
    }
    return all;
  }

 private:
  std::map<std::pair<job::TaskId, int64_t>, job::TaskObservation::Phase> seen_;
};

job::JobSpec MakeSpec(int workers) {
  job::JobSpec spec;
  spec.name = "simulated";
  spec.replicas[job::TaskType::kWorker] = {workers, job::RestartPolicy::kOnFailure,
                                           job::TemplateFor({"python", "train.py"})};
  spec.finish_timeout_seconds = 60;
  return spec;
}

absl::Status Run(const std::string& jobs, int workers) {
  MUSTER_ASSIGN_OR_RETURN(const JobFolder folder, MakeJobFolder(jobs, "simulated"));
  MUSTER_RETURN_IF_ERROR(net::MakeTokenFile(folder.token()).status());
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto journal, Journal::Open(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const auto service, Service::Listen(folder, {}));
  const SystemClock clock;
  ElsewhereLauncher launcher;
  MUSTER_ASSIGN_OR_RETURN(
      auto coordinator,
      Coordinator::New(
          MakeSpec(workers), {},
          {.journal = journal.get(), .launcher = &launcher, .clock = &clock, .clock_id = "here"}));
  service->Run(std::move(coordinator));
  // Before its first pass it answers nobody.
  pollfd first_pass{.fd = service->change_fd(), .events = POLLIN, .revents = 0};
  poll(&first_pass, 1, -1);
  std::printf("{\"url\": \"%s\", \"token_file\": \"%s\"}\n", service->url().c_str(),
              folder.token().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  service->Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::control

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const absl::Status status = muster::control::Run(argv[1], std::atoi(argv[2]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "coordinator_alone: %s\n",
               std::string(muster::ToStd(status.message())).c_str());
  return 1;
}
