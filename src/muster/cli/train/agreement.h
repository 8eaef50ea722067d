// The settings in which all tasks of a training must agree (base/agreement.h), from their flags.
// One table (agreement.cc) classifies every flag of `muster train` and `muster worker`: it is a
// term of the agreement, or tasks may differ in it, and why. A flag missing from the table fails
// agreement_test.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/cli/train/train_run.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/train/loop/specs.h"

namespace muster::cli {

// What the values of terms are taken from.
struct TaskFacts {
  const TrainFlags& flags;  // with the environment in flags.run
  const model::ModelSpec& model;
  const train::TrainSpec& spec;
  std::string model_file = {};  // of its contents
  std::string data = {};        // of its files' names and sizes
};

struct FlagUse {
  std::string_view flag;  // "--epochs", or a place: "spec"
  // "": tasks may differ in it, since `why_not`.
  std::string_view term = {};
  std::string (*value)(const TaskFacts& facts) = nullptr;
  std::string_view why_not = {};
};
std::span<const FlagUse> FlagUses();

// The agreement of this task. Returns the errors of reading the model file and of finding the data.
// Only replicas look for the data: other tasks need not reach it.
absl::StatusOr<std::string> MakeAgreement(const TrainFlags& flags, const model::ModelSpec& model,
                                          const train::TrainSpec& spec, io::FileSystem& files);

}  // namespace muster::cli
