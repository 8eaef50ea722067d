#include "muster/cli/common/format_flags.h"

#include <cstdio>
#include <memory>
#include <set>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/base/mutex.h"

namespace muster::cli {
namespace {

constexpr char kGroup[] = "Format of the data (default: as the model file says, else found)";

// A flag whose value `parse` reads into *to.
template <typename Value>
CLI::Option* AddParsed(CLI::App& verb, const std::string& name, const std::string& help,
                       absl::StatusOr<Value> (*parse)(std::string_view), std::optional<Value>* to) {
  return verb
      .add_option_function<std::string>(
          name,
          [name, parse, to](const std::string& text) {
            const absl::StatusOr<Value> value = parse(text);
            if (!value.ok()) {
              throw CLI::ValidationError(name, std::string(value.status().message()));
            }
            *to = *value;
          },
          help)
      ->group(kGroup);
}

void AddList(CLI::App& verb, const std::string& name, const std::string& help,
             const std::function<void(const std::vector<std::string>&)>& take) {
  verb.add_option_function<std::vector<std::string>>(name, take, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B,...")
      ->group(kGroup);
}

void AddSwitch(CLI::App& verb, const std::string& name, const std::string& help,
               std::optional<bool>* to) {
  verb.add_flag_function(
          StrCat("--", name, ",!--no-", name), [to](int64_t count) { *to = count > 0; }, help)
      ->group(kGroup);
}

struct Printed {
  Mutex mutex;
  std::set<std::string> texts ABSL_GUARDED_BY(mutex);
};

}  // namespace

void AddFormatFlags(CLI::App& verb, formats::DataFormat* format) {
  AddParsed(verb, "--data-format", "csv, tfrecord, or jsonl for JSON lines (one object a line)",
            &formats::ParseFileFormat, &format->type)
      ->type_name("FORMAT");
  AddParsed(verb, "--delimiter", "Between the cells of CSV: a character, tab, or ^A (Hive's)",
            &formats::ParseDelimiter, &format->delimiter)
      ->type_name("CHAR");
  AddSwitch(verb, "header", "Whether the first row of CSV names the columns", &format->header);
  AddList(verb, "--columns",
          "Names of the cells of CSV without a header (default: the model's inputs)",
          [format](const std::vector<std::string>& names) { format->columns = names; });
  AddSwitch(verb, "trim", "Leave out spaces around the cells of CSV", &format->trim);
  AddParsed(verb, "--quote", "Around cells of CSV: \", ' or none", &formats::ParseQuote,
            &format->quote)
      ->type_name("CHAR");
  AddList(verb, "--missing", "Values that are none, in every column, such as NA",
          [format](const std::vector<std::string>& marks) { format->missing = marks; });
  AddParsed(verb, "--encoding-errors",
            "Rows of CSV that are not UTF-8: keep, error, replace or latin1",
            &formats::ParseEncodingErrors, &format->encoding_errors)
      ->type_name("WAY");
}

std::function<void(const std::string&)> PrintNotesOnce() {
  return [printed = std::make_shared<Printed>()](const std::string& text) {
    MutexLock lock(&printed->mutex);
    if (printed->texts.insert(text).second) std::fprintf(stderr, "note: %s\n", text.c_str());
  };
}

}  // namespace muster::cli
