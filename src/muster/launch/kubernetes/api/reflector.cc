#include "muster/launch/kubernetes/api/reflector.h"

#include <algorithm>

namespace muster::launch::kubernetes {
namespace {

constexpr double kFirstRetry = 0.1, kLongestRetry = 10;  // seconds after an error

}  // namespace

void Reflector::Run() {
  double pause = kFirstRetry;
  do {
    progressed_ = false;
    absl::Status status = version_.empty() ? List() : absl::OkStatus();
    if (status.ok()) status = Watch();
    if (absl::IsOutOfRange(status)) version_.clear();
    SetProblem(status);
    // Whatever ended a watch, the next one may begin at once if this one was of use.
    const bool may_go_on = status.ok() || progressed_;
    pause = may_go_on ? kFirstRetry : std::min(2 * pause, kLongestRetry);
  } while (client_.Wait(pause));
}

absl::Status Reflector::List() {
  ++lists_;
  const auto version = client_.List(
      target_, selector_, [this] { sink_.BeginList(); },
      [this](Json object) { sink_.Set(std::move(object)); });
  MUSTER_RETURN_IF_ERROR(version.status());
  sink_.EndList(ParseVersion(*version));
  version_ = *version;
  synced_ = true;
  SetProblem(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status Reflector::Watch() {
  const auto is_known = [this](int64_t version) { return sink_.IsKnown(version); };
  const auto take = [this](KubeEvent event) {
    version_ = GetText(Child(event.object, "metadata"), "resourceVersion");
    progressed_ = true;
    if (event.kind == KubeEvent::Kind::kDeleted) {
      sink_.Remove(event.object);
    } else if (event.kind != KubeEvent::Kind::kBookmark) {
      sink_.Set(std::move(event.object));
    }
  };
  // A server that has seen no change since it started is silent, and is asked again.
  return client_.Watch(target_, selector_, version_, take, is_known,
                       [this] { SetProblem(absl::OkStatus()); });
}

void Reflector::SetProblem(const absl::Status& status) {
  const MutexLock lock(&mutex_);
  problem_ = status.ok() ? "" : ToStd(status.message());
}

std::string Reflector::problem() const {
  const MutexLock lock(&mutex_);
  return problem_;
}

}  // namespace muster::launch::kubernetes
