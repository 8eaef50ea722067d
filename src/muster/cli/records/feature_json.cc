#include "muster/cli/records/feature_json.h"

#include <string>
#include <utility>

namespace muster::cli {

using nlohmann::ordered_json;

ordered_json MakeFeatureValues(const formats::FeatureText& feature) {
  ordered_json values = ordered_json::array();
  for (const std::string& value : feature.values) {
    ordered_json shown = value;
    if (feature.kind != "bytes") {
      ordered_json number = ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
      if (number.is_number()) shown = std::move(number);
    }
    values.push_back(std::move(shown));
  }
  return values;
}

}  // namespace muster::cli
