// The output of a trial that is a program: lines of JSON, as command_objective.h describes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/tune/runner.h"

namespace muster::tune {

// Takes the output as it comes, and gives its lines that have the metric to `report`. Arguments
// must outlive it.
class OutputReader {
 public:
  // `trial`: whose output it is; `muster train` counts the records of its parents, too.
  OutputReader(const std::string& metric, const Trial& trial, const AddReport& report)
      : metric_(metric), trial_(trial), report_(report) {}

  // Returns why the trial must stop, or "": the line to which this is the answer is the last one
  // that counts, however many the trial has printed by then. Errors are those of `report`.
  absl::StatusOr<std::string> Add(std::string_view bytes);
  // Takes a last line without an end.
  absl::Status Finish();

  bool has_value() const { return reports_ > 0; }
  const Report& last() const { return last_; }
  // The error of a trial that has ended well and printed no value. `log`: where its output is.
  absl::Status DescribeNoValue(const std::string& log) const;

 private:
  absl::StatusOr<std::string> AddLine(std::string_view line);
  static int64_t FindInt(const Json& json, std::initializer_list<const char*> names,
                         int64_t fallback);

  uint64_t CountRecords(const Json& json) const;

  const std::string& metric_;
  const Trial& trial_;
  const AddReport& report_;
  std::string line_, last_line_;
  int64_t reports_ = 0;
  Report last_;
};

// ": " with the last line of the log file, which is the error that a program prints before it ends;
// "" where there is none.
std::string ReadLastLine(const std::string& log);

}  // namespace muster::tune
