#include "muster/formats/value_errors.h"

#include "absl/strings/escaping.h"

#include "muster/base/strings.h"

namespace muster::formats {

absl::Status ColumnError(const Field& field, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("column '", field.name, "': ", what));
}

absl::Status NoValueError(const Field& field) {
  return ColumnError(field, "the record has no value for it, and it has no default");
}

absl::Status ManyValuesError(const Field& field, size_t count, std::string_view first) {
  return ColumnError(field, StrCat("the record has ", count, " values (first ", first,
                                   "), but the schema says one"));
}

absl::Status DoesNotFitError(const Field& field, std::string_view value) {
  return ColumnError(
      field, StrCat(value, " does not fit into ", field.type == ValueType::kInt ? "an " : "a ",
                    ValueTypeName(field.type)));
}

std::string ShowValue(std::string_view bytes) {
  constexpr size_t kMaxShown = 60;
  const std::string text = absl::CEscape(ToAbsl(bytes.substr(0, kMaxShown)));
  return StrCat("the bytes '", text, bytes.size() > kMaxShown ? "'..." : "'");
}

std::string ShowValue(float value) { return StrCat("the float ", value); }
std::string ShowValue(double value) { return StrCat("the float ", value); }
std::string ShowValue(int64_t value) { return StrCat("the int64 ", value); }
std::string ShowValue(uint64_t value) { return StrCat("the int64 ", value); }

}  // namespace muster::formats
