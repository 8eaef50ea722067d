// An operator of simulated_cluster.h: the JobController and JobCache of `muster operator`, with
// calls and watches that fail, are late or are repeated. For tests of this layer only.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/simulated_time.h"
#include "muster/launch/kubernetes/job_controller.h"
#include "muster/launch/kubernetes/simulated_api_server.h"

namespace muster::launch::kubernetes {

constexpr char kSimulatedKey[] = "team/j";

// Faults planted around the controller, to see that the invariants catch them.
struct Tampering {
  std::function<void(std::string* target, Json*)> create = {};  // before it is sent
  std::function<void(SimulatedApiServer&, Json*)> replace = {};
  std::function<void(SimulatedApiServer&, const std::string& target, std::string* uid)> remove = {};
  std::function<void(absl::StatusOr<Json>*)> get = {};  // before it is read
  std::function<bool(const std::string& plural, bool deleted, Json*)> event = {};  // false: lost
  std::function<void(int64_t*)> list_version = {};
  std::function<void(double*)> wake_after = {};
};

// What the world around an operator does in its calls.
struct SimulatedWorld {
  SimulatedTime& time;
  SimulatedApiServer& server;
  const Tampering& tampering;
  std::function<bool()> is_faulty = {};           // whether anything may go wrong now
  std::function<void(double seconds)> pass = {};  // lets the time pass, and all others act
  int& late_calls;                                // that will be done when nobody waits for them
};

class SimulatedOperator : KubeCalls, Clock {
 public:
  SimulatedOperator(const SimulatedWorld& world, int number)
      : world_(world),
        cache_([this](const std::string&) { Wake(kTurnPause); }),
        controller_({.client = *this,
                     .cache = cache_,
                     .clock = *this,
                     .metrics = metrics_,
                     .clock_id = StrCat("machine ", number),
                     .leads = [] { return true; }}) {
    for (Watch& watch : watches_) BeginList(&watch);
    Wake(3);
  }

  int passes() const { return passes_; }
  // Its calls have no effect any more.
  void Kill() { alive_->alive = false; }
  // Whether it is in the middle of a pass.
  bool is_busy() const { return busy_; }
  // Whether it has been killed and its last pass has ended.
  bool is_gone() const { return !alive_->alive && !busy_; }

  // SIGSTOP, and SIGCONT after this time; a pass that runs is stopped at its next call.
  void Stop(double seconds) { alive_->asleep_until = world_.time.now() + seconds; }

  // Something of that kind has changed: its watch brings it, after a delay of its own.
  void Notify(const std::string& plural) {
    for (Watch& watch : watches_) {
      if (watch.plural != plural || watch.is_notified || !alive_->alive) continue;
      watch.is_notified = true;
      world_.time.After(world_.time.Delay(), alive_, [this, &watch] { Deliver(&watch); });
    }
  }

 private:
  static constexpr double kTurnPause = 0.05;
  struct Watch {
    std::string plural = {};
    ObjectSink& sink;
    size_t seen = 0;  // changes of the server's log
    bool is_notified = false, is_listing = false;
  };

  // The controller's next pass, after so many seconds at the latest.
  void Wake(double seconds) {
    const double at = world_.time.now() + seconds;
    if (at >= due_) return;
    due_ = at;
    world_.time.At(at, alive_, [this, at] {
      if (at == due_) Pass();
    });
  }

  void Pass() {
    due_ = kNever;
    if (!is_synced_) return Wake(0.5);
    if (busy_) {  // one pass at a time
      again_ = true;
      return;
    }
    busy_ = true;
    auto wake = controller_.Run(kSimulatedKey);
    busy_ = false;
    ++passes_;
    if (std::exchange(again_, false)) Wake(kTurnPause);
    if (wake.ok() && world_.tampering.wake_after) world_.tampering.wake_after(&*wake);
    if (!wake.ok()) {
      Wake(1);
    } else if (*wake < kNever) {
      Wake(std::max(kTurnPause, *wake));
    }
  }

  // One kind's watch brings what has changed, or the kind is listed again.
  void Deliver(Watch* watch) {
    watch->is_notified = false;
    if (watch->is_listing) return;
    SimulatedTime& time = world_.time;
    if (world_.is_faulty() && time.Chance(0.03)) return BeginList(watch);  // 410, or it was cut off
    const auto& log = world_.server.log(watch->plural);
    size_t end = log.size();
    if (world_.is_faulty() && time.Chance(0.1)) {  // a new watch begins at an older version
      watch->seen -= std::min<size_t>(watch->seen, time.Below(6));
    }
    if (world_.is_faulty() && time.Chance(0.2)) end = std::min(end, watch->seen + time.Below(4));
    for (; watch->seen < end; ++watch->seen) Take(*watch, log[watch->seen]);
    if (watch->seen < log.size()) Notify(watch->plural);
  }

  void Take(const Watch& watch, const SimulatedApiServer::Change& change) {
    Json object = *change.object;
    if (world_.tampering.event && !world_.tampering.event(watch.plural, change.deleted, &object)) {
      return;
    }
    if (change.deleted) {
      watch.sink.Remove(object);
    } else {
      watch.sink.Set(std::move(object));
    }
  }

  // The list's answer is under way while the operator's own calls tell it what is newer.
  void BeginList(Watch* watch) {
    watch->is_listing = true;
    const auto objects = world_.server.objects(watch->plural);
    int64_t version = world_.server.version();
    if (world_.tampering.list_version) world_.tampering.list_version(&version);
    world_.time.After(world_.time.Delay(), alive_, [watch, objects, version] {
      watch->sink.BeginList();
      for (const auto& [name, object] : objects) watch->sink.Set(*object);
      watch->sink.EndList(version);
    });
    watch->seen = world_.server.log(watch->plural).size();
    world_.time.After(2.5, alive_, [this, watch] {
      watch->is_listing = false;
      is_synced_ = is_synced_ || watch->plural == kServices.plural;
      Notify(watch->plural);
    });
  }

  // One call: it may be lost, its answer may be lost, it may be done when nobody waits for it any
  // more, and the operator may be stopped or killed before and after it.
  template <typename Result>
  Result Call(const std::function<Result()>& call) {
    if (!Continue()) return absl::CancelledError("the operator was killed");
    SimulatedTime& time = world_.time;
    if (world_.is_faulty() && time.Chance(0.02)) return absl::UnavailableError("lost");
    if (world_.is_faulty() && time.Chance(0.02)) {
      ++world_.late_calls;
      time.After(time.Uniform(0, 30), [call, &late_calls = world_.late_calls] {
        --late_calls;
        (void)call();
      });
      return absl::UnavailableError("a timeout");
    }
    Result result = call();
    if (!Continue()) return absl::CancelledError("the operator was killed");
    if (world_.is_faulty() && time.Chance(0.02)) return absl::UnavailableError("no answer");
    return result;
  }

  // Lets the others act, mostly for no time; false if the operator does not live any more.
  bool Continue() {
    SimulatedTime& time = world_.time;
    double pause = time.Chance(0.1) ? time.Delay() : 0;
    if (world_.is_faulty() && time.Chance(0.03)) pause = time.Uniform(1, 60);
    pause = std::max(pause, alive_->asleep_until - time.now());
    if (pause > 0) world_.pass(pause);
    return alive_->alive;
  }

  absl::StatusOr<Json> Get(const std::string& target) override {
    return Call<absl::StatusOr<Json>>([&world = world_, target] {
      auto found = world.server.Get(target);
      if (world.tampering.get) world.tampering.get(&found);
      return found;
    });
  }
  absl::StatusOr<Json> Create(const std::string& target, const Json& object,
                              std::vector<std::string>* /*warnings*/) override {
    if (target.ends_with(kEvents.plural)) return object;
    return Call<absl::StatusOr<Json>>(
        [&world = world_, target = std::string(target), object = Json(object)]() mutable {
          if (world.tampering.create) world.tampering.create(&target, &object);
          return world.server.Create(target, object);
        });
  }
  absl::StatusOr<Json> Replace(const std::string& target, const Json& object) override {
    return Call<absl::StatusOr<Json>>([&world = world_, target, object = Json(object)]() mutable {
      if (world.tampering.replace) world.tampering.replace(world.server, &object);
      return world.server.Replace(target, object);
    });
  }
  absl::StatusOr<Json> MergePatch(const std::string& target, const Json& /*patch*/) override {
    return Get(target);  // of v1alpha1's jobs only
  }
  absl::StatusOr<Json> StrategicPatch(const std::string& target, const Json& patch) override {
    return Call<absl::StatusOr<Json>>(
        [&world = world_, target, patch] { return world.server.Admit(target, patch); });
  }
  absl::Status Delete(const std::string& target, const std::string& uid,
                      int64_t /*grace_seconds*/) override {
    return Call<absl::Status>([&world = world_, target, uid = std::string(uid)]() mutable {
      if (world.tampering.remove) world.tampering.remove(world.server, target, &uid);
      return world.server.Delete(target, uid);
    });
  }

  double WallSeconds() const override { return 1.7e9 + world_.time.now(); }
  int64_t MonotonicNanos() const override { return static_cast<int64_t>(world_.time.now() * 1e9); }

  static constexpr double kNever = 1e12;

  const SimulatedWorld& world_;
  const std::shared_ptr<Sleeper> alive_ = std::make_shared<Sleeper>();
  bool busy_ = false, again_ = false, is_synced_ = false;
  int passes_ = 0;
  double due_ = kNever;
  JobMetrics metrics_;
  JobCache cache_;
  std::vector<Watch> watches_ = {{.plural = "tfjobs", .sink = cache_.jobs()},
                                 {.plural = "pods", .sink = cache_.pods_sink()},
                                 {.plural = "services", .sink = cache_.services()}};
  JobController controller_;
};

}  // namespace muster::launch::kubernetes
