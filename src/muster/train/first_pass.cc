#include "muster/train/first_pass.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/reader.h"
#include "muster/features/measure.h"
#include "muster/formats/data_format.h"

namespace muster::train {
namespace {

constexpr int kBatchRows = 4096;

// Adds the next batch, without rows that do not fit the columns. Returns false at the end.
absl::StatusOr<bool> AddBatch(data::BatchReader& reader, features::Measure& measure,
                              formats::Columns* rows) {
  MUSTER_ASSIGN_OR_RETURN(const bool more, reader.Next(rows));
  if (!more) return false;
  while (true) {
    int bad_row = -1;
    const absl::Status status = measure.Add(*rows, &bad_row);
    if (status.ok()) return true;
    if (bad_row < 0) return status;
    MUSTER_RETURN_IF_ERROR(reader.RejectRow(bad_row, status, rows));
    MUSTER_ASSIGN_OR_RETURN(const bool is_batch, reader.Refill(rows));
    if (!is_batch) return true;
  }
}

}  // namespace

absl::Status MeasureColumns(io::FileSystem& files, const InputSpec& input, Progress& progress,
                            const std::atomic<bool>& stop, model::ModelSpec* model) {
  const std::string first = features::FindUnmeasured(model->features);
  if (first.empty()) return absl::OkStatus();
  if (data::IsBatchStream(input.source)) {
    return absl::FailedPreconditionError(StrCat(
        "column '", first, "' takes numbers from the training data (normalize: auto, impute: mean ",
        "or median), which needs a first pass over files, and the training reads a stream of ",
        "batches: give files, or write the numbers (mean and stddev, impute: NUMBER)"));
  }
  data::SourceSpec source_spec = input.source;
  source_spec.shard = {};
  source_spec.note = {};
  source_spec.take_bad_record = {};
  source_spec.format = formats::NameColumns(source_spec.format, model->features.schema);
  features::FeatureSpec spec = model->features;
  spec.schema = formats::WithMissing(std::move(spec.schema), source_spec.format);
  features::Measure measure(spec);
  const uint64_t most_bad = input.reader.max_bad_records;
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> source,
                          data::OpenSource(files, source_spec, most_bad));
  const data::ReaderSpec reader_spec = {.batch_size = kBatchRows,
                                        .chunks_ahead = input.reader.chunks_ahead,
                                        .max_bad_records = most_bad};
  MUSTER_ASSIGN_OR_RETURN(const auto reader,
                          data::BatchReader::Create(source, measure.schema(), reader_spec));
  formats::Columns rows(measure.schema());
  ProgressState state = {.verb = "first pass", .epochs = 0};
  for (bool more = true; more;) {
    if (stop) return absl::CancelledError("stopped in the first pass over the data");
    MUSTER_ASSIGN_OR_RETURN(more, AddBatch(*reader, measure, &rows));
    if (!more) break;
    state.examples += static_cast<uint64_t>(rows.rows());
    ++state.step;
    progress.Update(state);
  }
  const std::vector<std::string> empty = measure.Apply(&model->features);
  progress.Note(StrCat("First pass over ", GroupDigits(state.examples),
                       " rows: ", "means, deviations and imputed values of numeric columns are in ",
                       "the model file of the model folder"));
  if (!empty.empty()) {
    progress.Warn(StrCat("no row has a value for ", absl::StrJoin(empty, ", "),
                         ": mean 0 and deviation 1 are used"));
  }
  return absl::OkStatus();
}

absl::Status CopyMeasured(io::FileSystem& files, const std::string& folder,
                          model::ModelSpec* model) {
  if (features::FindUnmeasured(model->features).empty() || !model::HasSavedSpec(files, folder)) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec saved, model::LoadSavedSpec(files, folder));
  features::CopyMeasured(saved.features, &model->features);
  return absl::OkStatus();
}

}  // namespace muster::train
