// The messages with which decoders of typed values (tf.Example, columns) report that a row does not
// fit: the same values give the same message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// Returns "column 'NAME': WHAT".
absl::Status ColumnError(const Field& field, std::string_view what);
absl::Status NoValueError(const Field& field);
// `first` is the text of ShowValue.
absl::Status ManyValuesError(const Field& field, size_t count, std::string_view first);
absl::Status DoesNotFitError(const Field& field, std::string_view value);

std::string ShowValue(std::string_view bytes);  // "the bytes 'abc'", escaped and at most 60
std::string ShowValue(float value);             // "the float 34.5"
std::string ShowValue(double value);
std::string ShowValue(int64_t value);  // "the int64 7"
std::string ShowValue(uint64_t value);

}  // namespace muster::formats
