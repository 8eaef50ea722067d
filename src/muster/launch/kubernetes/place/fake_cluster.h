// A cluster in this process with one TFJob `j` of two workers: an API server of the few calls that
// a place makes, an operator that decides by PlanJob(), and a kubelet that keeps what pods write.
// For tests of this layer only.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"
#include "muster/launch/kubernetes/place/cluster.h"
#include "muster/net/http/message.h"
#include "muster/net/http/request_reader.h"
#include "muster/net/http/test_peer.h"
#include "muster/net/listen.h"

namespace muster::launch::kubernetes {

// The test's thread changes it; threads of its own answer requests.
class FakeCluster {
 public:
  FakeCluster() : job_(JobObject({{"Worker", ReplicaObject(2)}})) { Listen(); }
  ~FakeCluster() { Close(); }
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;

  Cluster Open() const {
    const KubeAccess access = {.server = StrCat("http://127.0.0.1:", port_), .source = "a test"};
    return OpenCluster(access, "team", {.patience = 0, .call_seconds = 20}).value();
  }

  // The operator's passes, until nothing is left to decide.
  void Settle() {
    const std::lock_guard lock(mutex_);
    for (int pass = 0; pass < 20 && Pass(); ++pass) continue;
  }
  // The pods' containers exit with 0.
  void Succeed() {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [name, pod] : pods_) SetTerminated(0, "Completed", "", &pod);
      ended_ = true;
    }
    changed_.notify_all();
    Settle();
  }

  // Connections break, and nobody answers until it is set to false again.
  void SetSilent(bool silent) {
    Close();
    if (!silent) Listen();
  }

  void Write(const std::string& pod, const std::string& bytes) {
    {
      const std::lock_guard lock(mutex_);
      logs_[pod] += bytes;
    }
    changed_.notify_all();
  }
  std::string ReadLog(const std::string& pod) {
    const std::lock_guard lock(mutex_);
    return logs_[pod];
  }
  // The kubelet begins a new file, and does not keep the old one.
  void DropLog(const std::string& pod) {
    {
      const std::lock_guard lock(mutex_);
      logs_[pod].clear();
      ++dropped_;
    }
    changed_.notify_all();
  }

 private:
  struct Answer {
    int status = 200;
    std::string body = {};
  };

  void Listen() {
    closing_ = false;
    listener_ = net::internal::ListenOn("127.0.0.1", port_).value();
    port_ = listener_.port;
    server_ = std::thread([this] { Accept(); });
  }
  void Close() {
    if (!server_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    shutdown(listener_.descriptor, SHUT_RDWR);
    server_.join();
    close(listener_.descriptor);
  }
  void Accept() {
    std::vector<std::jthread> connections;
    while (true) {
      pollfd waiting = {.fd = listener_.descriptor, .events = POLLIN, .revents = 0};
      poll(&waiting, 1, -1);
      std::string name;
      int error = 0;
      const int fd = net::internal::AcceptOne(listener_.descriptor, &name, &error);
      if (fd < 0) return;
      connections.emplace_back([this, fd] { Serve(net::RawPeer::Accepted(fd)); });
    }
  }

  void Serve(const net::RawPeer& peer) {
    net::HttpRequestReader reader({});
    std::string bytes = peer.ReadUntil("\r\n\r\n");
    bytes.erase(0, reader.Put(bytes));
    if (!reader.header_done()) return;
    reader.AcceptBody();
    while (!reader.done()) {
      if (bytes.empty()) bytes = peer.ReadBytes(1);
      if (bytes.empty()) return;
      bytes.erase(0, reader.Put(bytes));
    }
    const auto target = net::ParseTarget(reader.target());
    if (!target.ok()) return;
    if (target->path.ends_with("/log")) return ServeLog(peer, *target);
    const Answer answer = Handle(std::string(reader.method()), target->path, reader.body());
    peer.Send(StrCat("HTTP/1.1 ", answer.status, " X\r\nConnection: close\r\nContent-Length: ",
                     answer.body.size(), "\r\n\r\n", answer.body));
  }

  void ServeLog(const net::RawPeer& peer, const net::HttpTarget& target) {
    const std::string pod = target.segments.at(target.segments.size() - 2);
    const bool follows = target.query.contains("follow");
    peer.Send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    std::unique_lock lock(mutex_);
    const int dropped = dropped_;
    size_t sent = 0;
    while (!closing_ && dropped == dropped_) {
      const std::string more = logs_[pod].substr(sent);
      sent += more.size();
      lock.unlock();
      if (!peer.Send(more)) return;
      lock.lock();
      if (!follows || (ended_ && sent == logs_[pod].size())) return;
      // The peer may have gone away, which nothing tells.
      changed_.wait_for(lock, std::chrono::milliseconds(100), [&] {
        return closing_ || ended_ || dropped != dropped_ || sent < logs_[pod].size();
      });
      if (peer.ClosedWithin(0)) return;
    }
  }

  static Answer Fail(int code, const std::string& reason) {
    const Json status = {{"kind", "Status"}, {"reason", reason}, {"message", reason}};
    return {.status = code, .body = status.dump()};
  }

  Answer Handle(const std::string& method, const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    if (path == GetTarget(kPods, "team")) return List(pods_);
    if (path == GetTarget(kTfJobs, "team")) {
      return List(job_.is_null() ? std::map<std::string, Json>() : decltype(pods_){{"j", job_}});
    }
    if (path == "/api/v1/namespaces/team") return {.body = "{}"};
    if (path != GetTarget(kTfJobs, "team", "j") || job_.is_null()) return Fail(404, "NotFound");
    if (method == "GET") return {.body = job_.dump()};
    const Json sent = Json::parse(body);
    const Json& owner = method == "PATCH" ? Child(sent, "metadata") : Child(sent, "preconditions");
    if (GetText(owner, "uid") != GetUid(job_)) return Fail(409, "Conflict");
    if (method == "PATCH") {
      job_.merge_patch(sent);
    } else {
      job_ = nullptr;
    }
    return {.body = job_.is_null() ? "{}" : job_.dump()};
  }

  static Answer List(const std::map<std::string, Json>& objects) {
    Json list = {{"metadata", {{"resourceVersion", "1"}}}, {"items", Json::array()}};
    for (const auto& [name, object] : objects) list["items"].push_back(object);
    return {.body = list.dump()};
  }

  // Returns whether there was anything to decide.
  bool Pass() {
    if (job_.is_null()) return false;
    const TrainingJob job = ReadJobObject(job_);
    const job::JobStatus status = ReadState(job_).value();
    JobView view = {.admitted = ReadAdmitted(job_)};
    for (const auto& [name, pod] : pods_) view.pods[name] = ReadPod(pod).value();
    view.gone = FindUnseen(job, status, view);
    const SystemClock clock;
    const JobPlan plan = PlanJob(job, status, view,
                                 {.wall = clock.WallSeconds(),
                                  .monotonic = static_cast<double>(clock.MonotonicNanos()) * 1e-9,
                                  .clock_id = "here"});
    job_["status"] = MakeStatus(job.spec, plan.status, plan.problems, plan.admitted);
    for (const NamedObject& pod : plan.pod_deletions) pods_.erase(pod.name);
    for (const TaskStart& start : plan.pods) {
      const int number = ++made_;
      Json pod =
          PodObject(job, start.task, start.incarnation, StrCat("pod-", number), number, "Running");
      const std::string name = GetName(pod);
      pods_[name] = std::move(pod);
    }
    return !OnlyTimePassed(status, plan.status) || plan.admitted != view.admitted ||
           !plan.pods.empty() || !plan.pod_deletions.empty();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Json job_;                               // guarded by mutex_, as all below
  std::map<std::string, Json> pods_ = {};  // by name
  std::map<std::string, std::string> logs_ = {};
  int made_ = 0, dropped_ = 0;
  bool ended_ = false, closing_ = false;
  uint16_t port_ = 0;
  net::internal::Listener listener_ = {};
  std::thread server_;
};

}  // namespace muster::launch::kubernetes
