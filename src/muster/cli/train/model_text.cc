#include "muster/cli/train/model_text.h"

#include <cstdlib>

namespace muster::cli {
namespace {

constexpr std::string_view kPrefix = "env:";
constexpr uint64_t kMaxBytes = uint64_t{16} << 20;

}  // namespace

absl::StatusOr<std::string> ReadModelText(io::FileSystem& files, const std::string& spec) {
  if (!spec.starts_with(kPrefix)) return io::ReadFile(files, spec, kMaxBytes);
  const char* const text = std::getenv(spec.c_str() + kPrefix.size());
  if (text != nullptr) return std::string(text);
  return absl::NotFoundError(StrCat(spec, ": this environment variable is not set"));
}

absl::StatusOr<model::ModelSpec> LoadModel(io::FileSystem& files, const std::string& spec,
                                           std::span<const std::string> settings) {
  if (!spec.starts_with(kPrefix)) return model::LoadModelSpec(files, spec, settings);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadModelText(files, spec));
  return model::ParseModelSpec(files, text, spec, settings);
}

}  // namespace muster::cli
