#include "muster/train/input/compiled/compiled_layout.h"

#include <limits>
#include <numeric>
#include <utility>

namespace muster::train {
namespace {

using formats::Json;

constexpr int64_t kMostIds = std::numeric_limits<int32_t>::max();
constexpr int kMostWidth = 1 << 24;  // floats of a column or of a label

// The low bits that `bytes` bytes have.
uint32_t MaskOf(int bytes) { return bytes == 4 ? ~uint32_t{0} : (uint32_t{1} << 8 * bytes) - 1; }

}  // namespace

int CompiledLayout::Ids::bytes() const {
  int bytes = 1;
  while (bytes < 4 && ids >= int64_t{1} << 8 * bytes) ++bytes;
  return bytes;
}

size_t CompiledLayout::dense_width() const {
  return std::accumulate(dense.begin(), dense.end(), size_t{0},
                         [](size_t sum, int width) { return sum + static_cast<size_t>(width); });
}

size_t CompiledLayout::fixed_bytes() const {
  size_t floats = static_cast<size_t>(label_width) + (has_weight ? 1 : 0) + dense_width();
  size_t bytes = 0;
  for (const Ids& list : id_lists) {
    if (list.is_list) continue;
    bytes += static_cast<size_t>(list.bytes()) + (list.has_keys ? sizeof(int64_t) : 0);
    floats += list.has_weights ? 1 : 0;
  }
  return bytes + floats * sizeof(float);
}

bool CompiledLayout::has_lists() const {
  for (const Ids& list : id_lists) {
    if (list.is_list) return true;
  }
  return false;
}

std::vector<CompiledPart> FindParts(const CompiledLayout& layout, bool lists) {
  std::vector<CompiledPart> parts;
  for (size_t i = 0; i < layout.id_lists.size(); ++i) {
    const CompiledLayout::Ids& ids = layout.id_lists[i];
    if (ids.is_list != lists) continue;
    parts.push_back({.list = i,
                     .width = static_cast<size_t>(ids.bytes()),
                     .mask = MaskOf(ids.bytes()),
                     .most = static_cast<uint32_t>(ids.ids),
                     .has_weights = ids.has_weights,
                     .has_keys = ids.has_keys});
  }
  return parts;
}

CompiledLayout MakeLayout(const features::FeatureSpec& spec,
                          const features::FeatureRequest& request, bool with_labels,
                          const features::FeatureBatch& batch) {
  CompiledLayout layout = {.label_width = with_labels ? spec.label.width : 0,
                           .has_weight = with_labels && !spec.weight.empty()};
  for (const features::DenseColumn& column : batch.dense) layout.dense.push_back(column.width);
  for (size_t i = 0; i < request.categorical.size(); ++i) {
    const features::ColumnSpec& column = *spec.Find(request.categorical[i]);
    const bool has_keys = spec.GetGrowth(column) != nullptr;
    layout.id_lists.push_back({.is_list = !batch.id_lists[i].one_per_row(),
                               .has_weights = column.kind == features::ColumnKind::kWeighted,
                               .has_keys = has_keys,
                               .ids = has_keys ? 1 : spec.NumIds(column)});
  }
  return layout;
}

Json PrintLayout(const CompiledLayout& layout) {
  Json lists = Json::array();
  for (const CompiledLayout::Ids& list : layout.id_lists) {
    lists.push_back({{"ids", list.ids},
                     {"list", list.is_list},
                     {"weights", list.has_weights},
                     {"keys", list.has_keys}});
  }
  return {{"labels", layout.label_width},
          {"weight", layout.has_weight},
          {"dense", layout.dense},
          {"id_lists", std::move(lists)}};
}

absl::StatusOr<CompiledLayout> ReadLayout(const Json& json, const std::string& where) {
  formats::JsonFields fields(json, where);
  CompiledLayout layout;
  layout.label_width = static_cast<int>(fields.Int("labels", 0, 0, kMostWidth));
  layout.has_weight = fields.Bool("weight", false);
  for (const Json& width : fields.List("dense")) {
    if (!width.is_number_unsigned() || width.get<uint64_t>() > kMostWidth) {
      fields.Fail("\"dense\" must be widths");
      break;
    }
    layout.dense.push_back(width.get<int>());
  }
  for (const Json& each : fields.List("id_lists")) {
    if (!each.is_object()) {
      fields.Fail("\"id_lists\" must be objects");
      break;
    }
    formats::JsonFields list(each, where);
    layout.id_lists.push_back({.is_list = list.Bool("list", false),
                               .has_weights = list.Bool("weights", false),
                               .has_keys = list.Bool("keys", false),
                               .ids = list.Int("ids", 1, 1, kMostIds)});
    fields.Update(list.status());
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return layout;
}

}  // namespace muster::train
