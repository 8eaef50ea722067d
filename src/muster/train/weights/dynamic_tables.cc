#include "muster/train/weights/dynamic_tables.h"

#include <algorithm>
#include <utility>

namespace muster::train {

bool HasDynamicTables(const model::ModelSpec& spec) {
  const auto grows = [&](const std::string& name) {
    const features::ColumnSpec& column = *spec.features.Find(name);
    const bool wrapped = column.kind == features::ColumnKind::kEmbedding;
    return spec.features.GetGrowth(wrapped ? *spec.features.Find(column.input) : column) != nullptr;
  };
  return std::ranges::any_of(spec.UsedColumns(), grows);
}

absl::Status CheckReducible(const model::ModelSpec& spec) {
  if (!HasDynamicTables(spec)) return absl::OkStatus();
  return absl::UnimplementedError(
      "columns of 'keys' cannot be trained by all-reduce, since each replica would grow its own "
      "tables: train with parameter servers (--ps), or in one process, or give the column a size "
      "('hash')");
}

tables::Growth GetGrowth(const engine::VariableSpec& spec, uint64_t seed, size_t index) {
  const bool normal = spec.initializer.kind == engine::Initializer::Kind::kTruncatedNormal;
  return {.admit_after = spec.growth->admit_after,
          .expire_after = spec.growth->expire_after,
          .capacity = spec.growth->capacity,
          .seed = seed,
          .variable = static_cast<uint32_t>(index),
          .stddev = normal ? spec.initializer.value : 0};
}

KeyIndex::KeyIndex(const Variables& variables) : rows_(variables.specs().size()) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const tables::DynamicTableImage* const image = variables.dynamic_tables(static_cast<int>(i));
    if (image == nullptr) continue;
    rows_[i].reserve(image->keys.size());
    for (size_t row = 0; row < image->keys.size(); ++row) {
      rows_[i].emplace(image->keys[row], static_cast<int64_t>(row));
    }
  }
}

DynamicTables::DynamicTables(const model::Model& model, const Variables& variables,
                             TableBlocks blocks, uint64_t seed)
    : variables_(variables),
      blocks_(std::move(blocks)),
      specs_(variables.specs().size()),
      tables_(specs_.size()),
      memory_(specs_.size()),
      views_(variables.views().begin(), variables.views().end()) {
  for (const int table : blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    const engine::VariableSpec& spec = variables.specs()[i];
    specs_[i] = {.name = spec.name,
                 .cols = spec.shape[1],
                 .optimizer = model.optimizers[static_cast<size_t>(spec.group)].get(),
                 .growth = GetGrowth(spec, seed, i)};
  }
}

absl::StatusOr<std::unique_ptr<DynamicTables>> DynamicTables::ForTraining(
    const model::Model& model, const Variables& variables, uint64_t seed) {
  MUSTER_ASSIGN_OR_RETURN(TableBlocks blocks,
                          TableBlocks::Create(*model.engine, TableBlocks::Which::kDynamic));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<DynamicTables> dynamic_tables(
      new DynamicTables(model, variables, std::move(blocks), seed));
  for (const int table : dynamic_tables->blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    dynamic_tables->tables_[i] =
        std::make_unique<tables::DynamicTable>(dynamic_tables->specs_[i], /*shares=*/1);
    MUSTER_RETURN_IF_ERROR(tables::UseImage(*variables.dynamic_tables(table),
                                            dynamic_tables->specs_[i],
                                            dynamic_tables->tables_[i].get()));
  }
  return dynamic_tables;
}

absl::StatusOr<std::unique_ptr<DynamicTables>> DynamicTables::ForInference(
    const model::Model& model, const Variables& variables, std::shared_ptr<const KeyIndex> index) {
  MUSTER_ASSIGN_OR_RETURN(TableBlocks blocks,
                          TableBlocks::Create(*model.engine, TableBlocks::Which::kDynamic));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<DynamicTables> dynamic_tables(
      new DynamicTables(model, variables, std::move(blocks), 0));
  dynamic_tables->index_ = std::move(index);
  return dynamic_tables;
}

void DynamicTables::ReadImage(int variable, float* block) const {
  const auto cols = static_cast<size_t>(specs_[static_cast<size_t>(variable)].cols);
  const float* const weights = variables_.views()[static_cast<size_t>(variable)].data;
  for (const int64_t key : blocks_.keys(variable)) {
    const int64_t row = index_->Find(variable, key);
    if (row < 0) {
      std::fill_n(block, cols, 0.0f);
    } else {
      std::copy_n(weights + static_cast<size_t>(row) * cols, cols, block);
    }
    block += cols;
  }
}

absl::StatusOr<const features::FeatureBatch*> DynamicTables::Renumber(
    const features::FeatureBatch& batch) {
  MUSTER_RETURN_IF_ERROR(blocks_.Renumber(batch));
  for (const int table : blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    const std::span<const int64_t> keys = blocks_.keys(table);
    views_[i].rows = std::ssize(keys);
    views_[i].data = memory_[i].Reserve(keys.size() * static_cast<size_t>(views_[i].cols));
    if (tables_[i] != nullptr) {
      tables_[i]->Read(keys, views_[i].data);
    } else {
      ReadImage(table, views_[i].data);
    }
  }
  return &blocks_.batch();
}

void DynamicTables::Apply(int variable, std::span<const int32_t> rows,
                          std::span<const float> gradient, int64_t step) {
  const std::span<const int64_t> keys = blocks_.keys(variable);
  touched_.clear();
  for (const int32_t row : rows) touched_.push_back(keys[static_cast<size_t>(row)]);
  tables_[static_cast<size_t>(variable)]->Apply(touched_, gradient, step);
}

void DynamicTables::CopyImages() {
  for (const int table : blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    tables::CopyImage(*tables_[i], specs_[i], variables_.dynamic_tables(table));
  }
}

}  // namespace muster::train
