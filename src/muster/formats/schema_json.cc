#include "muster/formats/schema_json.h"

namespace muster::formats {

Json DescribeField(const Field& field) {
  Json column = {{"name", field.name},
                 {"type", ValueTypeName(field.type)},
                 {"list", field.list},
                 {"truncate", field.truncate}};
  if (!field.list && field.has_default) {
    std::visit([&column](const auto& value) { column["default"] = value; }, field.default_value);
  }
  return column;
}

}  // namespace muster::formats
