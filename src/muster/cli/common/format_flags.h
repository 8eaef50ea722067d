// The flags for the format of data, which every verb that reads data has (docs/data.md). A flag
// replaces the model file's setting.
#pragma once

#include <functional>
#include <string>

#include "CLI/App.hpp"
#include "muster/formats/data_format.h"

namespace muster::cli {

// Adds --data-format, --delimiter, --header, --columns, --trim, --quote, --missing and
// --encoding-errors. Wrong values are thrown as CLI11 does.
void AddFormatFlags(CLI::App& verb, formats::DataFormat* format);

// Prints "note: TEXT" to stderr, each text once. Thread-safe; copies share what was printed.
std::function<void(const std::string&)> PrintNotesOnce();

}  // namespace muster::cli
