// Space: the parameters that a search varies, each with the values that it may have; and Point, one
// choice of values. A space is data: it is read from the search file (docs/tune.md).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/formats/yaml_reader.h"

namespace muster::tune {

using formats::Json;

struct Parameter {
  enum class Kind { kChoice, kNumber, kInt };
  std::string name;  // a path of the model file, such as train.batch_size, or a {placeholder}
  Kind kind = Kind::kNumber;
  std::vector<Json> choices = {};  // kChoice: any values
  double low = 0, high = 0;        // both are included
  bool log = false;                // equal chances for equal ratios
  int64_t step = 1;                // kInt: low, low + step, ...
  int64_t points = 0;              // kNumber: how many values a grid takes; 0: not said
  // A conditional parameter exists only where the parameter `when` (an index; < 0: always) has one
  // of the choices `when_choices` (indices).
  int when = -1;
  std::vector<int> when_choices = {};
};

// The value of each parameter of a space, in its order: the number itself, or the index of a
// choice. kAbsent: the condition of the parameter does not hold.
using Point = std::vector<double>;
inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
bool IsAbsent(double value);

struct Space {
  std::vector<Parameter> parameters;

  // Whether the parameter exists, as the parameters before it in `point` say.
  bool Exists(size_t parameter, const Point& point) const;
};

// Reads the map `space`. A wrong value is an error of the document, with its line.
Space ParseSpace(const formats::YamlReader& reader);

// The value as the model file or a command has it.
Json ValueJson(const Parameter& parameter, double value);
// {"train.batch_size": 64, ...} without absent parameters, and back. INVALID_ARGUMENT for an object
// that names another parameter, or has a value that is not in the space.
Json PointJson(const Space& space, const Point& point);
absl::StatusOr<Point> ParsePoint(const Space& space, const Json& json);

// The space as JSON that is equal for equal spaces: a study continues only with the same one.
Json SpaceJson(const Space& space);

// A number of [0, 1) becomes a value, so that equal parts of [0, 1) are equal chances.
double ValueAt(const Parameter& parameter, double uniform);
// How many values the parameter has; 0: infinitely many.
int64_t CountValues(const Parameter& parameter);

}  // namespace muster::tune
