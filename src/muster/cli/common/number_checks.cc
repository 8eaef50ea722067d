#include "muster/cli/common/number_checks.h"

#include <string>

#include "absl/strings/numbers.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"

namespace muster::cli {
namespace {

// CLI11 knows them by these words, which --help shows.
constexpr const char* kPositive = "POSITIVE";
constexpr const char* kNonNegative = "NONNEGATIVE";

void SayBounds(CLI::Validator& validator) {
  const std::string description = validator.get_description();
  const bool positive = description == kPositive;
  if (!positive && description != kNonNegative) return;
  validator.operation([positive](std::string& text) -> std::string {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) return StrCat("'", text, "' is not a number");
    if (positive ? value > 0 : value >= 0) return "";
    return StrCat(text, " is refused: it must ", positive ? "be above 0" : "not be below 0");
  });
}

void SayBounds(CLI::Option& option) {
  for (int i = 0;; ++i) {
    try {
      SayBounds(*option.get_validator(i));
    } catch (const CLI::OptionNotFound&) {
      return;
    }
  }
}

}  // namespace

void SayBounds(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) SayBounds(*option);
  for (CLI::App* const verb : app.get_subcommands([](CLI::App*) { return true; })) {
    SayBounds(*verb);
  }
}

}  // namespace muster::cli
