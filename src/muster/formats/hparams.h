// The data of TensorBoard's HParams page: an experiment (its settings and results), and for each
// run the values of its settings, when it began and how it ended. See docs/formats/event.md;
// source: tensorboard/plugins/hparams/{api,plugin_data}.proto.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "muster/formats/summary.h"

namespace muster::formats {

using HparamValue = std::variant<double, bool, std::string>;

struct Hparam {
  std::string name;
  HparamValue value;
};

// A setting. The page lists the experiment's settings, those that differ between runs first, and
// shows the first five.
struct HparamInfo {
  std::string name;
  enum class Type { kString = 1, kBool = 2, kNumber = 3 } type = Type::kNumber;
  bool differs = false;
};

// A result: the newest scalar `tag` of the run in the folder `group` below the session's own folder
// ("": in that folder).
struct HparamMetric {
  std::string group;
  std::string tag;
  std::string shown_as;
};

struct HparamExperiment {
  double created_seconds = 0;  // since the Unix epoch
  std::vector<HparamInfo> settings;
  std::vector<HparamMetric> metrics;
};

enum class HparamStatus { kSuccess = 1, kFailure = 2, kRunning = 3 };

// TensorBoard reads the experiment from one of the runs that it shows and, for each run, the first
// start and the first end.
void AddHparamExperiment(const HparamExperiment& experiment, Summary* summary);
void AddHparamSessionStart(const std::vector<Hparam>& values, double seconds, Summary* summary);
void AddHparamSessionEnd(HparamStatus status, double seconds, Summary* summary);

}  // namespace muster::formats
