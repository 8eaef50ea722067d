// Finds the C++ number type of a DataType, for code that reads or writes tensors of any type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "muster/formats/bundle.h"

namespace muster::formats {

// Calls visit(std::type_identity<NUMBER>()) and returns true, where NUMBER is the C++ type of the
// elements; for bool it is uint8_t. Returns false for strings and for numbers that C++20 does not
// have (float16, bfloat16, complex and quantized ones).
template <class Visit>
bool VisitNumber(DataType type, Visit visit) {
  switch (type) {
    case DataType::kFloat:
      visit(std::type_identity<float>());
      return true;
    case DataType::kDouble:
      visit(std::type_identity<double>());
      return true;
    case DataType::kInt32:
      visit(std::type_identity<int32_t>());
      return true;
    case DataType::kUint8:
    case DataType::kBool:
      visit(std::type_identity<uint8_t>());
      return true;
    case DataType::kInt16:
      visit(std::type_identity<int16_t>());
      return true;
    case DataType::kInt8:
      visit(std::type_identity<int8_t>());
      return true;
    case DataType::kInt64:
      visit(std::type_identity<int64_t>());
      return true;
    case DataType::kUint16:
      visit(std::type_identity<uint16_t>());
      return true;
    case DataType::kUint32:
      visit(std::type_identity<uint32_t>());
      return true;
    case DataType::kUint64:
      visit(std::type_identity<uint64_t>());
      return true;
    default:
      return false;
  }
}

}  // namespace muster::formats
