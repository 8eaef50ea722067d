#include "muster/train/input/record_counts.h"

#include <charconv>

namespace muster::train {
namespace {

bool ConsumeNamed(std::string_view name, std::string_view* text, int64_t* value) {
  if (!text->starts_with(name)) return false;
  text->remove_prefix(name.size());
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc() || *value < 0) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return true;
}

}  // namespace

void Count(int64_t rows, bool finite, int64_t dropped, std::optional<RecordCounts>* counts) {
  if (!counts->has_value()) return;
  RecordCounts& all = **counts;
  (finite ? all.trained : all.dropped) += rows;
  all.dropped += dropped;
}

std::string Print(const RecordCounts& counts) {
  return StrCat("trained=", counts.trained, " dropped=", counts.dropped,
                " repeated=", counts.repeated);
}

absl::StatusOr<RecordCounts> ParseRecordCounts(std::string_view text) {
  RecordCounts counts;
  std::string_view rest = text;
  const bool sound = ConsumeNamed("trained=", &rest, &counts.trained) &&
                     ConsumeNamed(" dropped=", &rest, &counts.dropped) &&
                     ConsumeNamed(" repeated=", &rest, &counts.repeated) && rest.empty();
  if (sound) return counts;
  return absl::DataLossError(StrCat("'", text, "' is not a count of records"));
}

}  // namespace muster::train
