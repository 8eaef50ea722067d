#include "muster/train/allreduce/segment_turns.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/strings.h"
#include "muster/collective/collectives.h"
#include "muster/train/input/told_segments.h"

namespace muster::train {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{16} << 20;

}  // namespace

absl::StatusOr<bool> TellSegment(collective::Group& group, bool is_chief, int64_t number,
                                 Session& session) {
  ToldSegments& segments = *session.data.segments;
  std::vector<std::vector<std::byte>> texts(static_cast<size_t>(group.size()));
  if (is_chief) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, segments.Ask(session.files, number));
    const auto bytes = std::as_bytes(std::span(text));
    texts[static_cast<size_t>(group.rank())].assign(bytes.begin(), bytes.end());
  }
  MUSTER_RETURN_IF_ERROR(collective::AllGather(group, kMostTextBytes, &texts));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    const std::string_view text(reinterpret_cast<const char*>(texts[i].data()), texts[i].size());
    if (segments.Tell(text).ok() && segments.number() == number) return true;
    return group.Accuse(static_cast<int>(i),
                        StrCat("tells what is not segment ", number, " of the data"));
  }
  return false;
}

absl::Status TellPresentSegment(collective::Group& group, bool is_chief, Session& session) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t present, FindPresentSegment(session.data.positions));
  session.data.segments->Forget();
  if (present < 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool has_begun, TellSegment(group, is_chief, present, session));
  return has_begun ? absl::OkStatus() : NoSuchSegment(present);
}

}  // namespace muster::train
