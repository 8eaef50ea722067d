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
// Adds --cache, with this help and type of its value, and --cache-limit.
void AddCacheFlags(CLI::App& verb, CacheFlags* flags, const std::string& help,
                   const std::string& type);
// Null for "off", and for "auto" where this machine has no folder for it. Errors of making the
// folder that the flag names. With "auto", data of fewer bytes than `least_data` is not compiled.
inline constexpr uint64_t kLeastCachedData = uint64_t{64} << 20;
absl::StatusOr<std::shared_ptr<const train::FeatureCache>> OpenCache(
    const CacheFlags& flags, uint64_t least_data = kLeastCachedData);

// Why OpenCache() gave null for "auto": "HOME is not set".
std::string DescribeNoUsualFolder();

}  // namespace muster::cli
