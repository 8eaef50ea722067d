// A compiled file's layout as JSON.
#include <limits>
#include <utility>

#include "muster/train/input/compiled/compiled_rows.h"

namespace muster::train {
namespace {

using formats::Json;

constexpr int64_t kMostIds = std::numeric_limits<int32_t>::max();
constexpr int kMostWidth = 1 << 24;  // floats of a column or of a label

}  // namespace

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
