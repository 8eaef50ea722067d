#include "muster/score/importance.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "muster/base/random.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/reader.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/formats/data_format.h"

namespace muster::score {
namespace {

using formats::Column;
using formats::Columns;
using formats::Field;
using formats::ValueType;

// Appends the values of row `row` of `from` to `to`. String values are not copied.
void AppendValues(const Field& field, const Column& from, size_t row, Column* to) {
  const size_t begin = field.list ? from.offsets[row] : row;
  const size_t end = field.list ? from.offsets[row + 1] : row + 1;
  const auto append = [&](const auto& source, auto* values) {
    values->insert(values->end(), source.begin() + static_cast<ptrdiff_t>(begin),
                   source.begin() + static_cast<ptrdiff_t>(end));
  };
  switch (field.type) {
    case ValueType::kInt:
      append(from.ints, &to->ints);
      break;
    case ValueType::kFloat:
      append(from.floats, &to->floats);
      break;
    case ValueType::kString:
      append(from.strings, &to->strings);
      break;
  }
  if (field.mark_missing) to->missing.push_back(from.missing[row]);
}

// Holds in memory all rows of the data that fit the model.
class AllRows {
 public:
  AllRows(const model::Model& model, model::RowTransform rows)
      : head_(model.spec.head),
        is_exported_(model.spec.exported != nullptr),
        rows_(std::move(rows)),
        all_(rows_.used.schema) {}

  absl::Status Read(data::BatchReader& reader, uint64_t max_rows) {
    Columns batch(schema());
    while (max_rows == 0 || std::cmp_less(all_.rows(), max_rows)) {
      MUSTER_ASSIGN_OR_RETURN(const bool more, reader.Next(&batch));
      if (!more) break;
      MUSTER_RETURN_IF_ERROR(LeaveOutBad(reader, &batch));
      bad_records_ = reader.bad_rows();
      for (size_t row = 0; std::cmp_less(row, batch.rows()); ++row) {
        if (max_rows > 0 && std::cmp_equal(all_.rows(), max_rows)) break;
        Add(batch, row);
      }
    }
    if (all_.rows() > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        bad_records_ == 0
            ? "explain: the data has no rows"
            : StrCat("explain: none of the data's ", bad_records_,
                     " rows can be read; without --max-bad-records the error says why"));
  }

  size_t count() const { return static_cast<size_t>(all_.rows()); }
  uint64_t bad_records() const { return bad_records_; }
  const formats::Schema& schema() const { return rows_.used.schema; }

  // Makes a batch of rows [begin, end). Field `exchanged` (-1: none) has the values of the rows
  // `order`.
  absl::Status MakeBatch(size_t begin, size_t end, int exchanged, std::span<const uint32_t> order,
                         features::FeatureBatch* batch) {
    chosen_.emplace(schema());
    for (size_t row = begin; row < end; ++row) {
      for (int i = 0; std::cmp_less(i, schema().fields.size()); ++i) {
        AppendValues(schema().fields[static_cast<size_t>(i)], all_.column(i),
                     i == exchanged ? order[row] : row, &chosen_->mutable_column(i));
      }
      chosen_->AddRow();
    }
    return rows_.transform->Apply(*chosen_, /*with_labels=*/true, batch, nullptr);
  }

 private:
  absl::Status LeaveOutBad(data::BatchReader& reader, Columns* batch) {
    while (true) {
      int bad_row = -1;
      absl::Status status =
          rows_.transform->Apply(*batch, /*with_labels=*/true, &checked_, &bad_row);
      std::string why;
      if (status.ok() && !is_exported_) {
        bad_row = engine::FindBadLabel(head_, checked_.labels, &why);
        if (bad_row >= 0) status = absl::InvalidArgumentError(StrCat("label: ", why));
      }
      if (status.ok() || bad_row < 0) return status;
      MUSTER_RETURN_IF_ERROR(reader.RejectRow(bad_row, status, batch));
      MUSTER_ASSIGN_OR_RETURN(const bool is_batch, reader.Refill(batch));
      if (!is_batch) return absl::OkStatus();
    }
  }

  void Add(const Columns& batch, size_t row) {
    for (int i = 0; std::cmp_less(i, schema().fields.size()); ++i) {
      std::vector<std::string_view>& strings = all_.mutable_column(i).strings;
      const size_t before = strings.size();
      AppendValues(schema().fields[static_cast<size_t>(i)], batch.column(i), row,
                   &all_.mutable_column(i));
      for (size_t s = before; s < strings.size(); ++s) strings[s] = all_.Store(strings[s]);
    }
    all_.AddRow();
  }

  const engine::HeadSpec head_;
  const bool is_exported_;
  const model::RowTransform rows_;
  Columns all_;
  std::optional<Columns> chosen_;
  features::FeatureBatch checked_;
  uint64_t bad_records_ = 0;
};

absl::StatusOr<std::unique_ptr<data::BatchReader>> OpenData(io::FileSystem& files,
                                                            const model::Model& model,
                                                            const train::InputSpec& input,
                                                            const formats::Schema& schema) {
  data::SourceSpec source_spec = input.source;
  source_spec.format = formats::NameColumns(source_spec.format, model.spec.features.schema);
  if (data::IsBatchStream(source_spec)) {
    return data::OpenBatchStream(files, source_spec, schema, input.reader);
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> source,
                          data::OpenSource(files, source_spec, input.reader.max_bad_records));
  return data::BatchReader::Create(std::move(source), schema, input.reader);
}

struct Goal {
  std::string metric;
  bool lower_is_better = false;
};

// False for metrics that describe the data or the run, and not how good predictions are.
bool IsQuality(std::string_view metric) {
  return metric != "accuracy_baseline" && metric != "calibration" && metric != "gauc/groups" &&
         metric != "gauc/groups_left_out" && !metric.starts_with("calibration/bucket_") &&
         !metric.starts_with("probability_mean/") && !metric.ends_with("/mean");
}

absl::StatusOr<Goal> ParseGoal(const std::string& text, const model::ModelSpec& model) {
  Goal goal = {.metric = text.empty() ? DefaultMetric(model) : text};
  goal.lower_is_better =
      absl::StrContains(goal.metric, "loss") || absl::StrContains(goal.metric, "error");
  for (const std::string_view word : {":lower", ":higher"}) {
    if (!goal.metric.ends_with(word)) continue;
    goal.metric.resize(goal.metric.size() - word.size());
    goal.lower_is_better = word == ":lower";
  }
  if (IsQuality(goal.metric)) return goal;
  return absl::InvalidArgumentError(
      StrCat("--metric ", goal.metric, " does not say how good predictions are; give one such as ",
             DefaultMetric(model)));
}

class Explanation {
 public:
  Explanation(Scorer& scorer, const ImportanceSpec& spec, AllRows& rows, Goal goal,
              const std::function<void(uint64_t, uint64_t)>& progress, uint64_t all)
      : scorer_(scorer),
        spec_(spec),
        rows_(rows),
        goal_(std::move(goal)),
        progress_(progress),
        all_(all) {}

  // Computes the metric where field `exchanged` (-1: none) has the values of the rows `order`.
  absl::StatusOr<double> Score(int exchanged, std::span<const uint32_t> order) {
    MUSTER_ASSIGN_OR_RETURN(const auto metrics, model::NewMetrics(scorer_.model(), spec_.metrics));
    const auto size = static_cast<size_t>(spec_.input.reader.batch_size);
    for (size_t begin = 0; begin < rows_.count(); begin += size) {
      const size_t end = std::min(begin + size, rows_.count());
      MUSTER_RETURN_IF_ERROR(rows_.MakeBatch(begin, end, exchanged, order, &batch_));
      MUSTER_RETURN_IF_ERROR(scorer_.Score(batch_, &scores_));
      metrics->Add(scores_.forward, batch_);
      done_ += end - begin;
      if (progress_) progress_(done_, all_);
    }
    MUSTER_RETURN_IF_ERROR(metrics->Finish());
    return Find(metrics->Values());
  }

  // Returns by how much `after` is worse than `before`.
  double GetLoss(double before, double after) const {
    return goal_.lower_is_better ? after - before : before - after;
  }

 private:
  absl::StatusOr<double> Find(const std::vector<metrics::NamedValue>& values) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) {
      if (name == goal_.metric && std::isfinite(value)) return value;
      if (name == goal_.metric) {
        return absl::InvalidArgumentError(StrCat(
            "--metric ", name, " is not a number for this data (an auc needs both classes)"));
      }
      if (IsQuality(name)) names.push_back(name);
    }
    return absl::InvalidArgumentError(
        StrCat("--metric ", goal_.metric, ": the model has ", absl::StrJoin(names, ", ")));
  }

  Scorer& scorer_;
  const ImportanceSpec& spec_;
  AllRows& rows_;
  const Goal goal_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  const uint64_t all_;
  uint64_t done_ = 0;
  features::FeatureBatch batch_;
  Scores scores_;
};

// The shuffle of Fisher and Yates.
void Shuffle(RandomStream random, std::vector<uint32_t>* order) {
  std::iota(order->begin(), order->end(), 0U);
  for (size_t i = order->size(); i > 1; --i) std::swap((*order)[i - 1], (*order)[random.Below(i)]);
}

void Summarize(InputImportance* input) {
  const auto count = static_cast<double>(input->losses.size());
  input->mean = std::accumulate(input->losses.begin(), input->losses.end(), 0.0) / count;
  double squares = 0;
  for (const double loss : input->losses) squares += (loss - input->mean) * (loss - input->mean);
  input->deviation = std::sqrt(squares / count);
}

}  // namespace

std::string DefaultMetric(const model::ModelSpec& model) {
  if (model.exported) return "loss";
  if (model.head.kind == "multi_class") return "accuracy";
  return model.head.kind == "regression" ? "mean_squared_error" : "auc";
}

absl::StatusOr<Importance> MeasureImportance(
    io::FileSystem& files, Scorer& scorer, const ImportanceSpec& spec,
    const std::function<void(uint64_t done, uint64_t all)>& progress) {
  const model::Model& model = scorer.model();
  MUSTER_ASSIGN_OR_RETURN(Goal goal, ParseGoal(spec.metric, model.spec));
  // The inputs are all fields but label and weight.
  MUSTER_ASSIGN_OR_RETURN(const model::RowTransform inputs,
                          model::NewRowTransform(model, /*with_labels=*/false, /*with_key=*/false));
  MUSTER_ASSIGN_OR_RETURN(model::RowTransform transform,
                          model::NewRowTransform(model, /*with_labels=*/true, /*with_key=*/false));
  transform.used.schema =
      formats::WithMissing(std::move(transform.used.schema), spec.input.source.format);
  AllRows rows(model, std::move(transform));
  MUSTER_ASSIGN_OR_RETURN(const auto reader, OpenData(files, model, spec.input, rows.schema()));
  MUSTER_RETURN_IF_ERROR(rows.Read(*reader, spec.max_rows));

  Importance found = {.metric = goal.metric,
                      .lower_is_better = goal.lower_is_better,
                      .rows = rows.count(),
                      .bad_records = rows.bad_records()};
  const auto repeats = static_cast<uint64_t>(spec.repeats);
  const uint64_t all = rows.count() * (1 + inputs.used.schema.fields.size() * repeats);
  Explanation explanation(scorer, spec, rows, std::move(goal), progress, all);
  MUSTER_ASSIGN_OR_RETURN(found.value, explanation.Score(-1, {}));
  std::vector<uint32_t> order(rows.count());
  for (size_t i = 0; i < inputs.used.schema.fields.size(); ++i) {
    InputImportance& input = found.inputs.emplace_back();
    input.input = inputs.used.schema.fields[i].name;
    const int field = rows.schema().Find(input.input);
    for (int repeat = 0; repeat < spec.repeats; ++repeat) {
      Shuffle(
          RandomStream(spec.seed, RandomPurpose::kPermuteRows, i, static_cast<uint32_t>(repeat)),
          &order);
      MUSTER_ASSIGN_OR_RETURN(const double value, explanation.Score(field, order));
      input.losses.push_back(explanation.GetLoss(found.value, value));
    }
    Summarize(&input);
  }
  std::ranges::stable_sort(found.inputs, std::ranges::greater(), &InputImportance::mean);
  return found;
}

}  // namespace muster::score
