// For tests: parses the `spec` lines that make_test_vectors.py writes.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

// The numbers of `word`, separated by commas.
template <typename Number>
std::vector<Number> ParseNumbers(const std::string& word) {
  std::vector<Number> numbers;
  std::istringstream stream(word);
  for (std::string one; std::getline(stream, one, ',');) {
    numbers.push_back(static_cast<Number>(std::stod(one)));
  }
  return numbers;
}

// Reads FIELD=VALUE words to the end; the name of an unknown field is that of a parameter.
inline OptimizerSpec ParseSpecWords(std::istringstream& words) {
  const std::map<std::string, double OptimizerSpec::*> fields = {
      {"learning_rate", &OptimizerSpec::learning_rate},
      {"weight_decay", &OptimizerSpec::weight_decay},
  };
  const std::map<std::string, double ScheduleSpec::*> schedule_fields = {
      {"decay_steps", &ScheduleSpec::decay_steps},
      {"decay_rate", &ScheduleSpec::decay_rate},
      {"end", &ScheduleSpec::end},
      {"power", &ScheduleSpec::power},
      {"alpha", &ScheduleSpec::alpha},
      {"t_mul", &ScheduleSpec::t_mul},
      {"m_mul", &ScheduleSpec::m_mul},
      {"warm_up_from", &ScheduleSpec::warm_up_from},
  };
  OptimizerSpec spec;
  ScheduleSpec& schedule = spec.schedule;
  const std::map<std::string, bool*> flags = {
      {"squares", &spec.squares}, {"staircase", &schedule.staircase}, {"cycle", &schedule.cycle}};
  std::string word;
  while (words >> word) {
    const std::string key = word.substr(0, word.find('='));
    const std::string value = word.substr(word.find('=') + 1);
    if (key == "kind") {
      spec.kind = FindKerasClass(value)->name;
    } else if (key == "rule") {
      spec.rule = value == "keras" ? OptimizerSpec::Rule::kKeras : OptimizerSpec::Rule::kTensorFlow;
    } else if (key == "schedule") {
      while (ScheduleName(schedule.kind) != value) {
        schedule.kind = static_cast<ScheduleSpec::Kind>(static_cast<int>(schedule.kind) + 1);
      }
    } else if (key == "boundaries") {
      schedule.boundaries = ParseNumbers<int64_t>(value);
    } else if (key == "values") {
      schedule.values = ParseNumbers<double>(value);
    } else if (key == "warm_up_steps") {
      schedule.warm_up_steps = std::stoll(value);
    } else if (flags.contains(key)) {
      *flags.at(key) = value == "1";
    } else if (schedule_fields.contains(key)) {
      schedule.*schedule_fields.at(key) = std::stod(value);
    } else if (fields.contains(key)) {
      spec.*fields.at(key) = std::stod(value);
    } else {
      spec.parameters[key] = std::stod(value);
    }
  }
  return spec;
}

}  // namespace muster::optim
