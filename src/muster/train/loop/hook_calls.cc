#include "muster/train/loop/hook_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "muster/base/json_depth.h"
#include "muster/base/nearest.h"
#include "muster/train/loop/model_fn.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

constexpr size_t kLongestAnswer = 1 << 20;
constexpr int kDeepestAnswer = 8;

constexpr std::string_view kCalls[] = {
    "train.begin",   "train.create",   "train.before_run",   "train.after_run",   "train.end",
    "eval.begin",    "eval.create",    "eval.before_run",    "eval.after_run",    "eval.end",
    "predict.begin", "predict.create", "predict.before_run", "predict.after_run", "predict.end",
    "save.begin",    "save.before",    "save.after",         "save.end"};

bool WantsAny(const HookCalls& calls, std::string_view prefix) {
  return std::any_of(std::begin(kCalls), std::end(kCalls), [&](std::string_view call) {
    return call.starts_with(prefix) && calls.Wants(call);
  });
}

absl::StatusOr<bool> ParseAnswer(const std::string& line) {
  nlohmann::json answer = nlohmann::json::value_t::discarded;
  if (FindDeeperJson(line, kDeepestAnswer) == std::string_view::npos) {
    answer = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  }
  if (!answer.is_object()) {
    return absl::InvalidArgumentError(StrCat("the answer '", line.substr(0, 200),
                                             "' is not a JSON object; write {\"stop\": false}"));
  }
  if (const auto error = answer.find("error"); error != answer.end()) {
    return absl::FailedPreconditionError(error->is_string() ? error->get<std::string>()
                                                            : error->dump());
  }
  const auto stop = answer.find("stop");
  return stop != answer.end() && stop->is_boolean() && stop->get<bool>();
}

class CalledHook : public Hook {
 public:
  CalledHook(std::shared_ptr<HookCalls> calls, ModeKeys mode)
      : calls_(std::move(calls)), prefix_(StrCat(ModeName(mode), ".")) {}

  absl::Status Begin(Session& session) override { return Call("begin", session); }
  absl::Status AfterCreateSession(Session& session) override {
    created_ = session.mode != ModeKeys::kTrain;
    return created_ ? Call("create", session) : absl::OkStatus();
  }
  absl::Status BeforeRun(Session& session) override {
    if (!std::exchange(created_, true)) MUSTER_RETURN_IF_ERROR(Call("create", session));
    return Call("before_run", session);
  }
  absl::Status AfterRun(Session& session, const StepValues& values) override {
    return Call("after_run", session, &values);
  }
  absl::Status End(Session& session) override { return Call("end", session); }

 private:
  absl::Status Call(std::string_view call, Session& session, const StepValues* values = nullptr) {
    MUSTER_ASSIGN_OR_RETURN(const bool stop,
                            calls_->Call(StrCat(prefix_, call), session.step, values));
    if (stop) session.RequestStop("");
    return absl::OkStatus();
  }

  const std::shared_ptr<HookCalls> calls_;
  const std::string prefix_;
  bool created_ = false;
};

class CalledListener : public CheckpointListener {
 public:
  explicit CalledListener(std::shared_ptr<HookCalls> calls) : calls_(std::move(calls)) {}

  absl::Status Begin(Session& session) override {
    return calls_->Call("save.begin", session.step).status();
  }
  absl::Status BeforeSave(Session&, int64_t step) override {
    return calls_->Call("save.before", step).status();
  }
  bool WaitsForSave(Session&, int64_t) override { return calls_->Wants("save.after"); }
  absl::StatusOr<bool> AfterSave(Session&, int64_t step) override {
    return calls_->Call("save.after", step);
  }
  absl::Status End(Session&, int64_t step) override {
    return calls_->Call("save.end", step).status();
  }

 private:
  const std::shared_ptr<HookCalls> calls_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<HookCalls>> HookCalls::Create(const std::vector<std::string>& wanted,
                                                             std::FILE* out, int answers) {
  const std::vector<std::string> all(std::begin(kCalls), std::end(kCalls));
  for (const std::string& call : wanted) {
    if (std::find(all.begin(), all.end(), call) == all.end()) {
      return absl::InvalidArgumentError(
          StrCat("'", call, "' is not a call of a hook", DidYouMean(call, all)));
    }
  }
  if (fcntl(answers, F_GETFD) < 0) {
    return absl::InvalidArgumentError(
        StrCat("file descriptor ", answers, " for the answers of hooks is not open"));
  }
  return std::shared_ptr<HookCalls>(new HookCalls({wanted.begin(), wanted.end()}, out, answers));
}

absl::StatusOr<bool> HookCalls::Call(std::string_view call, int64_t step,
                                     const StepValues* values) {
  if (alone_) return true;
  if (!Wants(call)) return false;
  nlohmann::ordered_json object = {{"event", "call"}, {"call", std::string(call)}, {"step", step}};
  if (values != nullptr) {
    object["loss"] = values->loss;  // null where it is not finite
    object["rows"] = values->rows;
  }
  const std::string line = object.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
  const auto stop = Answer();
  if (!stop.ok()) return Annotate(stop.status(), StrCat(call, " at step ", step));
  return *stop;
}

absl::StatusOr<bool> HookCalls::Answer() {
  std::string line;
  MUSTER_ASSIGN_OR_RETURN(const bool answered, ReadLine(&line));
  if (answered) return ParseAnswer(line);
  alone_ = true;
  return true;
}

absl::StatusOr<bool> HookCalls::ReadLine(std::string* line) {
  size_t end;
  while ((end = unread_.find('\n')) == std::string::npos) {
    if (unread_.size() > kLongestAnswer) {
      return absl::InvalidArgumentError("an answer has more than 1 MiB");
    }
    char buffer[4096];
    const ssize_t n = read(answers_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "reading the answer of a hook");
    if (n == 0) return false;
    unread_.append(buffer, static_cast<size_t>(n));
  }
  *line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return true;
}

std::shared_ptr<Hook> NewCalledHook(std::shared_ptr<HookCalls> calls, ModeKeys mode) {
  if (!WantsAny(*calls, StrCat(ModeName(mode), "."))) return nullptr;
  return std::make_shared<CalledHook>(std::move(calls), mode);
}

std::shared_ptr<CheckpointListener> NewCalledListener(std::shared_ptr<HookCalls> calls) {
  if (!WantsAny(*calls, "save.")) return nullptr;
  return std::make_shared<CalledListener>(std::move(calls));
}

}  // namespace muster::train
