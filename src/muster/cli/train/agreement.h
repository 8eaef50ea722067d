// The settings in which all tasks of a training must agree (base/agreement.h), taken from their
// flags. One table (agreement.cc) classifies every flag of `muster train` and `muster worker`:
// either it is a term of the agreement, or tasks may differ in it, with the reason. agreement_test
// fails if a flag is missing from the table.
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

// What the values of terms are computed from.
struct TaskFacts {
  const TrainFlags& flags;  // including the environment, in flags.run
  const model::ModelSpec& model;
  const train::TrainSpec& spec;
  std::string model_file = {};  // describes its contents
  std::string data = {};        // describes the names and sizes of its files
};

struct FlagUse {
  std::string_view flag;  // "--epochs", or an argument: "spec"
  // "": tasks may differ in the flag, because of `why_not`.
  std::string_view term = {};
  std::string (*value)(const TaskFacts& facts) = nullptr;
  std::string_view why_not = {};
};
std::span<const FlagUse> FlagUses();

// Returns the agreement of this task. Errors are those of reading the model file and of finding the
// data. Only replicas look for the data: other tasks need not reach it.
absl::StatusOr<std::string> MakeAgreement(const TrainFlags& flags, const model::ModelSpec& model,
                                          const train::TrainSpec& spec, io::FileSystem& files);

}  // namespace muster::cli
