// The body of a watch: one JSON object a line, which arrive in pieces of any size.
#pragma once

#include <cstdint>
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
  // Whether the object of that version is known from somewhere else.
  using IsKnown = std::function<bool(int64_t version)>;
  // `what` is for messages; objects come without the members `left_out`, a list of static lifetime.
  // An added or changed object that is known comes as a bookmark of its version: most of the work
  // is to read an object.
  WatchLines(std::string what, std::function<void(KubeEvent event)> take,
             Names left_out = kManagedFields, IsKnown is_known = {})
      : what_(std::move(what)),
        take_(std::move(take)),
        left_out_(left_out),
        is_known_(std::move(is_known)) {}

  // OUT_OF_RANGE for an event that says that the version is too old, UNAVAILABLE for another ERROR
  // event; RESOURCE_EXHAUSTED for a line that is longer than any object; INVALID_ARGUMENT for one
  // that is no event.
  absl::Status Put(std::string_view bytes);

 private:
  absl::Status TakeLine(std::string_view line);

  const std::string what_;
  const std::function<void(KubeEvent event)> take_;
  const Names left_out_;
  const IsKnown is_known_;
  std::string rest_ = {};  // the beginning of a line
};

}  // namespace muster::launch::kubernetes
