#include "muster/launch/kubernetes/api/watch_lines.h"

#include "muster/launch/kubernetes/api/kube_client.h"

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;  // an object has 1.5 MB at most

// The version of an object that was added or changed; "" for another line.
std::string_view FindVersion(std::string_view line) {
  const std::string_view type = FindMember(line, "type");
  if (type != "\"ADDED\"" && type != "\"MODIFIED\"") return {};
  const std::string_view metadata = FindMember(FindMember(line, "object"), "metadata");
  const std::string_view version = FindMember(metadata, "resourceVersion");
  return version.size() < 2 ? std::string_view() : version.substr(1, version.size() - 2);
}

}  // namespace

absl::Status WatchLines::Put(std::string_view bytes) {
  for (size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    if (rest_.empty()) {
      MUSTER_RETURN_IF_ERROR(TakeLine(bytes.substr(0, end)));
    } else {
      rest_ += bytes.substr(0, end);
      MUSTER_RETURN_IF_ERROR(TakeLine(rest_));
      rest_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  if (rest_.size() + bytes.size() > kMaxLineBytes) {
    return absl::ResourceExhaustedError(
        StrCat(what_, ": an event is longer than ", kMaxLineBytes, " bytes"));
  }
  rest_ += bytes;
  return absl::OkStatus();
}

absl::Status WatchLines::TakeLine(std::string_view line) {
  using Kind = KubeEvent::Kind;
  if (line.find_first_not_of(" \t\r") == line.npos) return absl::OkStatus();
  if (is_known_) {
    const std::string_view version = FindVersion(line);
    if (const int64_t number = ParseVersion(version); number > 0 && is_known_(number)) {
      Json bookmark;
      bookmark["metadata"]["resourceVersion"] = version;
      take_({.kind = Kind::kBookmark, .object = std::move(bookmark)});
      return absl::OkStatus();
    }
  }
  MUSTER_ASSIGN_OR_RETURN(Json event, ParseKubeObject(line, what_, left_out_));
  const std::string type = GetText(event, "type");
  const Json& object = Child(event, "object");
  if (type == "ERROR") {
    const std::string message = StrCat(what_, ": ", GetText(object, "message"));
    return GetNumber(object, "code") == 410 ? absl::OutOfRangeError(message)
                                            : absl::UnavailableError(message);
  }
  constexpr std::pair<std::string_view, Kind> kKinds[] = {{"ADDED", Kind::kAdded},
                                                          {"MODIFIED", Kind::kModified},
                                                          {"DELETED", Kind::kDeleted},
                                                          {"BOOKMARK", Kind::kBookmark}};
  for (const auto& [name, kind] : kKinds) {
    if (name != type) continue;
    take_({.kind = kind, .object = std::move(event["object"])});
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat(what_, ": an event of the unknown type '", type, "'"));
}

}  // namespace muster::launch::kubernetes
