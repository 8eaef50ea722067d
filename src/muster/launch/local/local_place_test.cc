// A job of this machine as a JobPlace: its coordinator in this process, with a launcher that starts
// nothing; the test says what agents would say.
#include "muster/launch/local/local_place.h"

#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "muster/control/job_place_conformance.h"
#include "muster/io/private_file_system.h"
#include "muster/job/pod_template.h"
#include "muster/launch/local/local_job.h"
#include "muster/net/http/client.h"

namespace muster::launch::local {
namespace {

using control::AgentReport;
using formats::Json;

constexpr int kDeadlineMillis = 30'000;

// Every agent that was asked for lives until it is killed.
class NoLauncher : public control::Launcher {
 public:
  void Start(const control::StartRequest& request) override {
    seen_[{request.task, request.incarnation}] = job::TaskObservation::Phase::kStarting;
  }
  void Kill(job::TaskId task, int64_t incarnation) override {
    seen_[{task, incarnation}] = job::TaskObservation::Phase::kGone;
  }
  std::vector<job::TaskObservation> Observe() override {
    std::vector<job::TaskObservation> all;
    for (const auto& [key, phase] : seen_) {
      all.push_back({.id = key.first, .incarnation = key.second, .phase = phase});
    }
    return all;
  }

 private:
  std::map<std::pair<job::TaskId, int64_t>, job::TaskObservation::Phase> seen_;
};

class LocalJobUnderTest : public control::JobUnderTest {
 public:
  LocalJobUnderTest() {
    std::string path = ::testing::TempDir() + "/muster_place_XXXXXX";
    home_ = mkdtemp(path.data());
    job::JobSpec spec;
    spec.name = "j";
    spec.replicas[job::TaskType::kWorker] = {2, job::RestartPolicy::kNever,
                                             job::TemplateFor({"true"})};
    spec.finish_timeout_seconds = 60;
    const auto folder = CreateJob(home_ + "/jobs", spec, {});
    EXPECT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    lock_.emplace(*control::JobLock::Take(folder_.lock()));
    Answer();
  }
  ~LocalJobUnderTest() override {
    service_.reset();
    std::filesystem::remove_all(home_);
  }

  std::unique_ptr<control::JobPlace> Open() override {
    return std::make_unique<LocalPlace>(
        LocalPlaceOptions{.folder = folder_,
                          .program = "/bin/false",
                          .start =
                              [this](const control::JobFolder&) {
                                lock_.emplace(*control::JobLock::Take(folder_.lock()));
                                Answer();
                                return absl::OkStatus();
                              },
                          .patience_seconds = 0.05});
  }
  void Write(job::TaskId task, const std::string& bytes) override {
    std::ofstream(folder_.task_log(task), std::ios::app) << bytes;
  }
  void Succeed() override {
    for (const Json& task : Tasks()) Say(task, job::TaskEnd{.exit_code = 0});
    Settle();
  }
  void Settle() override {
    while (true) {
      WaitForPass();
      if (service_->finished()) return End();
      bool stopping = false;
      for (const Json& task : Tasks()) {
        if (task.value("phase", "") != "stopping") continue;
        stopping = true;
        Say(task, job::TaskEnd{.exit_code = 143});
      }
      if (!stopping) return;
    }
  }
  void SetSilent(bool silent) override {
    if (silent) {
      service_.reset();
    } else {
      Answer();
    }
  }
  void Move() override {
    service_.reset();
    Answer();
  }
  bool Lose() override {
    for (const Json& task : Tasks()) {
      const control::IncarnationId id{*job::ParseTaskName(task["task"].get<std::string>()),
                                      task["incarnation"].get<int64_t>()};
      EXPECT_TRUE(
          control::ForbidIncarnation(folder_.path, id).ok());  // its agent has run, and died
    }
    End();
    return true;
  }

 private:
  void Answer() {
    journal_ = *control::Journal::Open(*files_, folder_.journal());
    service_ = *control::Service::Listen(folder_, {});
    auto coordinator = *control::Coordinator::Resume(
        {.journal = journal_.get(), .launcher = &launcher_, .clock = &clock_, .clock_id = "boot"});
    coordinator->SetNote("url", service_->url());
    EXPECT_TRUE(coordinator->Write().ok());
    service_->Run(std::move(coordinator));
    WaitForPass();
  }
  void End() {
    service_.reset();
    journal_.reset();
    lock_.reset();
  }
  Json Tasks() { return service_->Describe().at("tasks"); }
  // At least one pass that knows all that was asked before.
  void WaitForPass() {
    service_->ClearChange();
    service_->Wake();
    pollfd change{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
    ASSERT_GT(poll(&change, 1, kDeadlineMillis), 0);
  }
  void Say(const Json& task, const job::TaskEnd& end) {
    const auto client = *net::HttpClient::Create(*ClientOptions(folder_, service_->url()));
    const AgentReport report{.task = *job::ParseTaskName(task["task"].get<std::string>()),
                             .incarnation = task["incarnation"].get<int64_t>(),
                             .sequence = ++sequence_,
                             .state = AgentReport::State::kEnded,
                             .end = end};
    const auto said = client->Post("/v1/agent", net::Json(control::ToJson(report)), 10);
    EXPECT_TRUE(said.ok()) << said.status();
  }

  std::string home_;
  control::JobFolder folder_;
  const SystemClock clock_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewPrivateFileSystem();
  NoLauncher launcher_;
  std::optional<control::JobLock> lock_;
  std::unique_ptr<control::Journal> journal_;
  std::unique_ptr<control::Service> service_;
  int64_t sequence_ = 0;
};

using control::JobPlaceConformance;
INSTANTIATE_TEST_SUITE_P(Local, JobPlaceConformance,
                         ::testing::Values(control::JobPlaceMember{
                             "Local", [] { return std::make_unique<LocalJobUnderTest>(); }}),
                         control::JobPlaceMemberName);

}  // namespace
}  // namespace muster::launch::local
