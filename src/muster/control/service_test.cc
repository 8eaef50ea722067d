// The coordinator's threads and HTTP, with real agents' links over loopback and a launcher that
// starts nothing.
#include "muster/control/service.h"

#include <poll.h>
#include <stdlib.h>

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/agent_link.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/net/http/test_peer.h"
#include "muster/net/token.h"

namespace muster::control {
namespace {

using formats::PrintJson;

using ::testing::AllOf;
using ::testing::HasSubstr;
using AgentState = AgentReport::State;

constexpr int kDeadlineMillis = 30'000;

// Every agent that was asked for lives.
class IdleLauncher : public Launcher {
 public:
  void Start(const StartRequest& request) override {
    seen_[{request.task, request.incarnation}] = job::TaskObservation::Phase::kStarting;
  }
  void Kill(job::TaskId task, int64_t incarnation) override {
    seen_[{task, incarnation}] = job::TaskObservation::Phase::kGone;
  }
  Admission Admits(job::TaskId, int64_t, const std::string& slot, bool) override {
    asked_of = slot;
    return admission;
  }
  Admission admission = Admission::kYes;
  std::string asked_of;
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

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/service-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_.path = name;
    ASSERT_TRUE(net::MakeTokenFile(folder_.token()).ok());
    journal_ = *Journal::Open(*files_, folder_.journal());
    auto service = Service::Listen(folder_, {});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  void TearDown() override {
    service_.reset();
    EXPECT_TRUE(files_->RemoveAll(folder_.path).ok());
  }

  void Run(int workers) {
    job::JobSpec spec;
    spec.name = "j";
    spec.replicas[job::TaskType::kWorker] = {workers, job::RestartPolicy::kNever,
                                             job::TemplateFor({"program"})};
    spec.finish_timeout_seconds = 60;
    service_->Run(*Coordinator::New(spec, {}, {journal_.get(), &launcher_, &clock_, "boot"}));
  }
  std::unique_ptr<net::HttpClient> Client() {
    net::HttpClientOptions options;
    options.url = service_->url();
    options.token = *net::ReadTokenFile(folder_.token());
    return *net::HttpClient::Create(options);
  }
  static AgentReport MakeReport(int index, AgentState state) {
    AgentReport report{.task = {job::TaskType::kWorker, index}, .incarnation = index + 1};
    report.state = state;
    report.address = StrCat("127.0.0.1:", 9000 + index);
    return report;
  }
  std::unique_ptr<AgentLink> Link(int index) {
    return std::make_unique<AgentLink>(Client(), Client(), MakeReport(index, AgentState::kWaiting),
                                       10);
  }
  // Waits for news until `done` holds.
  template <typename Done>
  static bool WaitFor(AgentLink& link, Done done) {
    while (!done(link.orders())) {
      pollfd news{.fd = link.news_fd(), .events = POLLIN, .revents = 0};
      if (poll(&news, 1, kDeadlineMillis) <= 0) return false;
      link.ClearNews();
    }
    return true;
  }
  bool WaitUntilFinished() {
    while (!service_->finished()) {
      pollfd change{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
      if (poll(&change, 1, kDeadlineMillis) <= 0) return false;
      service_->ClearChange();
    }
    return true;
  }

  JobFolder folder_;
  const SystemClock clock_{};
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  IdleLauncher launcher_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Service> service_;
  int64_t sequence_ = 0;
};

TEST_F(ServiceTest, AgentsMeetRunAndEnd) {
  Run(3);
  std::vector<std::unique_ptr<AgentLink>> links;
  for (int i = 0; i < 3; ++i) {
    links.push_back(Link(i));
    links[i]->Tell(MakeReport(i, AgentState::kWaiting), /*urgent=*/true);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(WaitFor(*links[i], [](const auto& orders) { return orders.start.has_value(); }));
    EXPECT_THAT(links[i]->orders().start->env.back().second, HasSubstr(StrCat("\"index\":", i)));
    links[i]->Tell(MakeReport(i, AgentState::kRunning), /*urgent=*/true);
  }
  for (int i = 0; i < 3; ++i) {
    AgentReport ended = MakeReport(i, AgentState::kEnded);
    ended.end = job::TaskEnd{.exit_code = 0};
    links[i]->Tell(ended, /*urgent=*/true);
    EXPECT_TRUE(WaitFor(*links[i], [](const auto& orders) { return orders.end_taken; }));
  }
  EXPECT_TRUE(WaitUntilFinished());
  EXPECT_EQ(service_->Describe()["phase"], "succeeded");
}

TEST_F(ServiceTest, OrdersThatWereSeenAreNotSaidAgain) {
  Run(1);
  pollfd first_pass{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
  ASSERT_GT(poll(&first_pass, 1, kDeadlineMillis), 0);
  const auto client = Client();
  const auto say = [&](int64_t seen) {
    AgentReport report = MakeReport(0, AgentState::kWaiting);
    report.sequence = ++sequence_;
    report.seen = seen;
    return client->Post("/v1/agent", net::Json::parse(PrintJson(ToJson(report))), 10).value();
  };
  net::Json orders = say(0);
  while (!orders.contains("start")) orders = say(orders["version"].get<int64_t>());
  const int64_t version = orders["version"].get<int64_t>();
  EXPECT_EQ(say(version),
            (net::Json{{"version", version}, {"lease_seconds", 10.0}, {"held_seconds", 1.0}}));
  EXPECT_EQ(say(version - 1), orders);
  EXPECT_EQ(say(0), orders);
}

TEST_F(ServiceTest, AStopReachesAnAgentThatWaits) {
  Run(1);
  const auto link = Link(0);
  link->Tell(MakeReport(0, AgentState::kWaiting), /*urgent=*/true);
  ASSERT_TRUE(WaitFor(*link, [](const auto& orders) { return orders.start.has_value(); }));
  link->Tell(MakeReport(0, AgentState::kRunning), /*urgent=*/true);
  ASSERT_TRUE(Client()->Post("/v1/stop", {{"why", "enough"}}, 10).ok());
  EXPECT_TRUE(WaitFor(*link, [](const auto& orders) { return orders.stop; }));
  EXPECT_EQ(link->orders().stop_reason, "enough");
}

TEST_F(ServiceTest, AnAgentFindsACoordinatorThatHasMoved) {
  Run(1);
  net::HttpClientOptions gone;
  gone.url = "http://127.0.0.1:1";
  gone.token = *net::ReadTokenFile(folder_.token());
  const auto find = [this](std::string& url) -> std::unique_ptr<net::HttpClient> {
    if (url == service_->url()) return nullptr;
    url = service_->url();
    return Client();
  };
  AgentLink link(*net::HttpClient::Create(gone), *net::HttpClient::Create(gone),
                 MakeReport(0, AgentState::kWaiting), 10, find);
  link.Tell(MakeReport(0, AgentState::kWaiting), /*urgent=*/true);
  EXPECT_TRUE(WaitFor(link, [](const AgentOrders& orders) { return orders.start.has_value(); }));
}

TEST_F(ServiceTest, ALeaseCountsFromWhenTheAnswerWasSentAtTheLatest) {
  Run(1);
  const auto link = Link(0);
  // Silence before the report must not count: without an answer it would be in silent_seconds().
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto reported = std::chrono::steady_clock::now();
  link->Tell(MakeReport(0, AgentState::kWaiting), /*urgent=*/true);
  ASSERT_TRUE(WaitFor(*link, [](const AgentOrders& orders) { return orders.start.has_value(); }));
  const double silent = link->silent_seconds();
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - reported;
  EXPECT_GE(silent, 0);
  EXPECT_LE(silent, since.count());
  // What was held back counts as heard of, but never as heard of later than now.
  const auto orders = OrdersFromJson(NothingNew(7, 10, 2.5));
  ASSERT_TRUE(orders.ok());
  EXPECT_EQ(orders->held_seconds, 2.5);
}

TEST_F(ServiceTest, StrangersAndNonsenseAreRefused) {
  Run(1);
  net::HttpClientOptions options;
  options.url = service_->url();
  const auto stranger = *net::HttpClient::Create(options);
  EXPECT_FALSE(stranger->Get("/v1/status", 10).ok());
  for (const net::Json& body :
       {net::Json::object(), net::Json::array(), net::Json{{"task", "worker-0"}},
        net::Json{{"task", "worker-0"}, {"incarnation", -1}, {"state", "waiting"}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Client()->Post("/v1/agent", body, 10).status()))
        << body.dump();
  }
  const auto status = Client()->Get("/v1/status", 10);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ((*status)["name"], "j");
}

// The answer, head and body, to a client without a token.
std::string OpenGet(int port, const std::string& target, std::string_view fields = "") {
  const net::RawPeer peer(static_cast<uint16_t>(port));
  EXPECT_TRUE(
      peer.Send(StrCat("GET ", target, " HTTP/1.1\r\nConnection: close\r\n", fields, "\r\n")));
  return peer.ReadToEnd();
}

TEST_F(ServiceTest, HealthAndMetricsAreOpenOnAPortOfTheirOwn) {
  service_ = *Service::Listen(folder_, {}, {.open_port = 0});
  ASSERT_NE(service_->open_port(), 0);
  ASSERT_NE(service_->open_port(), service_->port());
  EXPECT_THAT(OpenGet(service_->open_port(), "/healthz"), HasSubstr("503"));
  Run(2);
  pollfd first_pass{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
  ASSERT_GT(poll(&first_pass, 1, kDeadlineMillis), 0);
  EXPECT_TRUE(net::WaitFor([&] {  // an answer may be a second old
    return OpenGet(service_->open_port(), "/healthz").find("200 OK") != std::string::npos;
  }));
  const std::string metrics = OpenGet(service_->open_port(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(metrics, HasSubstr("muster_tasks{job=\"j\",type=\"worker\",phase=\"starting\"} 2\n"));
  for (const char* const target : {"/v1/status", "/v1/agent", "/v1/stop"}) {
    EXPECT_THAT(OpenGet(service_->open_port(), target), HasSubstr("404")) << target;
  }
  EXPECT_THAT(OpenGet(service_->port(), "/metrics"), HasSubstr("401"));
}

TEST_F(ServiceTest, AJournalThatCannotBeWrittenIsNoHealth) {
  io::FaultFileSystem faults(*files_);
  journal_ = *Journal::Open(faults, folder_.journal());
  service_ = *Service::Listen(folder_, {}, {.open_port = 0});
  faults.FillDiskAfter(0);
  Run(1);
  EXPECT_TRUE(net::WaitFor([&] {
    const std::string answer = OpenGet(service_->open_port(), "/healthz");
    return answer.find("503") != std::string::npos &&
           answer.find("cannot decide") != std::string::npos;
  }));
  service_.reset();
  journal_.reset();
}

TEST_F(ServiceTest, ABrowserReadsTheStatusWithAKeyThatIsNotTheToken) {
  Run(1);
  const std::string url = service_->BrowserUrl("/v1/status");
  ASSERT_THAT(url, HasSubstr("/v1/status?token="));
  EXPECT_EQ(url.find(net::ReadTokenFile(folder_.token())->Reveal()), std::string::npos);
  const std::string target = url.substr(url.find("/v1/"));
  const std::string redirect = OpenGet(service_->port(), target);
  EXPECT_THAT(redirect, HasSubstr("303"));
  EXPECT_THAT(OpenGet(service_->port(), "/v1/status"), HasSubstr("401"));
  constexpr std::string_view kCookie = "Set-Cookie: ";
  const size_t cookie = redirect.find(kCookie);
  ASSERT_NE(cookie, std::string::npos);
  const size_t begin = cookie + kCookie.size();
  const std::string value = redirect.substr(begin, redirect.find(';', begin) - begin);
  const std::string status =
      OpenGet(service_->port(), "/v1/status", StrCat("Cookie: ", value, "\r\n"));
  EXPECT_THAT(status, AllOf(HasSubstr("200 OK"), HasSubstr("\"phase\"")));
}

TEST_F(ServiceTest, TheStatusIsAPageToo) {
  Run(1);
  const std::string token = net::ReadTokenFile(folder_.token())->Reveal();
  const std::string bearer = StrCat("Authorization: Bearer ", token, "\r\n");
  std::string page;
  EXPECT_TRUE(net::WaitFor([&] {  // until the first pass has begun the task
    page = OpenGet(service_->port(), "/v1/page", bearer);
    return page.find("worker-0") != std::string::npos;
  }));
  EXPECT_THAT(page, AllOf(HasSubstr("200 OK"), HasSubstr("text/html")));
  EXPECT_EQ(page.find(token), std::string::npos);
  EXPECT_THAT(OpenGet(service_->port(), "/v1/page"), HasSubstr("401"));
}

TEST_F(ServiceTest, ALaunchersRouteIsCalledAndAPassFollows) {
  service_ = *Service::Listen(
      folder_, {}, {.routes = {{"POST", "/v1/more", [](const Json& body) -> absl::StatusOr<Json> {
                                  if (!body.contains("n")) {
                                    return absl::InvalidArgumentError("there is no n");
                                  }
                                  return Json{{"twice", 2 * body["n"].get<int>()}};
                                }}}});
  EXPECT_TRUE(absl::IsUnavailable(Client()->Post("/v1/more", {{"n", 4}}, 10).status()));
  Run(1);
  EXPECT_EQ(Client()->Post("/v1/more", {{"n", 4}}, 10).value(), (net::Json{{"twice", 8}}));
  EXPECT_TRUE(absl::IsInvalidArgument(Client()->Post("/v1/more", {{"m", 4}}, 10).status()));
  net::HttpClientOptions stranger;
  stranger.url = service_->url();
  EXPECT_TRUE(absl::IsUnauthenticated(
      (*net::HttpClient::Create(stranger))->Post("/v1/more", {{"n", 4}}, 10).status()));
}

TEST_F(ServiceTest, AnAgentThatIsNotLetInGetsNoStartAndIsNotHeard) {
  launcher_.admission = Admission::kNotYet;
  Run(1);
  AgentReport report = MakeReport(0, AgentState::kWaiting);
  report.sequence = 1;
  report.slot = "slot-1";
  const auto say = [&] {
    return Client()->Post("/v1/agent", net::Json::parse(PrintJson(ToJson(report))), 10);
  };
  pollfd first_pass{.fd = service_->change_fd(), .events = POLLIN, .revents = 0};
  ASSERT_GT(poll(&first_pass, 1, kDeadlineMillis), 0);
  EXPECT_TRUE(absl::IsUnavailable(say().status()));
  EXPECT_EQ(launcher_.asked_of, "slot-1");
  service_->Within([&] { launcher_.admission = Admission::kNo; });
  const auto orders = say();
  ASSERT_TRUE(orders.ok()) << orders.status();
  EXPECT_FALSE(orders->contains("start"));
  EXPECT_TRUE((*orders)["stop"].get<bool>());
  EXPECT_TRUE((*orders)["end_taken"].get<bool>());
  EXPECT_FALSE(service_->Describe()["tasks"][0].contains("agent_pid"));
  service_->Within([&] { launcher_.admission = Admission::kYes; });
  EXPECT_TRUE(say().ok());
  EXPECT_TRUE(service_->Describe()["tasks"][0].contains("agent_pid"));
}

TEST_F(ServiceTest, BeforeItRunsItSaysSo) {
  const auto client = Client();
  EXPECT_TRUE(absl::IsUnavailable(client->Get("/v1/status", 10).status()));
  // What it said yes to would be forgotten.
  for (const char* const path : {"/v1/stop", "/v1/suspend"}) {
    EXPECT_TRUE(absl::IsUnavailable(client->Post(path, net::Json::object(), 10).status())) << path;
  }
}

}  // namespace
}  // namespace muster::control
