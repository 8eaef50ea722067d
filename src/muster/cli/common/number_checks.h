// Error messages for numbers that a flag does not accept.
#pragma once

#include "CLI/App.hpp"

namespace muster::cli {

// Makes every CLI::PositiveNumber and CLI::NonNegativeNumber of `app` and its verbs say "must be
// above 0" or "must not be below 0": their own message prints the largest double, of 309 digits.
// Call it after all flags have been added.
void SayBounds(CLI::App& app);

}  // namespace muster::cli
