// read_rows MODEL DATA EPOCHS [ordered]: reads, shuffles (unless "ordered") and decodes the data,
// files or a topic, as a training of the model file does, and does nothing with it. Prints {"rows":
// ...}.
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"

#include "muster/cli/common/data_schemes.h"
#include "muster/io/local_file_system.h"
#include "muster/model/model.h"
#include "muster/train/input/input.h"

namespace muster::train {
namespace {

absl::Status ReadRows(const std::string& model_file, const std::string& data, int64_t epochs,
                      bool shuffle) {
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, model_file));
  MUSTER_ASSIGN_OR_RETURN(const model::Model model, model::BuildModel(spec));
  InputSpec input_spec;
  input_spec.source.patterns = {data};
  input_spec.source.format = spec.format;
  input_spec.source.schemes = cli::DataSchemes({});
  input_spec.reader = {.batch_size = spec.train.batch_size, .shuffle = shuffle, .epochs = epochs};
  MUSTER_ASSIGN_OR_RETURN(const auto input, Input::Open(*files, model, input_spec));
  int64_t rows = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, input->Next());
    if (batch == nullptr) break;
    rows += batch->features.rows;
  }
  std::printf("{\"rows\": %lld}\n", static_cast<long long>(rows));
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::train

int main(int argc, char** argv) {
  int64_t epochs = 0;
  const bool ordered = argc == 5 && std::string(argv[4]) == "ordered";
  if ((argc != 4 && !ordered) || !absl::SimpleAtoi(argv[3], &epochs)) {
    std::fprintf(stderr, "usage: read_rows MODEL DATA EPOCHS [ordered]\n");
    return 2;
  }
  const absl::Status status = muster::train::ReadRows(argv[1], argv[2], epochs, !ordered);
  if (status.ok()) return 0;
  std::fprintf(stderr, "read_rows: %s\n", std::string(status.message()).c_str());
  return 1;
}
