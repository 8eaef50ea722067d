#include "muster/cli/train/cache_flags.h"

#include <cstdlib>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/process/build_id.h"

namespace muster::cli {
namespace {

constexpr double kGiB = 1 << 30;

std::string GetVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "" if this user has no folder for what can be made again. A relative XDG_CACHE_HOME does not
// count (XDG Base Directory Specification 0.8).
std::string UsualFolder() {
  std::string folder = GetVariable("XDG_CACHE_HOME");
  if (!folder.starts_with('/')) folder = "";
  if (folder.empty() && !GetVariable("HOME").empty()) folder = GetVariable("HOME") + "/.cache";
  return folder.empty() ? "" : folder + "/muster/features";
}

}  // namespace

void AddCacheFlags(CLI::App& verb, CacheFlags* flags, const std::string& help,
                   const std::string& type) {
  auto* const cache =
      verb.add_option("--cache", flags->where, StrCat(help, " (default: ", flags->where, ")"))
          ->check(CheckNotEmpty)
          ->type_name(type);
  verb.add_option("--cache-limit", flags->limit_gib,
                  "GiB that the files of --cache take together: those used longest ago are removed")
      ->needs(cache)
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("GIB");
}

absl::StatusOr<std::shared_ptr<const train::FeatureCache>> OpenCache(const CacheFlags& flags,
                                                                     uint64_t least_data) {
  if (flags.where == "off") return nullptr;
  const bool is_auto = flags.where == "auto";
  train::FeatureCacheOptions options = {.folder = is_auto ? UsualFolder() : flags.where,
                                        .most_bytes = static_cast<uint64_t>(flags.limit_gib * kGiB),
                                        .least_data = is_auto ? least_data : 0,
                                        .version = StrCat(Version(), " ", process::GetBuildId())};
  if (options.folder.empty()) return nullptr;
  auto cache = train::FeatureCache::Open(std::move(options));
  if (cache.ok()) return *std::move(cache);
  if (is_auto) return nullptr;
  return Annotate(cache.status(), "--cache");
}

std::string DescribeNoUsualFolder() {
  const std::string folder = UsualFolder();
  return folder.empty() ? "HOME is not set" : StrCat("nothing can be written in ", folder);
}

}  // namespace muster::cli
