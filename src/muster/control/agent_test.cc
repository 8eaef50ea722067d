// A whole agent with a task of its own beside a real coordinator, both in this process.
#include "muster/control/agent.h"

#include <poll.h>
#include <stdlib.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/agent_link.h"
#include "muster/control/job_access.h"
#include "muster/control/service.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/net/token.h"
#include "muster/process/deadline.h"
#include "muster/process/descriptor.h"
#include "muster/process/pidfd.h"
#include "muster/process/ports.h"

namespace muster::control {
namespace {

using ::testing::HasSubstr;

constexpr double kTestSeconds = 60;  // more than anything here takes
constexpr job::TaskId kWorker{job::TaskType::kWorker, 0}, kEvaluator{job::TaskType::kEvaluator, 0};
constexpr double kLongLease = 10;

// The agents are started by the test.
class AbsentLauncher : public Launcher {
 public:
  void Start(const StartRequest& request) override {
    const job::TaskObservation seen{.id = request.task,
                                    .incarnation = request.incarnation,
                                    .phase = job::TaskObservation::Phase::kStarting};
    seen_.try_emplace(request.task, seen);
  }
  void Kill(job::TaskId, int64_t) override {}
  std::vector<job::TaskObservation> Observe() override {
    std::vector<job::TaskObservation> all;
    for (const auto& [task, seen] : seen_) all.push_back(seen);
    return all;
  }

 private:
  std::map<job::TaskId, job::TaskObservation> seen_;
};

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/agent-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_.path = name;
    for (const char* const below : {"/agents", "/logs"}) {
      ASSERT_TRUE(files_->MakeFolders(folder_.path + below).ok());
    }
    ASSERT_TRUE(net::MakeTokenFile(folder_.token()).ok());
    ASSERT_TRUE(net::MakeTokenFile(folder_.data_key()).ok());
    journal_ = *Journal::Open(*files_, folder_.journal());
    auto service = Service::Listen(folder_, {});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  void TearDown() override {
    service_.reset();
    if (agent_.joinable()) agent_.join();
    EXPECT_TRUE(files_->RemoveAll(folder_.path).ok());
  }

  // A job of a worker, and an evaluator if wanted, which run a shell's script.
  void Run(const std::string& script, bool evaluator, double lease_seconds) {
    job::JobSpec spec;
    spec.name = "j";
    const job::ReplicaSpec replica{1, job::RestartPolicy::kNever,
                                   job::TemplateFor({"sh", "-c", script})};
    spec.replicas[job::TaskType::kWorker] = replica;
    if (evaluator) spec.replicas[job::TaskType::kEvaluator] = replica;
    spec.model_dir = folder_.path + "/model";
    spec.finish_timeout_seconds = 60;
    service_->Run(*Coordinator::New(spec, {.lease_seconds = lease_seconds, .grace_seconds = 0},
                                    {journal_.get(), &launcher_, &clock_, "boot"}));
  }
  void StartAgent(AgentOptions options) {
    options.folder = folder_;
    options.coordinator_url = service_->url();
    agent_ = std::thread([this, options] { result_ = RunAgent(options); });
  }
  // Looks at a task again and again, until it says so.
  bool WaitUntil(job::TaskId task, const std::function<bool(const Json& said)>& says) {
    const auto deadline = process::Deadline::After(kTestSeconds);
    while (!deadline.expired()) {
      const Json job = service_->Describe();
      for (const Json& each : job.value("tasks", Json::array())) {
        if (each.value("task", "") == job::TaskName(task) && says(each)) return true;
      }
      pollfd change{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
      poll(&change, 1, 100);
      service_->ClearChange();
    }
    return false;
  }

  int64_t WaitForIncarnation(job::TaskId task) {
    int64_t incarnation = 0;
    EXPECT_TRUE(WaitUntil(task, [&](const Json& said) {
      incarnation = said.value("incarnation", int64_t{0});
      return incarnation != 0;
    }));
    return incarnation;
  }

  // Of the worker, which ended.
  std::string WaitForLastLine() {
    std::string line;
    EXPECT_TRUE(WaitUntil(kWorker, [&](const Json& said) {
      line = said.value("last_end", Json::object()).value("last_line", "");
      return !line.empty();
    })) << service_->Describe();
    return line;
  }

  // What the worker of a bundle with certificates says about them; MUSTER_PLAIN_TEXT is set.
  std::string RunWithCertificates(const char* plain_text) {
    EXPECT_TRUE(io::WriteFileAtomically(*files_, folder_.path + "/server.pem", "some").ok());
    setenv("MUSTER_PLAIN_TEXT", plain_text, 1);
    Run("echo certificates: $MUSTER_CERTS; exit 1", /*evaluator=*/false, kLongLease);
    StartAgent({.bundle = true, .id = {kWorker, WaitForIncarnation(kWorker)}});
    std::string line = WaitForLastLine();
    agent_.join();
    unsetenv("MUSTER_PLAIN_TEXT");
    return line;
  }

  JobFolder folder_;
  const SystemClock clock_{};
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  AbsentLauncher launcher_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Service> service_;
  absl::Status result_ = absl::UnknownError("the agent has not ended");
  std::thread agent_;
};

// The agent's only thread that may read the model folder stands still in it, as when the server of
// a network file system is gone.
TEST_F(AgentTest, ATaskEndsWithTheLeaseWhileAFileSystemHoldsItsAgentUp) {
  io::FaultFileSystem stalls(*files_);
  std::promise<void> is_held_up, answers;
  stalls.StallNth(io::FileOperation::kOpen, 1, [&] {
    is_held_up.set_value();
    answers.get_future().wait();
  });
  Run("exec sleep 1000", /*evaluator=*/true, /*lease_seconds=*/1);
  const int64_t worker_number = WaitForIncarnation(kWorker);
  const IncarnationId id{kEvaluator, WaitForIncarnation(kEvaluator)};
  const auto client = [&] {
    return *net::HttpClient::Create(*ClientOptions(folder_, service_->url()));
  };
  const AgentReport worker{
      .task = kWorker, .incarnation = worker_number, .address = "127.0.0.1:9000"};
  auto link = std::make_unique<AgentLink>(client(), client(), worker, kLongLease);
  link->Tell(worker, /*urgent=*/true);
  StartAgent({.bundle = true, .id = id, .files = &stalls});
  int task = 0;
  ASSERT_TRUE(WaitUntil(kEvaluator, [&](const Json& said) {
    task = said.value("pid", 0);
    return task != 0;
  })) << service_->Describe();
  const process::Descriptor ended(process::OpenPidfd(task));
  ASSERT_TRUE(ended.valid());
  is_held_up.get_future().wait();
  link.reset();
  service_.reset();  // the coordinator is silent from now on
  const int fd = ended.get();
  EXPECT_TRUE(process::PollReadable(&fd, 1, process::Deadline::After(kTestSeconds)));
  EXPECT_TRUE(absl::IsNotFound(ReadEnd(folder_.path, id).status()));  // it is still held up
  answers.set_value();
  agent_.join();
  EXPECT_TRUE(result_.ok()) << result_;
  const auto end = ReadEnd(folder_.path, id);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->disrupted);
  EXPECT_THAT(end->Describe(), HasSubstr("the coordinator was silent for 1s"));
}

TEST_F(AgentTest, ItWaitsForThePortByWhichOthersKnowItsTask) {
  auto held = process::HeldPort::Any({});
  ASSERT_TRUE(held.ok()) << held.status();
  const int port = held->port();
  std::optional<process::HeldPort> holder(*std::move(held));
  Run("exit 0", /*evaluator=*/false, kLongLease);
  StartAgent({.id = {kWorker, WaitForIncarnation(kWorker)}, .port = port, .port_required = true});
  const std::string waits = StrCat("waits for its port ", port);
  ASSERT_TRUE(
      WaitUntil(kWorker, [&](const Json& said) { return said.value("said", "") == waits; }));
  holder.reset();
  EXPECT_TRUE(WaitUntil(kWorker, [](const Json& said) {
    return said.value("phase", "") == "succeeded";
  })) << service_->Describe();
  EXPECT_EQ(service_->Describe()["tasks"][0].value("address", ""), StrCat("127.0.0.1:", port));
  agent_.join();
  EXPECT_TRUE(result_.ok()) << result_;
}

TEST_F(AgentTest, ATaskIsGivenTheCertificatesOfItsBundle) {
  EXPECT_EQ(RunWithCertificates(/*plain_text=*/"0"), "certificates: " + folder_.path);
}

TEST_F(AgentTest, ATaskThatAsksForPlainTextIsGivenNoCertificates) {
  EXPECT_EQ(RunWithCertificates(/*plain_text=*/"1"), "certificates:");
}

TEST_F(AgentTest, ALongLastLineIsCutAfterAWordAndSaysSo) {
  Run("printf 'longish %.0s' $(seq 100); echo; exit 1", /*evaluator=*/false, kLongLease);
  StartAgent({.bundle = true, .id = {kWorker, WaitForIncarnation(kWorker)}});
  const std::string line = WaitForLastLine();
  EXPECT_THAT(line, ::testing::EndsWith(" longish ... (cut)"));
  EXPECT_LE(line.size(), 300);
  EXPECT_GE(line.size(), 280);
  agent_.join();
}

}  // namespace
}  // namespace muster::control
