// What the tests of the coordinator share: a job whose time, launcher, disk and agents the test
// plays.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/control/coordinator.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"
#include "muster/job/pod_template.h"

namespace muster::control {

using job::TaskId;
using job::TaskPhase;
using job::TaskType;

inline constexpr TaskId kWorker0{TaskType::kWorker, 0};
inline constexpr TaskId kWorker1{TaskType::kWorker, 1};
inline constexpr char kJournalPath[] = "job/journal";

// Agents as the launcher sees them; the test plays what they say.
class FakeLauncher : public Launcher {
 public:
  struct Process {
    bool alive = true;
    std::optional<job::TaskEnd> written;
  };

  LauncherTraits traits() const override { return traits_now; }
  void Start(const StartRequest& request) override {
    if (before_act) before_act();
    requests.push_back(request);
    if (!lose_starts) processes.try_emplace({request.task, request.incarnation});
  }
  void Kill(TaskId task, int64_t incarnation) override {
    if (before_act) before_act();
    kills.push_back(IncarnationName(task, incarnation));
    processes[{task, incarnation}].alive = !traits_now.sees_ends;  // it cannot know
  }
  std::vector<job::TaskObservation> Observe() override {
    using Phase = job::TaskObservation::Phase;
    std::vector<job::TaskObservation> seen;
    for (const auto& [key, process] : processes) {
      job::TaskObservation each{.id = key.first, .incarnation = key.second};
      each.phase = process.alive     ? Phase::kStarting
                   : process.written ? Phase::kEnded
                                     : Phase::kGone;
      if (process.written) each.end = *process.written;
      seen.push_back(each);
    }
    return seen;
  }

  std::map<std::pair<TaskId, int64_t>, Process> processes;
  std::vector<StartRequest> requests;
  std::vector<std::string> kills;
  LauncherTraits traits_now = {};
  bool lose_starts = false;
  std::function<void()> before_act;
};

inline job::JobSpec Workers(int count) {
  job::JobSpec spec;
  spec.name = "j";
  spec.replicas[TaskType::kWorker] = {count, job::RestartPolicy::kOnFailure,
                                      job::TemplateFor({"program", "--index", "{index}"})};
  spec.finish_timeout_seconds = 60;
  return spec;
}

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() { EXPECT_TRUE(files_.MakeFolders("job").ok()); }

  Coordinator::Environment Environment() {
    journal_ = *Journal::Open(files_, kJournalPath);
    return {journal_.get(), &launcher_, &clock_, "boot"};
  }
  void Begin(const job::JobSpec& spec) {
    coordinator_ = *Coordinator::New(spec, options_, Environment());
    Pass();
  }
  // Has the effect of a kill -9 and of the start of a new coordinator.
  void Restart() {
    coordinator_.reset();
    auto resumed = Coordinator::Resume(Environment());
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    coordinator_ = *std::move(resumed);
  }
  double Pass() {
    const auto wake = coordinator_->Pass();
    EXPECT_TRUE(wake.ok()) << wake.status();
    return wake.value_or(-1);
  }
  void Advance(double seconds) {
    clock_.Advance(seconds);
    Pass();
  }
  AgentReport Report(TaskId task, AgentReport::State state) {
    const int64_t incarnation = coordinator_->status().tasks.at(task).incarnation;
    AgentReport report{.task = task, .incarnation = incarnation, .sequence = ++sequence_};
    report.state = state;
    report.address = StrCat("127.0.0.1:", 9000 + task.index);
    report.said = "waits";
    return report;
  }
  AgentOrders Say(const AgentReport& report) {
    coordinator_->Take(report);
    Pass();
    return coordinator_->OrdersFor(report.task, report.incarnation);
  }
  AgentOrders Say(TaskId task, AgentReport::State state) { return Say(Report(task, state)); }
  AgentOrders SayEnded(TaskId task, const job::TaskEnd& end) {
    AgentReport report = Report(task, AgentReport::State::kEnded);
    report.end = end;
    report.last_lines = {"last words"};
    return Say(report);
  }
  void RunBoth() {
    for (const TaskId task : {kWorker0, kWorker1}) Say(task, AgentReport::State::kWaiting);
    for (const TaskId task : {kWorker0, kWorker1}) Say(task, AgentReport::State::kRunning);
  }
  AgentOrders OrdersFor(TaskId task) {
    return coordinator_->OrdersFor(task, coordinator_->status().tasks.at(task).incarnation);
  }
  TaskPhase GetPhase(TaskId task) { return coordinator_->status().tasks.at(task).phase; }

  CoordinatorOptions options_;
  FakeClock clock_;
  FakeLauncher launcher_;
  const std::unique_ptr<io::FileSystem> memory_ = io::NewMemoryFileSystem();
  io::FaultFileSystem files_{*memory_};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Coordinator> coordinator_;
  int64_t sequence_ = 0;
};

}  // namespace muster::control
