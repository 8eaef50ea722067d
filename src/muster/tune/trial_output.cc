#include "muster/tune/trial_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/process/descriptor.h"

namespace muster::tune {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;
constexpr size_t kShownBytes = 200;  // of a last line

// The line with null in place of the numbers that are not finite, which JSON does not have, as
// Python's json.dumps writes them.
std::string WriteNotFiniteAsNull(std::string_view line) {
  std::string text;
  bool is_quoted = false;
  while (!line.empty()) {
    size_t count = 1;
    std::string_view written = line.substr(0, 1);
    if (is_quoted && line.front() == '\\') {
      count = std::min<size_t>(2, line.size());
      written = line.substr(0, count);
    } else if (line.front() == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (!line.starts_with(word)) continue;
        count = word.size();
        written = "null";
      }
    }
    text += written;
    line.remove_prefix(count);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> OutputReader::Add(std::string_view bytes) {
  std::string why;
  line_ += bytes;
  for (size_t end = line_.find('\n'); why.empty() && end != line_.npos; end = line_.find('\n')) {
    MUSTER_ASSIGN_OR_RETURN(why, AddLine(std::string_view(line_).substr(0, end)));
    line_.erase(0, end + 1);
  }
  if (line_.size() > kLongestLine) line_.clear();
  return why;
}

absl::Status OutputReader::Finish() { return AddLine(std::exchange(line_, "")).status(); }

absl::Status OutputReader::DescribeNoValue(const std::string& log) const {
  return absl::InvalidArgumentError(StrCat("no line of its output is JSON with \"", metric_,
                                           "\": its last line is '", last_line_,
                                           "'; its output is in ", log));
}

absl::StatusOr<std::string> OutputReader::AddLine(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == line.npos) return "";
  last_line_ = line.substr(0, kShownBytes);
  if (line.front() != '{') return "";
  const auto json = formats::ParseJsonObject(WriteNotFiniteAsNull(line), "a trial's line");
  if (!json.ok()) return "";
  const auto value = json->find(metric_);
  if (value == json->end() || !(value->is_number() || value->is_null())) return "";
  ++reports_;
  last_ = {.resource = FindInt(*json, {"epoch", "step", "global_step"}, reports_),
           .value = value->is_number() ? value->get<double>() : std::nan(""),
           .records = CountRecords(*json),
           .step = FindInt(*json, {"step", "global_step"}, 0)};
  return report_(last_);
}

uint64_t OutputReader::CountRecords(const Json& json) const {
  if (const int64_t all = FindInt(json, {"trained_records"}, -1); all >= 0) {
    const auto before = static_cast<uint64_t>(trial_.origin.records);
    return static_cast<uint64_t>(all) - std::min(static_cast<uint64_t>(all), before);
  }
  return static_cast<uint64_t>(FindInt(json, {"records", "examples"}, 0));
}

// The first of these members that is a number.
int64_t OutputReader::FindInt(const Json& json, std::initializer_list<const char*> names,
                              int64_t fallback) {
  for (const char* const name : names) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) continue;
    const auto value = found->get<double>();
    if (value >= 0 && value < 9e15) return static_cast<int64_t>(value);
  }
  return fallback;
}

std::string ReadLastLine(const std::string& log) {
  constexpr off_t kTail = 4096;
  const process::Descriptor file(open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return "";
  const off_t size = lseek(file.get(), 0, SEEK_END);
  char buffer[kTail];
  const ssize_t count = pread(file.get(), buffer, sizeof buffer, size > kTail ? size - kTail : 0);
  std::string_view text(buffer, count > 0 ? static_cast<size_t>(count) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty()) return "";
  return StrCat(": ", text.substr(text.rfind('\n') + 1));
}

}  // namespace muster::tune
