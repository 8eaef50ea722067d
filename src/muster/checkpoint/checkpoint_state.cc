// The state file: a text protobuf of tensorflow.CheckpointState
// (tensorflow/python/training/checkpoint_state.proto).
#include "muster/checkpoint/checkpoint_state.h"

#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint {
namespace {

constexpr uint64_t kMaxStateBytes = uint64_t{1} << 20;

// Reads "name: value" pairs of a text protobuf without nested messages.
class TextFields {
 public:
  explicit TextFields(std::string_view text) : text_(text) {}

  // Returns false at the end, and also, with failed() true, at text that is not such a pair.
  bool Next(std::string* name, std::string* value) {
    SkipSpace();
    if (text_.empty()) return false;
    *name = Word();
    SkipSpace();
    failed_ = name->empty() || !Consume(':');
    if (failed_) return false;
    SkipSpace();
    if (!text_.empty() && (text_.front() == '"' || text_.front() == '\'')) {
      failed_ = !Quoted(value);
    } else {
      *value = Word();
      failed_ = value->empty();
    }
    return !failed_;
  }
  bool failed() const { return failed_; }

 private:
  void SkipSpace() {
    while (!text_.empty()) {
      const char c = text_.front();
      if (c == '#') {
        text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
      } else if (absl::ascii_isspace(c) || c == ',' || c == ';') {
        text_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  bool Consume(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string Word() {
    size_t n = 0;
    while (n < text_.size() && (absl::ascii_isalnum(text_[n]) || text_[n] == '_' ||
                                text_[n] == '.' || text_[n] == '-' || text_[n] == '+')) {
      ++n;
    }
    std::string word(text_.substr(0, n));
    text_.remove_prefix(n);
    return word;
  }

  bool Quoted(std::string* value) {
    const char quote = text_.front();
    size_t end = 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return false;
    const bool sound = absl::CUnescape(ToAbsl(text_.substr(1, end - 1)), value);
    text_.remove_prefix(end + 1);
    return sound;
  }

  std::string_view text_;
  bool failed_ = false;
};

// Returns false if `text` is no finite number.
bool AddTime(const std::string& text, std::vector<double>* times) {
  double time;
  if (!absl::SimpleAtod(text, &time) || !std::isfinite(time)) return false;
  times->push_back(time);
  return true;
}

// Returns the shortest text that reads back as this number.
std::string TimeText(double time) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, time).ptr};
}

}  // namespace

std::optional<int64_t> ParseIndexStep(std::string_view name) {
  constexpr std::string_view kBasename = "model.ckpt-";
  constexpr std::string_view kSuffix = ".index";
  if (!name.starts_with(kBasename) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kBasename.size());
  name.remove_suffix(kSuffix.size());
  int64_t step;
  if (!absl::SimpleAtoi(ToAbsl(name), &step) || step < 0) return std::nullopt;
  return step;
}

std::string StatePath(const std::string& folder) { return io::JoinPath(folder, "checkpoint"); }

absl::StatusOr<CheckpointState> ReadState(io::FileSystem& files, const std::string& folder) {
  const std::string path = StatePath(folder);
  const absl::StatusOr<std::string> text = io::ReadFile(files, path, kMaxStateBytes);
  if (absl::IsNotFound(text.status())) return CheckpointState();
  MUSTER_RETURN_IF_ERROR(text.status());
  CheckpointState state;
  TextFields fields(*text);
  std::string name, value;
  std::vector<double> preserved;
  bool sound = true;
  while (fields.Next(&name, &value)) {
    if (name == "model_checkpoint_path") state.latest = value;
    if (name == "all_model_checkpoint_paths") state.all.push_back(value);
    if (name == "all_model_checkpoint_timestamps") sound &= AddTime(value, &state.timestamps);
    if (name == "last_preserved_timestamp") sound &= AddTime(value, &preserved);
  }
  if (!preserved.empty()) state.last_preserved = preserved.back();
  if (state.timestamps.size() != state.all.size()) state.timestamps.clear();
  if (fields.failed() || !sound || state.latest.empty()) {
    return absl::DataLossError(StrCat(path, ": not a checkpoint state file (a text protobuf with ",
                                      "model_checkpoint_path)"));
  }
  return state;
}

absl::Status WriteState(io::FileSystem& files, const std::string& folder,
                        const CheckpointState& state) {
  std::string text =
      StrCat("model_checkpoint_path: \"", absl::CEscape(ToAbsl(state.latest)), "\"\n");
  for (const std::string& name : state.all) {
    text += StrCat("all_model_checkpoint_paths: \"", absl::CEscape(ToAbsl(name)), "\"\n");
  }
  for (const double time : state.timestamps) {
    text += StrCat("all_model_checkpoint_timestamps: ", TimeText(time), "\n");
  }
  if (state.last_preserved != 0) {
    text += StrCat("last_preserved_timestamp: ", TimeText(state.last_preserved), "\n");
  }
  return io::WriteFileAtomically(files, StatePath(folder), text);
}

}  // namespace muster::checkpoint
