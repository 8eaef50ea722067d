#include "muster/tune/space.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/formats/yaml_json.h"

namespace muster::tune {
namespace {

using formats::YamlReader;
using ParameterKind = Parameter::Kind;

constexpr double kLargest = 1e300;
constexpr int64_t kLargestInt = int64_t{1} << 53;

void ParseRange(const YamlReader& reader, std::string_view key, Parameter* parameter) {
  const auto bounds = reader.At(key).Items();
  if (!reader.ok()) return;
  if (bounds.size() != 2) return reader.At(key).Fail("must be [lowest, highest]");
  if (parameter->kind == ParameterKind::kInt) {
    parameter->low = static_cast<double>(bounds[0].AsInt(-kLargestInt, kLargestInt));
    parameter->high = static_cast<double>(bounds[1].AsInt(-kLargestInt, kLargestInt));
  } else {
    parameter->low = bounds[0].AsNumber(-kLargest, kLargest);
    parameter->high = bounds[1].AsNumber(-kLargest, kLargest);
  }
  if (!reader.ok()) return;
  if (!(parameter->low < parameter->high)) {
    return reader.At(key).Fail("the first number must be below the second one");
  }
  if (parameter->log && parameter->low <= 0) {
    reader.At(key).Fail("a logarithmic range must begin above 0");
  }
}

void ParseChoices(const YamlReader& reader, Parameter* parameter) {
  for (const YamlReader& item : reader.At("choice").Items()) {
    parameter->choices.push_back(formats::YamlToJson(item));
  }
  if (reader.ok() && parameter->choices.empty()) reader.At("choice").Fail("must have a value");
}

// The key that says of which kind the parameter is.
std::string FindKind(const YamlReader& reader) {
  static const std::vector<std::string> kKinds = {"choice", "uniform", "loguniform", "int"};
  std::string found;
  for (const std::string& kind : kKinds) {
    if (!reader.Has(kind)) continue;
    if (!found.empty()) reader.Fail(StrCat("has both '", found, "' and '", kind, "'"));
    found = kind;
  }
  if (found.empty()) {
    reader.Fail(
        "must have one of choice: [...], uniform: [LOW, HIGH], loguniform: [LOW, HIGH] and "
        "int: [LOW, HIGH]");
  }
  return found;
}

// `when: {NAME: VALUE}`, or a list of values; NAME is a choice of the parameters before.
void ParseWhen(const YamlReader& reader, const std::vector<Parameter>& before,
               Parameter* parameter) {
  reader.ForEach([&](const std::string& name, const YamlReader& value) {
    if (parameter->when >= 0) return reader.Fail("must name one parameter");
    const auto found = std::ranges::find(before, name, &Parameter::name);
    if (found == before.end() || found->kind != ParameterKind::kChoice) {
      return reader.Fail(StrCat("'", name, "' is no choice among the parameters before"));
    }
    parameter->when = static_cast<int>(found - before.begin());
    const Json wanted = formats::YamlToJson(value);
    for (size_t i = 0; i < found->choices.size(); ++i) {
      const Json& choice = found->choices[i];
      const bool is_listed = wanted.is_array() && std::ranges::find(wanted, choice) != wanted.end();
      if (choice == wanted || is_listed) parameter->when_choices.push_back(static_cast<int>(i));
    }
    if (parameter->when_choices.empty()) {
      value.Fail(StrCat("is no value that '", name, "' may have"));
    }
  });
}

Parameter ParseParameter(const std::string& name, const YamlReader& reader,
                         const std::vector<Parameter>& before) {
  Parameter parameter = {.name = name};
  const std::string kind = FindKind(reader);
  if (!reader.ok()) return parameter;
  if (kind == "choice") {
    reader.CheckKeys({"choice", "when"});
    parameter.kind = ParameterKind::kChoice;
    ParseChoices(reader, &parameter);
  } else if (kind == "int") {
    reader.CheckKeys({"int", "log", "step", "when"});
    parameter.kind = ParameterKind::kInt;
    parameter.log = reader.Bool("log", false);
    parameter.step = reader.Int("step", 1, 1, kLargestInt);
    ParseRange(reader, kind, &parameter);
  } else {
    reader.CheckKeys({kind, "points", "when"});
    parameter.log = kind == "loguniform";
    parameter.points = reader.Int("points", 0, 2, 1'000'000);
    ParseRange(reader, kind, &parameter);
  }
  if (reader.Has("when")) ParseWhen(reader.At("when"), before, &parameter);
  return parameter;
}

double LastInt(const Parameter& parameter) {
  const auto step = static_cast<double>(parameter.step);
  return parameter.low + std::floor((parameter.high - parameter.low) / step) * step;
}

absl::StatusOr<double> ParseValue(const Parameter& parameter, const Json& json) {
  if (parameter.kind == ParameterKind::kChoice) {
    const auto found = std::ranges::find(parameter.choices, json);
    if (found != parameter.choices.end()) {
      return static_cast<double>(found - parameter.choices.begin());
    }
  } else if (json.is_number()) {
    const auto value = json.get<double>();
    if (value >= parameter.low && value <= parameter.high) return value;
  }
  return absl::InvalidArgumentError(
      StrCat("'", parameter.name, "': ", formats::PrintJson(json), " is not in the space"));
}

}  // namespace

bool IsAbsent(double value) { return std::isnan(value); }

bool Space::Exists(size_t parameter, const Point& point) const {
  const Parameter& wanted = parameters[parameter];
  if (wanted.when < 0) return true;
  const double condition = point[static_cast<size_t>(wanted.when)];
  return !IsAbsent(condition) &&
         std::ranges::find(wanted.when_choices, static_cast<int>(condition)) !=
             wanted.when_choices.end();
}

Space ParseSpace(const YamlReader& reader) {
  Space space;
  reader.ForEach([&](const std::string& name, const YamlReader& value) {
    if (!value.IsMap()) return value.Fail("must be a map such as {uniform: [0, 0.5]}");
    space.parameters.push_back(ParseParameter(name, value, space.parameters));
  });
  if (reader.ok() && space.parameters.empty()) reader.Fail("must have a parameter");
  return space;
}

Json ValueJson(const Parameter& parameter, double value) {
  if (parameter.kind == ParameterKind::kChoice)
    return parameter.choices[static_cast<size_t>(value)];
  if (parameter.kind == ParameterKind::kInt) return static_cast<int64_t>(value);
  return value;
}

Json PointJson(const Space& space, const Point& point) {
  Json json = Json::object();
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    if (!IsAbsent(point[i])) {
      json[space.parameters[i].name] = ValueJson(space.parameters[i], point[i]);
    }
  }
  return json;
}

absl::StatusOr<Point> ParsePoint(const Space& space, const Json& json) {
  Point point(space.parameters.size(), kAbsent);
  size_t found = 0;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const auto value = json.find(space.parameters[i].name);
    if (value == json.end()) continue;
    ++found;
    MUSTER_ASSIGN_OR_RETURN(point[i], ParseValue(space.parameters[i], *value));
  }
  if (found == json.size()) return point;
  return absl::InvalidArgumentError(
      StrCat(formats::PrintJson(json), " has a parameter that is not in the space"));
}

Json SpaceJson(const Space& space) {
  Json json = Json::object();
  for (const Parameter& parameter : space.parameters) {
    Json& one = json[parameter.name];
    if (parameter.kind == ParameterKind::kChoice) {
      one["choice"] = parameter.choices;
    } else {
      one[parameter.kind == ParameterKind::kInt ? "int" : "uniform"] = {parameter.low,
                                                                        parameter.high};
      if (parameter.log) one["log"] = true;
      if (parameter.kind == ParameterKind::kInt) one["step"] = parameter.step;
      if (parameter.points > 0) one["points"] = parameter.points;
    }
    if (parameter.when < 0) continue;
    one["when"] = {space.parameters[static_cast<size_t>(parameter.when)].name,
                   parameter.when_choices};
  }
  return json;
}

double ValueAt(const Parameter& parameter, double uniform) {
  if (parameter.kind == ParameterKind::kChoice) {
    const auto count = static_cast<double>(parameter.choices.size());
    return std::min(std::floor(uniform * count), count - 1);
  }
  const auto step = static_cast<double>(parameter.step);
  const bool is_int = parameter.kind == ParameterKind::kInt;
  // Each int gets the range that is rounded to it.
  const double high = is_int ? LastInt(parameter) : parameter.high;
  double low_edge = is_int ? parameter.low - step / 2 : parameter.low;
  const double high_edge = is_int ? high + step / 2 : high;
  if (parameter.log && low_edge <= 0) low_edge = parameter.low / 2;
  const double value = parameter.log ? low_edge * std::pow(high_edge / low_edge, uniform)
                                     : low_edge + uniform * (high_edge - low_edge);
  if (!is_int) return std::clamp(value, parameter.low, parameter.high);
  return std::clamp(parameter.low + std::round((value - parameter.low) / step) * step,
                    parameter.low, high);
}

int64_t CountValues(const Parameter& parameter) {
  if (parameter.kind == ParameterKind::kChoice)
    return static_cast<int64_t>(parameter.choices.size());
  if (parameter.kind == ParameterKind::kNumber) return 0;
  return static_cast<int64_t>((LastInt(parameter) - parameter.low) /
                              static_cast<double>(parameter.step)) +
         1;
}

}  // namespace muster::tune
