#include "muster/train/input/data_watch.h"

#include <algorithm>
#include <set>

#include "muster/base/strings.h"
#include "muster/train/input/usual_rates.h"

namespace muster::train {
namespace {

// Returns the columns whose scale does not matter: only parts with input_batch_norm read them, or
// the head reads them as an item's probability, of which the differences of logarithms count.
std::vector<std::string> ColumnsOfAnyScale(const model::ModelSpec& model) {
  std::vector<std::string> columns = {model.head.sampling_probability};
  std::set<std::string> scaled;
  if (model.linear) scaled.insert(model.linear->columns.begin(), model.linear->columns.end());
  if (model.fm) scaled.insert(model.fm->columns.begin(), model.fm->columns.end());
  for (const auto& [name, part] : model.DeepParts()) {
    if (part->input_batch_norm) {
      columns.insert(columns.end(), part->columns.begin(), part->columns.end());
    } else {
      scaled.insert(part->columns.begin(), part->columns.end());
    }
  }
  std::erase_if(columns, [&](const std::string& name) { return scaled.contains(name); });
  return columns;
}

}  // namespace

DataWatch::DataWatch(const model::Model& model, const BatchMaker& maker) : coverage_(maker.used()) {
  if (model.spec.exported) return;
  scale_.emplace(maker.used(), model.request, ColumnsOfAnyScale(model.spec));
  slow_parts_ = DescribeSlowParts(model.spec);
}

void DataWatch::Begin(const data::Position* start) {
  if (start == nullptr) return;
  whole_epoch_ = std::max(whole_epoch_, start->epoch + (start->emitted > 0 ? 1 : 0));
}

void DataWatch::Add(int64_t epoch, const formats::Columns* columns,
                    const features::FeatureBatch& batch) {
  if (epoch > whole_epoch_) saw_epoch_ = true;
  if (saw_epoch_) return;
  if (columns != nullptr) coverage_.Add(*columns);
  if (scale_) scale_->Add(batch);
}

std::vector<std::string> DataWatch::ConsumeColumnWarnings(bool saw_all) {
  return coverage_.ConsumeWarnings(saw_all || saw_epoch_);
}

std::vector<std::string> DataWatch::ConsumeScaleWarnings(bool ended) {
  if (!scale_) return {};
  std::vector<std::string> warnings = scale_->ConsumeWarnings(ended || saw_epoch_);
  for (std::string& warning : warnings) {
    for (const std::string& line : slow_parts_) warning += StrCat("; ", line);
  }
  return warnings;
}

}  // namespace muster::train
