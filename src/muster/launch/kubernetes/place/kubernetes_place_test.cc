#include "muster/launch/kubernetes/place/kubernetes_place.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "muster/control/job_place_conformance.h"
#include "muster/control/log_source_conformance.h"
#include "muster/launch/kubernetes/place/fake_cluster.h"

namespace muster::launch::kubernetes {
namespace {

using control::JobPlaceConformance;
using control::JobPlaceMember;
using control::LogSourceConformance;
using control::LogSourceMember;

constexpr double kLongSeconds = 30;  // never reached

// What a read has to wait for, since bytes and broken connections come over a network.
struct Waits {
  std::map<job::TaskId, size_t> unread = {};  // bytes that a task has written and nobody has read
  bool silent = false;                        // the server has just ended
};

// A source whose reads wait for what happened before them.
class PatientSource : public control::LogSource {
 public:
  PatientSource(std::unique_ptr<control::LogSource> source, job::TaskId task, Waits& waits)
      : source_(std::move(source)), unread_(waits.unread[task]), waits_(waits) {}

  absl::StatusOr<control::LogPiece> Read(int64_t offset, size_t max, double wait) override {
    auto piece = source_->Read(offset, max, wait);
    if (piece.ok() && piece->bytes.empty() && (unread_ > 0 || waits_.silent)) {
      piece = source_->Read(offset, max, kLongSeconds);
    }
    if (piece.ok()) unread_ -= std::min(unread_, piece->bytes.size());
    return piece;
  }
  int change_fd() const override { return source_->change_fd(); }
  void ClearChange() override { source_->ClearChange(); }

 private:
  const std::unique_ptr<control::LogSource> source_;
  size_t& unread_;
  const Waits& waits_;
};

class PatientPlace : public KubernetesPlace {
 public:
  PatientPlace(Cluster cluster, Waits& waits)
      : KubernetesPlace(std::move(cluster), "j"), waits_(waits) {}

  absl::StatusOr<std::unique_ptr<control::LogSource>> OpenLog(job::TaskId task) override {
    MUSTER_ASSIGN_OR_RETURN(auto source, KubernetesPlace::OpenLog(task));
    return std::make_unique<PatientSource>(std::move(source), task, waits_);
  }

 private:
  Waits& waits_;
};

class KubernetesJob : public control::JobUnderTest {
 public:
  KubernetesJob() { cluster_.Settle(); }
  std::unique_ptr<control::JobPlace> Open() override {
    return std::make_unique<PatientPlace>(cluster_.Open(), waits_);
  }
  void Write(job::TaskId task, const std::string& bytes) override {
    cluster_.Write("j-" + job::TaskName(task), bytes);
    waits_.unread[task] += bytes.size();
  }
  void Succeed() override { cluster_.Succeed(); }
  void Settle() override { cluster_.Settle(); }
  void SetSilent(bool silent) override { cluster_.SetSilent(silent); }
  void Move() override {  // another server answers at the one address that a cluster has
    cluster_.SetSilent(true);
    cluster_.SetSilent(false);
  }
  bool Lose() override { return false; }  // an operator looks at every job that there is

 private:
  Waits waits_;
  FakeCluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Kubernetes, JobPlaceConformance,
                         ::testing::Values(JobPlaceMember{
                             "Kubernetes", [] { return std::make_unique<KubernetesJob>(); }}),
                         control::JobPlaceMemberName);

class KubernetesLog : public control::LogUnderTest {
 public:
  KubernetesLog() { cluster_.Settle(); }
  std::unique_ptr<control::LogSource> Open() override {
    place_ = std::make_unique<PatientPlace>(cluster_.Open(), waits_);
    return place_->OpenLog(kWorker0).value();
  }
  void Write(const std::string& bytes) override {
    cluster_.Write("j-worker-0", bytes);
    waits_.unread[kWorker0] += bytes.size();
  }
  void WriteWhileReading(const std::string& bytes) override { Write(bytes); }
  // A kubelet's log is one text. What it drops when it begins another file is gone.
  void Drop() override {
    cluster_.DropLog("j-worker-0");
    waits_.unread[kWorker0] = 0;
  }
  void Truncate() override { Drop(); }
  void SetSilent(bool silent) override {
    cluster_.SetSilent(silent);
    waits_.silent = silent;
  }
  void Move() override {}  // the address stays

 private:
  Waits waits_;
  FakeCluster cluster_;
  std::unique_ptr<PatientPlace> place_;
};

INSTANTIATE_TEST_SUITE_P(Kubernetes, LogSourceConformance,
                         ::testing::Values(LogSourceMember{
                             .name = "Kubernetes",
                             .make = [] { return std::make_unique<KubernetesLog>(); },
                             .can_be_silent = true}),
                         control::LogSourceMemberName);

}  // namespace
}  // namespace muster::launch::kubernetes
