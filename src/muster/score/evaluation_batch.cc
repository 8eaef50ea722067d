#include "muster/score/evaluation_batch.h"

#include "absl/strings/numbers.h"

#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/tensor_names.h"
#include "muster/formats/bundle.h"

namespace muster::score {
namespace {

absl::StatusOr<int> TrainedBatchSize(io::FileSystem& files, const std::string& prefix) {
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files, prefix));
  MUSTER_ASSIGN_OR_RETURN(const auto texts, bundle->ReadStrings(checkpoint::kBatchSizeName));
  int rows = 0;
  if (texts.size() == 1 && absl::SimpleAtoi(texts[0], &rows) && rows > 0) return rows;
  return absl::DataLossError(
      StrCat(prefix, ": ", checkpoint::kBatchSizeName, " is no number of rows"));
}

}  // namespace

int EvaluationBatchSize(io::FileSystem& files, const model::ModelSpec& spec,
                        const std::string& model_dir, const std::string& checkpoint) {
  if (!spec.exported || !spec.exported->evaluates_by_batch) return 0;
  const absl::StatusOr<std::string> prefix =
      checkpoint.empty() ? checkpoint::Latest(files, model_dir) : checkpoint;
  if (!prefix.ok()) return spec.train.batch_size;
  return TrainedBatchSize(files, *prefix).value_or(spec.train.batch_size);
}

}  // namespace muster::score
