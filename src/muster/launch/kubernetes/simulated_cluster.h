// A TFJob on a cluster in which everything misbehaves: seeded histories of two operators that both
// lead, are killed and stopped at any call, lose calls and answers, have watches that are late,
// repeat themselves or begin anew; kubelets that end pods; people who delete pods and the Secret of
// native tasks, suspend the job and scale it. The controller and the cache under test are those of
// `muster operator`.
//
//   one pod       one pod of an incarnation runs, and none after a later incarnation has run
//   one key       native pods that run at a time have the same Secret
//   counted       a restart is counted once: not more of them than failures, not more disruptions
//                 than the platform and people have caused
//   truth         Succeeded only when the leader's pod has exited with 0
//   final         what has ended stays so
//   ends          once nothing misbehaves any more, the job ends
//   kept          the leader's pod stays, if the job succeeds and cleanPodPolicy is not All; and a
//                 pod that stays keeps its service. Not of a job that was suspended or scaled: a
//                 late deletion from that time may come after the end
//   nothing left  when it has ended, what cleanPodPolicy removes is gone, nothing waits in vain,
//                 and nothing runs that began later
//
// For tests of this layer only.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/simulation.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/simulated_operator.h"

namespace muster::launch::kubernetes {

class ClusterSimulation : SimulatedHistory {
 public:
  ClusterSimulation(uint64_t seed, Tampering tampering)
      : SimulatedHistory(seed), tampering_(std::move(tampering)), is_native_(seed % 16 == 0) {
    server_.Store("tfjobs", MakeJob());
    StartOperator();
    if (Chance(0.7)) StartOperator();
    time_.After(Uniform(1, 40), [this] { PlayDeath(); });
    time_.After(Uniform(1, 40), [this] { PlayStop(); });
    time_.After(Uniform(1, 60), [this] { PlayPerson(); });
    if (Chance(0.3)) time_.After(Uniform(1, 60), [this] { PlaySuspension(); });
  }

  // The first invariant that does not hold; "" for none.
  std::string Run() {
    while (violation_.empty() && !IsOver()) {
      if (time_.empty() || now() > faults_until_ + kPatience) {
        Violated("ends: not after all faults are over");
      } else {
        time_.RunNext();
      }
    }
    if (violation_.empty()) CheckNothingLeft();
    return violation_;
  }

 private:
  static constexpr double kPatience = 5'000, kCleanSeconds = 100;

  double now() const { return time_.now(); }
  bool Chance(double p) { return time_.Chance(p); }
  double Uniform(double low, double high) { return time_.Uniform(low, high); }
  bool IsFaulty() const { return now() < faults_until_; }
  bool IsOver() const {
    if (ended_at_ < 0) return false;
    return time_.empty() || now() > std::max(ended_at_, faults_until_) + kCleanSeconds;
  }

  Json MakeJob() {
    Json container = {{"name", "tensorflow"}, {"image", "i"}};
    if (is_native_) container["command"] = {"muster", "worker"};
    const auto replica = [&](int count) {
      const char* const policies[] = {"ExitCode", "ExitCode", "OnFailure", "Never"};
      Json json = {{"replicas", count}, {"restartPolicy", policies[time_.Below(4)]}};
      json["template"]["spec"]["containers"] = Json::array({container});
      return json;
    };
    Json job = {{"apiVersion", "kubeflow.org/v1"}, {"kind", "TFJob"}};
    job["metadata"] = {{"name", "j"}, {"namespace", "team"}, {"uid", "job-uid"}};
    Json& spec = job["spec"];
    spec["tfReplicaSpecs"]["Worker"] = replica(time_.Int(1, 2));
    if (Chance(0.3)) spec["tfReplicaSpecs"]["PS"] = replica(1);
    has_chief_ = Chance(0.2);
    if (has_chief_) spec["tfReplicaSpecs"]["Chief"] = replica(1);
    const char* const cleaning[] = {"None", "Running", "All"};
    clean_ = cleaning[time_.Below(3)];
    spec["runPolicy"] = {{"cleanPodPolicy", clean_}};
    if (Chance(0.3)) spec["runPolicy"]["backoffLimit"] = 3;
    hangs_ = Chance(0.1);
    if (hangs_) spec["runPolicy"]["activeDeadlineSeconds"] = 300;
    return job;
  }

  void StartOperator() {
    operators_.push_back(
        std::make_unique<SimulatedOperator>(world_, static_cast<int>(operators_.size())));
  }

  // Time passes within a call of an operator: the others act. A call within a call within a call
  // returns at once.
  void PassTime(double seconds) {
    const double until = now() + seconds;
    if (depth_ >= 2) return;
    ++depth_;
    while (violation_.empty() && !time_.empty() && time_.next() <= until) time_.RunNext();
    --depth_;
    time_.Advance(until);
  }

  void Changed(const std::string& plural, const SimulatedApiServer::Change& change) {
    for (const auto& each : operators_) each->Notify(plural);
    if (plural == kTfJobs.plural) return CheckJob(*change.object);
    if (plural != kPods.plural || change.deleted) return;
    const std::string uid = GetUid(*change.object), name = GetName(*change.object);
    if (Child(Child(*change.object, "metadata"), "deletionTimestamp").is_string()) {
      time_.After(Uniform(0.02, 3), [this, uid, name] { RemovePod(name, uid); });
    } else if (!HasAdmissionGate(*change.object) && scheduled_.insert(uid).second) {
      time_.After(Uniform(0.02, 2), [this, uid, name] { StartPod(name, uid); });
    }
  }

  // The pod, if it is still that one and has not ended.
  SimulatedApiServer::Object FindPod(const std::string& name, const std::string& uid) {
    auto pod = server_.Find("pods", name);
    return pod != nullptr && GetUid(*pod) == uid ? pod : nullptr;
  }

  void RemovePod(const std::string& name, const std::string& uid) {
    if (FindPod(name, uid) != nullptr) server_.Remove("pods", name);
  }

  void StartPod(const std::string& name, const std::string& uid) {
    const auto pod = FindPod(name, uid);
    if (pod == nullptr) return;
    const auto record = ReadPod(*pod);
    if (is_native_ && !MountSecret(*pod)) return;
    auto& [last, its_uid] = runs_[name];
    if (record->incarnation < last) Violated(StrCat("one pod: ", name, " runs an old incarnation"));
    if (record->incarnation == last) {
      Violated(StrCat("one pod: ", name, " runs twice in incarnation ", last));
    }
    last = record->incarnation;
    its_uid = uid;
    began_[uid] = now();
    Json running = *pod;
    running["status"]["phase"] = "Running";
    running["status"].erase("containerStatuses");  // that it waits
    const bool serves = record->task.type == job::TaskType::kPs;
    if (!serves && !hangs_) time_.After(Uniform(0.5, 60), [this, name, uid] { EndPod(name, uid); });
    server_.Store("pods", std::move(running));
  }

  // False: the Secret is not there; the pod waits for it, and says so.
  bool MountSecret(const Json& pod) {
    const Json& volumes = Child(Child(pod, "spec"), "volumes");
    if (!volumes.is_array()) return true;
    const std::string secret = GetText(Child(volumes[0], "secret"), "secretName");
    const auto found = server_.Find("secrets", secret);
    const std::string name = GetName(pod), uid = GetUid(pod);
    if (found == nullptr) {
      time_.After(1, [this, name, uid] { StartPod(name, uid); });
      Json waits = pod;
      const Json waiting = {{"reason", "FailedMount"},
                            {"message", StrCat("secret \"", secret, "\" not found")}};
      waits["status"]["containerStatuses"] =
          Json::array({{{"name", "tensorflow"}, {"state", {{"waiting", waiting}}}}});
      if (waits != pod) server_.Store("pods", std::move(waits));
      return false;
    }
    keys_[uid] = GetUid(*found);
    for (const auto& [other, running] : server_.objects("pods")) {
      const auto key = keys_.find(GetUid(*running));
      const bool runs = GetText(Child(*running, "status"), "phase") == "Running";
      if (!runs || key == keys_.end() || key->second == keys_[uid]) continue;
      Violated(StrCat("one key: ", name, " and ", other, " have different Secrets"));
    }
    return true;
  }

  void EndPod(const std::string& name, const std::string& uid) {
    const auto pod = FindPod(name, uid);
    if (pod == nullptr) return;
    Json ended = *pod;
    Json& status = ended["status"];
    const double outcome = IsFaulty() ? Uniform(0, 1) : 0;
    int code = 0;
    if (outcome > 0.9) code = 1;
    if (outcome > 0.5 && outcome < 0.8) code = 137;
    if (outcome > 0.8 && outcome < 0.9) {
      ++disruptions_[name];
      code = 143;
      status["conditions"] = Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
    } else if (code != 0) {
      ++failures_[name];
    }
    if (code == 0 && name == (has_chief_ ? "j-chief-0" : "j-worker-0")) leader_succeeded_ = true;
    const bool in_place = GetText(Child(ended, "spec"), "restartPolicy") == "OnFailure";
    Json container = {{"name", "tensorflow"}, {"restartCount", 0}};
    if (code != 0 && in_place && code != 143) {
      container["restartCount"] =
          GetNumber(Child(Child(status, "containerStatuses"), ""), "restartCount") + 1;
      container["state"]["running"] = Json::object();
      time_.After(Uniform(0.5, 60), [this, name, uid] { EndPod(name, uid); });
    } else {
      status["phase"] = code == 0 ? "Succeeded" : "Failed";
      container["state"]["terminated"] = {{"exitCode", code}};
    }
    status["containerStatuses"] = Json::array({container});
    server_.Store("pods", std::move(ended));
  }

  void PlayDeath() {
    if (!IsFaulty()) return;
    operators_[time_.Below(operators_.size())]->Kill();
    time_.After(Uniform(0, 30), [this] { StartOperator(); });
    time_.After(Uniform(5, 60), [this] { PlayDeath(); });
  }

  void PlayStop() {
    if (!IsFaulty()) return;
    operators_[time_.Below(operators_.size())]->Stop(Uniform(0.1, 60));
    time_.After(Uniform(2, 60), [this] { PlayStop(); });
  }

  // Somebody deletes a pod, or changes the number of workers.
  void PlayPerson() {
    if (!IsFaulty()) return;
    const auto& pods = server_.objects("pods");
    if (Chance(0.3)) {
      Scale(time_.Int(1, 3));
      // Without a chief that is not valid. It is corrected later.
      if (Chance(0.3)) {
        Scale(0);
        time_.After(Uniform(0.1, 60), [this] { Scale(time_.Int(1, 3)); });
      }
    } else if (is_native_ && Chance(0.5)) {
      DeleteSecret();
    } else if (!pods.empty()) {
      const auto pod = std::next(pods.begin(), static_cast<int64_t>(time_.Below(pods.size())));
      const std::string name = pod->first, uid = GetUid(*pod->second);
      ++disruptions_[name];
      removed_.insert(name);
      (void)server_.Delete(StrCat("/pods/", name), uid);
    }
    time_.After(Uniform(5, 90), [this] { PlayPerson(); });
  }

  // Not while an operator may have decided to make it and has not done so: that the Secret was
  // there and was deleted meanwhile could only be read, which an operator may not.
  void DeleteSecret() {
    const auto& secrets = server_.objects("secrets");
    const bool is_quiet =
        late_calls_ == 0 && std::none_of(operators_.begin(), operators_.end(),
                                         [](auto& each) { return each->is_busy(); });
    if (secrets.empty() || !is_quiet) return;
    for (const char* const name :
         {"j-chief-0", "j-ps-0", "j-worker-0", "j-worker-1", "j-worker-2"}) {
      ++disruptions_[name];
      removed_.insert(name);
    }
    server_.Remove("secrets", std::string(secrets.begin()->first));
  }

  void Scale(int workers) {
    is_changed_ = true;
    Json job = *server_.Find("tfjobs", "j");
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = workers;
    server_.Store("tfjobs", std::move(job));
  }

  void PlaySuspension() {
    is_changed_ = true;
    Json job = *server_.Find("tfjobs", "j");
    Json& suspend = job["spec"]["runPolicy"]["suspend"];
    suspend = suspend != true;
    if (suspend == true) time_.After(Uniform(0.1, 90), [this] { PlaySuspension(); });
    server_.Store("tfjobs", std::move(job));
  }

  // What an operator has written.
  void CheckJob(const Json& object) {
    const auto status = ReadState(object);
    if (!status.ok()) return Violated(StrCat("final: ", ToStd(status.status().message())));
    for (const auto& [id, task] : status->tasks) {
      const std::string name = StrCat("j-", job::TaskName(id));
      if (task.restarts > failures_[name] || task.disruptions > disruptions_[name]) {
        Violated(StrCat("counted: ", task.restarts, " restarts and ", task.disruptions,
                        " disruptions of ", name, ", which had ", failures_[name], " and ",
                        disruptions_[name]));
      }
    }
    if (ended_at_ >= 0 && status->phase != final_phase_) Violated("final: it has ended before");
    if (ended_at_ >= 0 || !status->ended()) return;
    ended_at_ = now();
    final_phase_ = status->phase;
    const bool succeeded = status->phase == job::JobPhase::kSucceeded;
    if (succeeded && !leader_succeeded_) Violated("truth: its leader did not exit with 0");
  }

  void CheckNothingLeft() {
    const char* const leader = has_chief_ ? "j-chief-0" : "j-worker-0";
    const bool keeps_leader = final_phase_ == job::JobPhase::kSucceeded && clean_ != "All" &&
                              !is_changed_ && !removed_.contains(leader);
    if (keeps_leader && server_.Find("pods", leader) == nullptr) {
      Violated(StrCat("kept: not the pod ", leader, ", which has succeeded"));
    }
    for (const auto& [name, pod] : server_.objects("pods")) {
      const auto record = ReadPod(*pod);
      const bool ended = record->phase == job::TaskObservation::Phase::kEnded;
      const bool is_kept = clean_ == "None" || (clean_ == "Running" && ended);
      if (record->gated || !is_kept) Violated(StrCat("nothing left: the pod ", name));
      const auto began = began_.find(record->uid);
      if (!ended && began != began_.end() && began->second > ended_at_) {
        Violated(StrCat("nothing left: the pod ", name, ", which began after the end"));
      }
      const bool has_service = server_.Find("services", name) != nullptr;
      if (!has_service && !is_changed_) Violated(StrCat("kept: not that of ", name));
    }
    for (const auto& [name, service] : server_.objects("services")) {
      if (clean_ == "None" || server_.Find("pods", name) != nullptr) continue;
      Violated(StrCat("nothing left: the service ", name));
    }
  }

  const Tampering tampering_;
  const bool is_native_;  // keys take their time, so few histories have them
  int late_calls_ = 0;
  SimulatedApiServer server_{
      [this](const std::string& plural, const SimulatedApiServer::Change& change) {
        Changed(plural, change);
      }};
  const SimulatedWorld world_ = {.time = time_,
                                 .server = server_,
                                 .tampering = tampering_,
                                 .is_faulty = [this] { return IsFaulty(); },
                                 .pass = [this](double seconds) { PassTime(seconds); },
                                 .late_calls = late_calls_};
  std::vector<std::unique_ptr<SimulatedOperator>> operators_ = {};  // also those that are dead
  std::string clean_ = {};
  bool has_chief_ = false, hangs_ = false, leader_succeeded_ = false, is_changed_ = false;
  const double faults_until_ = Uniform(10, 100);
  int depth_ = 0;
  double ended_at_ = -1;
  job::JobPhase final_phase_ = job::JobPhase::kActive;
  std::map<std::string, double> began_ = {};                          // by uid
  std::set<std::string> removed_ = {};                                // by a person
  std::set<std::string> scheduled_ = {};                              // uids
  std::map<std::string, std::pair<int64_t, std::string>> runs_ = {};  // the last one, by name
  std::map<std::string, int> failures_ = {}, disruptions_ = {};
  std::map<std::string, std::string> keys_ = {};  // Secrets' uids that pods have, by their uids
};

}  // namespace muster::launch::kubernetes
