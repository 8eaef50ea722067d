// The body of a watch: one JSON object a line, which arrive in pieces of any size.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/status.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

struct KubeEvent;

class WatchLines {
 public:
  // `what` is for messages.
  WatchLines(std::string what, std::function<void(KubeEvent event)> take)
      : what_(std::move(what)), take_(std::move(take)) {}

  // OUT_OF_RANGE for an event that says that the version is too old, UNAVAILABLE for another ERROR
  // event; RESOURCE_EXHAUSTED for a line that is longer than any object; INVALID_ARGUMENT for one
  // that is no event.
  absl::Status Put(std::string_view bytes);

 private:
  absl::Status TakeLine(std::string_view line);

  const std::string what_;
  const std::function<void(KubeEvent event)> take_;
  std::string rest_ = {};  // the beginning of a line
};

}  // namespace muster::launch::kubernetes
