// --cache: compiled features that later epochs and trainings read in place of the data.
#pragma once

#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/train/input/compiled/feature_cache.h"

namespace muster::cli {

struct CacheFlags {
  std::string where = "off";  // "off", "auto" or a folder
  double limit_gib = 20;
};
void AddCacheFlags(CLI::App& verb, CacheFlags* flags);
// Null for "off", and for "auto" where this machine has no folder for it. Errors of making the
// folder that the flag names.
absl::StatusOr<std::shared_ptr<const train::FeatureCache>> OpenCache(const CacheFlags& flags);

}  // namespace muster::cli
