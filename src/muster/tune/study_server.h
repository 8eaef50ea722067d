// StudyServer: a study whose trials another program runs. It is called by one object of JSON a
// line, and answers each with one (docs/formats/study_calls.md).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "muster/base/clock.h"
#include "muster/tune/study_journal.h"

namespace muster::tune {

// One owner thread.
class StudyServer {
 public:
  // `journal` and `clock` must outlive the server.
  StudyServer(StudyJournal& journal, const Clock& clock);

  // Does what one line asks for. The answer has a member "error" if that was not possible; then
  // nothing has changed. Each change is durable before its answer is returned.
  Json Answer(std::string_view line);

 private:
  absl::StatusOr<Json> Do(const Json& call);
  absl::StatusOr<Json> Ask(const Json& call);
  absl::StatusOr<Json> Report(const Json& call);
  absl::StatusOr<Json> Tell(const Json& call);
  absl::StatusOr<Trial> FindRunning(const Json& call) const;
  Json Describe() const;
  Json DescribeTrial(const Trial& trial) const;

  StudyJournal& journal_;
  const Clock& clock_;
  std::map<int64_t, int64_t> begun_;  // by trial, in nanoseconds of the clock
};

}  // namespace muster::tune
