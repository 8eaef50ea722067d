// usage: muster-tensorflow-conformance EXPORT BATCHES PRECISION [googletest's flags]
//
// The conformance suite of engines over an exported model and the first batch of the bundle.
// PRECISION: see EngineMember.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "muster/engine/engine_conformance.h"
#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/io/local_file_system.h"
#include "testbed/tensorflow_probe/read_batches.h"

namespace muster::engine {
namespace {

using tensorflow::KerasExport;
using tensorflow::KerasPort;
using tensorflow::KerasVariable;

struct Given {
  std::unique_ptr<io::FileSystem> files = io::NewLocalFileSystem();
  KerasExport model;
  features::FeatureBatch batch;
  double precision = 0;
};

Given& Arguments() {
  static auto* const kGiven = new Given;
  return *kGiven;
}

absl::Status Read(const std::string& folder, const std::string& bundle, double precision) {
  Given& given = Arguments();
  given.precision = precision;
  MUSTER_ASSIGN_OR_RETURN(given.model, tensorflow::OpenKerasExport(*given.files, folder));
  MUSTER_ASSIGN_OR_RETURN(const auto reader, formats::BundleReader::Open(*given.files, bundle));
  MUSTER_ASSIGN_OR_RETURN(const auto batches, testbed::ReadBatches(*reader, given.model));
  if (batches.empty()) return absl::NotFoundError(StrCat(bundle, " has no batch"));
  given.batch = batches[0];
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Engine>> Make() {
  return tensorflow::NewTensorFlowEngine(*Arguments().files, Arguments().model,
                                         {.environment = process::CurrentEnvironment()});
}

EngineMember Member() {
  const KerasExport& model = Arguments().model;
  bool random = false, mean = false;
  for (const KerasPort& port : model.Find("step")->inputs) {
    const auto i = static_cast<size_t>(port.index);
    mean |= port.role == KerasPort::Role::kDenominator;
    random |= port.role == KerasPort::Role::kVariable &&
              model.variables[i].kind == KerasVariable::Kind::kSeed;
  }
  const bool normalizes =
      std::ranges::count(model.variables, KerasVariable::Kind::kState, &KerasVariable::kind) > 0;
  return {
      .name = "Exported",
      .make = Make,
      .batch = [] { return Arguments().batch; },
      .is_random = random,
      .batch_norm = normalizes ? EngineMember::BatchNorm::kOwnRows : EngineMember::BatchNorm::kNone,
      .gives_squares = true,
      .is_mean = mean,
      .is_separable = model.loss_is_separable,
      .evaluates_as_keras = true,
      .hides_nan = true,
      .precision = Arguments().precision,
      .input_columns = model.inputs.size()};
}

INSTANTIATE_TEST_SUITE_P(TensorFlow, EngineConformance, testing::Values(Member()),
                         EngineMemberName);

}  // namespace
}  // namespace muster::engine

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs(
        "usage: muster-tensorflow-conformance EXPORT BATCHES PRECISION [flags of googletest]\n",
        stderr);
    return 2;
  }
  const absl::Status status = muster::engine::Read(argv[1], argv[2], std::atof(argv[3]));
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
