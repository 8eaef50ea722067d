#include "muster/cli/train/kafka_ranges.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"

#include "muster/base/strings.h"
#include "muster/checkpoint/checkpoint_state.h"
#include "muster/data/kafka/kafka_set.h"
#include "muster/io/path_scheme.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

// By topic: its name with ranges.
using Recorded = std::map<std::string, std::string>;

constexpr char kRecord[] = "kafka.json";

absl::StatusOr<Recorded> ReadRecorded(io::FileSystem& files, const std::string& path) {
  const auto text = io::ReadFile(files, path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return Recorded();
  MUSTER_RETURN_IF_ERROR(text.status());
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  Recorded recorded;
  if (json.is_object()) {
    for (const auto& [topic, name] : json.items()) {
      if (name.is_string()) recorded[topic] = name.get<std::string>();
    }
    if (recorded.size() == json.size()) return recorded;
  }
  return absl::DataLossError(
      StrCat(path, ": does not hold the ranges of topics; remove it, and give --fresh-data"));
}

// Returns the name with the ranges of `recorded`, whose brokers may be others by now.
absl::StatusOr<std::string> WithRecorded(data::KafkaName name, const std::string& recorded) {
  MUSTER_ASSIGN_OR_RETURN(data::KafkaName before, data::ParseKafkaName(recorded));
  name.ranges = std::move(before.ranges);
  name.chunk = before.chunk;
  return data::PrintKafkaName(name);
}

// Whether --follow reads the `patterns`, which are those of --train or --eval.
bool IsFollowed(const TrainFlags& flags, const std::vector<std::string>& patterns) {
  const bool grows = &patterns == &flags.data.patterns || flags.data.held_back.share > 0;
  return flags.follow && grows;
}

// Whether a training into the folder has come to its first step. A list that cannot be read is no
// reason to leave the known records.
bool HasSteps(io::FileSystem& files, const std::string& folder) {
  const auto names = files.List(folder);
  if (!names.ok()) return !absl::IsNotFound(names.status());
  return std::ranges::any_of(*names, [](const std::string& name) {
    return checkpoint::ParseIndexStep(name).value_or(0) > 0;
  });
}

}  // namespace

void ReplaceWord(const std::string& old, const std::string& text, std::vector<std::string>* words) {
  for (std::string& word : *words) {
    if (word == old || absl::EndsWith(word, StrCat("=", old))) {
      word.replace(word.size() - old.size(), old.size(), text);
    }
  }
}

absl::Status FixTopicNames(io::FileSystem& files, const std::string& folder,
                           const KafkaFlags& kafka, bool begins,
                           const std::vector<std::string*>& names) {
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaSettings settings, ReadKafkaSettings(kafka));
  const std::string path = io::JoinPath(folder, kRecord);
  Recorded recorded;
  if (!begins) {
    MUSTER_ASSIGN_OR_RETURN(recorded, ReadRecorded(files, path));
  }
  bool changed = false;
  for (std::string* const text : names) {
    MUSTER_ASSIGN_OR_RETURN(const data::KafkaName name, data::ParseKafkaName(*text));
    if (name.is_fixed() && name.chunk > 0) continue;
    std::string& known = recorded[name.topic];
    if (name.is_fixed() || known.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const auto fixed, data::FixKafkaNames({*text}, settings));
      known = fixed.front();
      changed = true;
    }
    MUSTER_ASSIGN_OR_RETURN(*text, WithRecorded(name, known));
  }
  if (!changed) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
  return io::WriteFileAtomically(files, path, nlohmann::json(recorded).dump(1) + "\n");
}

absl::Status FixTopics(io::FileSystem& files, TrainFlags* flags,
                       std::vector<std::string>* arguments) {
  std::vector<std::string*> names;
  for (auto* const patterns : {&flags->data.patterns, &flags->eval.data.patterns}) {
    if (IsFollowed(*flags, *patterns)) continue;
    for (std::string& pattern : *patterns) {
      if (IsTopic(pattern)) names.push_back(&pattern);
    }
  }
  if (names.empty()) return absl::OkStatus();
  std::vector<std::string> before;
  for (const std::string* const name : names) before.push_back(*name);
  const std::string& folder = flags->run.model_dir;
  const bool begins = flags->fresh_data || !HasSteps(files, folder);
  MUSTER_RETURN_IF_ERROR(FixTopicNames(files, folder, flags->data.kafka, begins, names));
  for (size_t i = 0; i < names.size(); ++i) {
    if (*names[i] != before[i]) ReplaceWord(before[i], *names[i], arguments);
  }
  return absl::OkStatus();
}

absl::Status CheckTopicsAreFixed(const TrainFlags& flags) {
  for (const auto* const patterns : {&flags.data.patterns, &flags.eval.data.patterns}) {
    if (IsFollowed(flags, *patterns)) continue;
    for (const std::string& pattern : *patterns) {
      if (!IsTopic(pattern)) continue;
      MUSTER_ASSIGN_OR_RETURN(const data::KafkaName name, data::ParseKafkaName(pattern));
      if (name.is_fixed() && name.chunk > 0) continue;
      return absl::InvalidArgumentError(
          StrCat(pattern,
                 ": each task would read the records that it finds; give all tasks the "
                 "same ranges: muster records ranges ",
                 pattern, " prints them"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
