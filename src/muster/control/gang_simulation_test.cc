// Jobs that compete for the room of one platform, which holds each of them but not all at once: all
// end, whatever is given to whom first, though tasks fail, processes are taken away and
// coordinators are started again. None of their waiting counts as a failure.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/simulation.h"
#include "muster/control/test_coordinator.h"

namespace muster::control {
namespace {

using Key = std::pair<TaskId, int64_t>;
using Random = std::mt19937_64;

constexpr uint64_t kHistories = Repetitions(50);
constexpr double kLook = 0.5, kPatience = 12'000, kGangSeconds = 60;

double Uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// One job's part of the platform: what it has asked for and got.
class RoomLauncher : public Launcher {
 public:
  struct Process {
    bool asked = true, alive = true;
    double given_at = 0, ends_at = 0;  // 0: it has no order to start yet
    double idle = 0;                   // seconds in which it could not work without the others
    std::optional<job::TaskEnd> end;
    int64_t seen = 0;
  };

  void Start(const StartRequest& request) override {
    processes.try_emplace({request.task, request.incarnation});
  }
  void Kill(TaskId task, int64_t incarnation) override {
    Process& process = processes[{task, incarnation}];
    process.asked = process.alive = false;
  }
  bool LacksProcess(TaskId task, int64_t incarnation) const override {
    const auto found = processes.find({task, incarnation});
    return found != processes.end() && found->second.asked;
  }
  std::vector<job::TaskObservation> Observe() override {
    using Phase = job::TaskObservation::Phase;
    std::vector<job::TaskObservation> seen;
    for (const auto& [key, process] : processes) {
      job::TaskObservation each{.id = key.first, .incarnation = key.second};
      each.phase = process.alive ? Phase::kStarting : process.end ? Phase::kEnded : Phase::kGone;
      if (process.end) each.end = *process.end;
      seen.push_back(each);
    }
    return seen;
  }
  int count_held() const {
    return static_cast<int>(std::count_if(processes.begin(), processes.end(), [](const auto& item) {
      return item.second.alive && !item.second.asked;
    }));
  }

  std::map<Key, Process> processes;
};

struct Competitor {
  std::unique_ptr<io::FileSystem> files = io::NewMemoryFileSystem();
  RoomLauncher launcher = {};
  std::unique_ptr<Journal> journal = nullptr;
  std::unique_ptr<Coordinator> coordinator = nullptr;
  int64_t sequence = 0;
};

class Competition {
 public:
  Competition(uint64_t seed, double gang_seconds) : random_(seed) {
    const int count = Int(2, 3);
    for (int i = 0; i < count; ++i) {
      jobs_.push_back(std::make_unique<Competitor>());
      const int tasks = Int(2, 5);
      capacity_ = std::max(capacity_, tasks);
      job::JobSpec spec = Workers(tasks);
      spec.name = StrCat("job-", i);
      spec.all_workers = true;
      spec.restart_budget.per_task = 100;
      spec.restart_scope = Chance(0.5) ? job::RestartScope::kGang : job::RestartScope::kTask;
      if (!jobs_.back()->files->MakeFolders("job").ok()) continue;
      CoordinatorOptions options;
      options.rendezvous_seconds = 0;
      options.gang_seconds = gang_seconds;
      jobs_.back()->coordinator = *Coordinator::New(spec, options, MakeEnvironment(*jobs_.back()));
    }
    capacity_ += Int(0, 2);
    faults_until_ = Chance(0.5) ? 0 : Uniform(random_, 10, 600);
  }

  // What is wrong; "" if all jobs have succeeded.
  std::string Run() {
    for (double now = 0; now < kPatience; now += kLook) {
      clock_.Advance(kLook);
      Give();
      bool all_finished = true;
      for (auto& job : jobs_) {
        Step(*job, now);
        all_finished = all_finished && job->coordinator->finished();
      }
      if (all_finished) return Judge();
    }
    return "ends: not all jobs do";
  }

 private:
  bool Chance(double p) { return Uniform(random_, 0, 1) < p; }
  int Int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Coordinator::Environment MakeEnvironment(Competitor& job) {
    job.journal = *Journal::Open(*job.files, kJournalPath);
    return {job.journal.get(), &job.launcher, &clock_, "boot"};
  }

  // The platform gives what is free to anyone who asks.
  void Give() {
    std::vector<RoomLauncher::Process*> asked;
    int free = capacity_;
    for (auto& job : jobs_) {
      free -= job->launcher.count_held();
      for (auto& [key, process] : job->launcher.processes) {
        if (process.asked) asked.push_back(&process);
      }
    }
    std::shuffle(asked.begin(), asked.end(), random_);
    for (RoomLauncher::Process* const process : asked) {
      if (free-- <= 0) return;
      process->asked = false;
      process->given_at = Seconds();
    }
  }

  double Seconds() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }

  void Step(Competitor& job, double now) {
    if (now < faults_until_ && Chance(0.002)) {
      job.coordinator = *Coordinator::Resume(MakeEnvironment(job));
    }
    (void)*job.coordinator->Pass();
    for (auto& [key, process] : job.launcher.processes) {
      if (process.alive && !process.asked && Seconds() > process.given_at + 2) {
        Report(job, key, process, now);
      }
    }
    (void)*job.coordinator->Pass();
  }

  void Report(Competitor& job, const Key& key, RoomLauncher::Process& process, double now) {
    if (now < faults_until_ && Chance(0.001)) {  // the platform takes it away
      process.alive = false;
      process.end = job::TaskEnd{.lost = true, .disrupted = true};
      return;
    }
    AgentReport report{.task = key.first, .incarnation = key.second, .sequence = ++job.sequence};
    report.address = StrCat("h:", 9000 + key.first.index);
    const bool runs = process.ends_at > 0;
    report.state = runs ? AgentReport::State::kRunning : AgentReport::State::kWaiting;
    if (runs) report.step = 1;
    if (runs && LacksAny(*job.coordinator)) {
      process.ends_at += kLook;
      process.idle += kLook;
    } else {
      process.idle = 0;
    }
    report.idle_seconds = process.idle;
    if (runs && Seconds() >= process.ends_at) {
      report.state = AgentReport::State::kEnded;
      const bool fails = now < faults_until_ && Chance(0.2);
      if (fails) ++failures_;
      report.end = job::TaskEnd{.exit_code = fails ? 1 : 0};
    }
    job.coordinator->Take(report);
    if (report.end) process.end = report.end;
    const AgentOrders orders = job.coordinator->OrdersFor(key.first, key.second);
    if (orders.stop) process.end = job::TaskEnd{.signal = 15};
    if (process.end) process.alive = false;
    if (orders.start && !runs) process.ends_at = Seconds() + Uniform(random_, 5, 100);
  }

  // Whether a task of the job waits or starts: the others wait for it.
  static bool LacksAny(const Coordinator& coordinator) {
    const auto& tasks = coordinator.status().tasks;
    return std::any_of(tasks.begin(), tasks.end(), [](const auto& entry) {
      const TaskPhase phase = entry.second.phase;
      return phase != TaskPhase::kRunning && phase != TaskPhase::kSucceeded;
    });
  }

  std::string Judge() {
    int restarts = 0;
    for (const auto& job : jobs_) {
      const job::JobStatus& status = job->coordinator->status();
      if (status.phase != job::JobPhase::kSucceeded)
        return StrCat("ends: ", status.failure_message);
      for (const auto& [id, task] : status.tasks) restarts += task.restarts;
    }
    return restarts > failures_ ? StrCat("budget: ", restarts, " of ", failures_) : "";
  }

  Random random_;
  FakeClock clock_;
  std::vector<std::unique_ptr<Competitor>> jobs_;
  int capacity_ = 0, failures_ = 0;
  double faults_until_ = 0;
};

TEST(GangSimulation, AllJobsEnd) {
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    ASSERT_EQ(Competition(seed, kGangSeconds).Run(), "") << "seed " << seed;
  }
}

TEST(GangSimulation, WhoKeepsWhatItHoldsMayWaitWithoutAnEnd) {
  ExpectBugsAreCaught(
      {{"keeps what it holds", "ends", [](uint64_t seed) { return Competition(seed, 0).Run(); }}},
      100, {"ends"});
}

}  // namespace
}  // namespace muster::control
