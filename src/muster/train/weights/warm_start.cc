#include "muster/train/weights/warm_start.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/io/path_scheme.h"

namespace muster::train {
namespace {

// Names in object-based checkpoints (Keras, tf.train.Checkpoint) end with this suffix.
constexpr std::string_view kObjectSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

absl::StatusOr<std::string> GetPrefix(io::FileSystem& files, const std::string& from) {
  if (files.Stat(from + ".index").ok()) return from;
  if (from.ends_with(".index") && files.Stat(from).ok()) {
    return from.substr(0, from.size() - std::string_view(".index").size());
  }
  const std::string saved_model = io::JoinPath(from, "variables/variables");
  if (files.Stat(io::JoinPath(from, "saved_model.pb")).ok() &&
      files.Stat(saved_model + ".index").ok()) {
    return saved_model;
  }
  const auto latest = checkpoint::FindLatest(files, from);
  if (latest.ok() && !latest->broken.empty()) {
    return absl::DataLossError(
        StrCat("warm start: the newest checkpoint is broken: ", absl::StrJoin(latest->broken, "; "),
               "; to start from ", latest->prefix, ", give it instead"));
  }
  if (latest.ok()) return latest->prefix;
  if (!absl::IsNotFound(latest.status())) return latest.status();
  return absl::NotFoundError(StrCat(
      "warm start: '", from,
      "' is neither a checkpoint (PREFIX.index) nor a folder with checkpoints nor a SavedModel"));
}

// Adds to the error of a damaged checkpoint of a model folder which one is intact.
absl::Status NameIntactOne(io::FileSystem& files, const std::string& from,
                           const absl::Status& damaged) {
  const auto found = checkpoint::FindLatest(files, from, /*verify=*/true);
  if (!found.ok() || found->broken.empty()) return damaged;
  return absl::DataLossError(
      StrCat(damaged.message(), "; to start from ", found->prefix, ", give it instead"));
}

// Matches like Python's re.match: at the beginning of the name; the rest may be anything.
class NamePatterns {
 public:
  static absl::StatusOr<NamePatterns> Compile(const std::vector<std::string>& patterns) {
    NamePatterns compiled;
    for (const std::string& pattern : patterns) {
      try {
        compiled.patterns_.emplace_back(pattern, std::regex::ECMAScript);
      } catch (const std::regex_error& error) {
        return absl::InvalidArgumentError(
            StrCat("warm start: '", pattern, "' is not a regular expression: ", error.what()));
      }
    }
    return compiled;
  }
  bool Match(const std::string& name) const {
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::regex& pattern) {
      return std::regex_search(name, pattern, std::regex_constants::match_continuous);
    });
  }

 private:
  std::vector<std::regex> patterns_;
};

// Each name in `given` must be one that the patterns match.
template <typename Value>
absl::Status CheckUsed(const std::map<std::string, Value>& given, std::string_view what,
                       const std::vector<std::string>& taken) {
  for (const auto& [name, value] : given) {
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) continue;
    return absl::InvalidArgumentError(StrCat("warm start: ", what, " names '", name,
                                             "', which is not warm-started",
                                             DidYouMean(name, taken)));
  }
  return absl::OkStatus();
}

// One checkpoint to read from.
class Source {
 public:
  static absl::StatusOr<Source> Open(io::FileSystem& files, const std::string& from) {
    Source source;
    MUSTER_ASSIGN_OR_RETURN(source.prefix_, GetPrefix(files, from));
    MUSTER_ASSIGN_OR_RETURN(source.bundle_, formats::BundleReader::Open(files, source.prefix_));
    return source;
  }

  // Returns a whole tensor of floats.
  absl::StatusOr<std::vector<float>> Read(const std::string& name,
                                          std::vector<int64_t>* shape) const {
    MUSTER_ASSIGN_OR_RETURN(*shape, GetShape(name));
    std::vector<float> values(static_cast<size_t>(formats::ElementCount(*shape).value_or(0)));
    MUSTER_RETURN_IF_ERROR(ReadTo(name, values));
    return values;
  }
  // Reads the tensor into memory of its size, without another copy.
  absl::Status ReadTo(const std::string& name, std::span<float> values) const {
    MUSTER_ASSIGN_OR_RETURN(const std::string key, Find(name));
    return Annotate(
        bundle_->Read(key, {reinterpret_cast<char*>(values.data()), values.size_bytes()}),
        "warm start");
  }
  absl::StatusOr<std::vector<int64_t>> GetShape(const std::string& name) const {
    MUSTER_ASSIGN_OR_RETURN(const std::string key, Find(name));
    const formats::TensorInfo& info = bundle_->tensors().at(key);
    if (info.type == formats::DataType::kFloat) return info.shape;
    return absl::FailedPreconditionError(StrCat("warm start: '", key, "' of ", prefix_, " is ",
                                                formats::DataTypeName(info.type), ", not float32"));
  }

  // Returns the keys of a table that has grown.
  absl::StatusOr<std::vector<int64_t>> ReadKeys(const std::string& variable) const {
    MUSTER_ASSIGN_OR_RETURN(const std::string key, Find(StrCat(variable, "/keys")));
    const formats::TensorInfo& info = bundle_->tensors().at(key);
    if (info.type != formats::DataType::kInt64) {
      return absl::FailedPreconditionError(StrCat("warm start: '", key, "' of ", prefix_, " is ",
                                                  formats::DataTypeName(info.type), ", not int64"));
    }
    std::vector<int64_t> keys(info.bytes / sizeof(int64_t));
    MUSTER_RETURN_IF_ERROR(Annotate(
        bundle_->Read(key, {reinterpret_cast<char*>(keys.data()), info.bytes}), "warm start"));
    return keys;
  }

  const std::string& prefix() const { return prefix_; }

 private:
  absl::StatusOr<std::string> Find(const std::string& name) const {
    if (bundle_->tensors().contains(name)) return name;
    std::string object = StrCat(name, kObjectSuffix);
    if (bundle_->tensors().contains(object)) return object;
    std::vector<std::string> known;
    for (const auto& [key, info] : bundle_->tensors()) known.push_back(key);
    return absl::FailedPreconditionError(
        StrCat("warm start: ", prefix_, " has no '", name, "'", DidYouMean(name, known),
               "; name the variables to take with a pattern, or the name it has there"));
  }

  std::string prefix_;
  std::unique_ptr<formats::BundleReader> bundle_;
};

std::string Show(std::span<const int64_t> shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Returns for each new row its index in the old vocabulary, or -1.
std::vector<int64_t> OldPlaces(const VocabInfo& info) {
  const size_t old_count = info.old_size < 0
                               ? info.old_words.size()
                               : std::min<size_t>(info.old_words.size(), info.old_size);
  std::unordered_map<std::string_view, int64_t> places;
  for (size_t i = 0; i < old_count; ++i) {
    places.emplace(info.old_words[i], static_cast<int64_t>(i));
  }
  std::vector<int64_t> old(info.new_words.size() + info.oov_buckets, -1);
  for (size_t i = 0; i < info.new_words.size(); ++i) {
    const auto found = places.find(info.new_words[i]);
    if (found != places.end()) old[i] = found->second;
  }
  return old;
}

absl::Status Remap(const std::string& name, const VocabInfo& info, const Source& source,
                   std::span<const float> values, std::span<const int64_t> shape,
                   const engine::VariableView& view) {
  const auto refuse = [&](const std::string& why) {
    return absl::FailedPreconditionError(StrCat("warm start: '", name, "': ", why));
  };
  if (shape.size() != 2) {
    return refuse(StrCat("a vocabulary maps rows or columns of a matrix; ", source.prefix(),
                         " has ", Show(shape)));
  }
  if (info.axis != 0 && info.axis != 1) return refuse(StrCat("axis ", info.axis, " is not 0 or 1"));
  const std::vector<int64_t> old = OldPlaces(info);
  const bool rows = info.axis == 0;
  const int64_t mapped = rows ? view.rows : view.cols;
  const int64_t kept = rows ? view.cols : view.rows;
  if (static_cast<int64_t>(old.size()) != mapped || shape[rows ? 1 : 0] != kept) {
    return refuse(StrCat("is [", view.rows, ", ", view.cols, "]; the new vocabulary has ",
                         info.new_words.size(), " words and ", info.oov_buckets,
                         " further buckets, ", source.prefix(), " has ", Show(shape)));
  }
  const int64_t old_mapped = shape[rows ? 0 : 1];
  for (int64_t i = 0; i < mapped; ++i) {
    if (old[i] >= old_mapped) {
      return refuse(StrCat("the old vocabulary has more than the ", old_mapped, " words of ",
                           source.prefix()));
    }
    if (old[i] < 0 && info.keep_initial) continue;
    for (int64_t j = 0; j < kept; ++j) {
      float& to = view.data[rows ? i * view.cols + j : j * view.cols + i];
      to = old[i] < 0 ? 0 : values[rows ? old[i] * shape[1] + j : j * shape[1] + old[i]];
    }
  }
  return absl::OkStatus();
}

absl::Status StartVariable(const WarmStart& settings, const Source& source,
                           const Variables& variables, size_t variable) {
  const engine::VariableSpec& spec = variables.specs()[variable];
  const engine::VariableView& view = variables.views()[variable];
  const auto previous = settings.previous_names.find(spec.name);
  const std::string& name =
      previous == settings.previous_names.end() ? spec.name : previous->second;
  const auto vocabulary = settings.vocabularies.find(spec.name);
  std::vector<int64_t> shape;
  if (!spec.growth && vocabulary == settings.vocabularies.end()) {
    MUSTER_ASSIGN_OR_RETURN(shape, source.GetShape(name));
    if (shape == spec.shape) {
      return source.ReadTo(name, {view.data, static_cast<size_t>(spec.elements())});
    }
    return absl::FailedPreconditionError(
        StrCat("warm start: '", name, "' of ", source.prefix(), " is ", Show(shape),
               ", the model has ", Show(spec.shape), "; give its vocabularies, or leave it out"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<float> values, source.Read(name, &shape));
  if (spec.growth) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<int64_t> keys, source.ReadKeys(name));
    return Annotate(variables.StartDynamic(static_cast<int>(variable), std::move(keys), values),
                    StrCat("warm start from ", source.prefix()));
  }
  return Remap(spec.name, vocabulary->second, source, values, shape, view);
}

// The vocabulary whose words the ids of a column stand for, or null.
const features::ColumnSpec* FindVocabulary(const features::FeatureSpec& features,
                                           const std::string& name) {
  const features::ColumnSpec* column = features.Find(name);
  while (column != nullptr && (column->kind == features::ColumnKind::kWeighted ||
                               column->kind == features::ColumnKind::kIndicator)) {
    column = features.Find(column->input);
  }
  const bool found = column != nullptr && column->kind == features::ColumnKind::kVocabulary;
  return found ? column : nullptr;
}

// Returns how a column's words moved; new_words and old_words are empty if none did. nullopt for a
// column that `old` does not have.
std::optional<VocabInfo> WordsThenAndNow(const features::FeatureSpec& old,
                                         const features::FeatureSpec& spec,
                                         const std::string& column) {
  if (old.Find(column) == nullptr) return std::nullopt;
  const features::ColumnSpec* then = FindVocabulary(old, column);
  const features::ColumnSpec* now = FindVocabulary(spec, column);
  if (then == nullptr || now == nullptr) return VocabInfo();
  if (now->words == then->words && now->oov_buckets == then->oov_buckets) return VocabInfo();
  return VocabInfo{.new_words = now->words,
                   .old_words = then->words,
                   .oov_buckets = now->oov_buckets,
                   .keep_initial = true};
}

// Variable -> the categorical or indicator columns whose ids are its rows.
std::map<std::string, std::vector<std::string>> TableUsers(const model::ModelSpec& spec) {
  std::map<std::string, std::vector<std::string>> users;
  if (spec.linear) {
    for (const std::string& column : spec.linear->columns) {
      users[StrCat("linear/linear_model/", column, "/weights")].push_back(column);
    }
  }
  for (const std::string& name : spec.UsedColumns()) {
    const features::ColumnSpec* column = spec.features.Find(name);
    if (column == nullptr || column->kind != features::ColumnKind::kEmbedding) continue;
    users[model::EmbeddingVariable(*column)].push_back(column->input);
  }
  return users;
}

}  // namespace

absl::StatusOr<WarmStart> ParseWarmStart(std::string_view text) {
  WarmStart settings;
  // The colons of "hdfs://namenode:8020/" separate nothing.
  const size_t colon = text.find(':', io::PathRootSize(text));
  settings.from = text.substr(0, colon);
  if (settings.from.empty()) {
    return absl::InvalidArgumentError(
        StrCat("warm start '", text, "': names no checkpoint; write PATH or PATH:PATTERN"));
  }
  if (colon != std::string_view::npos) settings.patterns = {std::string(text.substr(colon + 1))};
  return settings;
}

absl::StatusOr<int> ApplyWarmStart(io::FileSystem& files, const WarmStart& settings,
                                   const Variables& variables) {
  if (settings.from.empty()) return absl::InvalidArgumentError("warm start: names no checkpoint");
  MUSTER_ASSIGN_OR_RETURN(const NamePatterns patterns, NamePatterns::Compile(settings.patterns));
  std::vector<std::string> taken;
  for (const engine::VariableSpec& spec : variables.specs()) {
    if (patterns.Match(spec.name)) taken.push_back(spec.name);
  }
  if (taken.empty() && !settings.patterns.empty() && !variables.specs().empty()) {
    std::vector<std::string> known;
    for (const engine::VariableSpec& spec : variables.specs()) known.push_back(spec.name);
    return absl::InvalidArgumentError(StrCat("warm start: no variable of the model matches ",
                                             absl::StrJoin(settings.patterns, ", "),
                                             "; the model has ", absl::StrJoin(known, ", ")));
  }
  MUSTER_RETURN_IF_ERROR(CheckUsed(settings.previous_names, "previous_names", taken));
  MUSTER_RETURN_IF_ERROR(CheckUsed(settings.vocabularies, "vocabularies", taken));
  MUSTER_ASSIGN_OR_RETURN(const Source source, Source::Open(files, settings.from));
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    if (!patterns.Match(variables.specs()[i].name)) continue;
    const absl::Status started = StartVariable(settings, source, variables, i);
    if (absl::IsDataLoss(started)) return NameIntactOne(files, settings.from, started);
    MUSTER_RETURN_IF_ERROR(started);
  }
  return static_cast<int>(taken.size());
}

absl::StatusOr<std::map<std::string, VocabInfo>> ChangedVocabularies(io::FileSystem& files,
                                                                     const WarmStart& settings,
                                                                     const model::ModelSpec& spec) {
  std::map<std::string, VocabInfo> changed;
  const std::string path = io::JoinPath(settings.from, "model.yaml");
  if (!files.Stat(path).ok()) return changed;
  MUSTER_ASSIGN_OR_RETURN(const NamePatterns patterns, NamePatterns::Compile(settings.patterns));
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec old, model::LoadModelSpec(files, path));
  for (const auto& [variable, columns] : TableUsers(spec)) {
    if (!patterns.Match(variable)) continue;
    std::optional<VocabInfo> found;
    for (const std::string& column : columns) {
      const auto info = WordsThenAndNow(old.features, spec.features, column);
      if (info && found && *info != *found) {
        return absl::FailedPreconditionError(StrCat(
            "warm start: the columns of the table '", variable, "' (", absl::StrJoin(columns, ", "),
            ") share it, and their vocabularies changed in ",
            "different ways; give them the same words, or leave the table out by a pattern"));
      }
      if (info) found = info;
    }
    if (found && *found != VocabInfo()) changed[variable] = *found;
  }
  return changed;
}

}  // namespace muster::train
