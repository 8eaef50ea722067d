#include "muster/engine/tensorflow/host_process.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"

#include "muster/formats/bundle.h"
#include "muster/process/deadline.h"

namespace muster::engine::tensorflow {
namespace {

using host::Answer;
using host::Request;
using host::RequestKind;
using host::TensorPlace;

constexpr const char* kProgramName = "muster-tensorflow";
constexpr uint64_t kLeastReplyBytes = 64 << 10;
constexpr double kEndSeconds = 30;  // limit for the kernel to end a killed process

// Returns the path of the host program, which lies beside this one.
absl::StatusOr<std::string> FindHostProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path program = self.parent_path() / kProgramName;
  if (!error && std::filesystem::exists(program, error)) return program.string();
  return absl::NotFoundError(
      StrCat("no ", kProgramName, " beside ", self.string(), ": install both from the same build"));
}

std::string_view GetName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kOpen:
      return "load TensorFlow";
    case RequestKind::kLoad:
      return "load the model";
    case RequestKind::kDefine:
      return "find a signature's tensors";
    case RequestKind::kRun:
    case RequestKind::kCollect:
      return "compute";
    case RequestKind::kEnd:
      return "end";
  }
  return "answer";
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostProcess>> HostProcess::Start(HostSpec spec) {
  if (spec.program.empty()) {
    MUSTER_ASSIGN_OR_RETURN(spec.program, FindHostProgram());
  }
  if (!process::FindEnvironment("TF_CPP_MIN_LOG_LEVEL", spec.environment)) {
    process::SetEnvironment("TF_CPP_MIN_LOG_LEVEL", "1", &spec.environment);  // warnings
  }
  // tcmalloc must not return memory between steps, since the next step needs it again.
  if (!process::FindEnvironment("TCMALLOC_RELEASE_RATE", spec.environment)) {
    process::SetEnvironment("TCMALLOC_RELEASE_RATE", "0", &spec.environment);
  }
  std::unique_ptr<HostProcess> host(new HostProcess(std::move(spec)));
  MUSTER_ASSIGN_OR_RETURN(host->segment_, host::SharedSegment::Create());
  static_assert(sizeof(host::Control) <= host::kLeastSegmentBytes);
  MUSTER_RETURN_IF_ERROR(host->segment_->Allocate(sizeof(host::Control)).status());
  MUSTER_RETURN_IF_ERROR(host->reply_.Reserve(*host->segment_, kLeastReplyBytes).status());
  Outcome begun;
  for (int i = 0; i < host->spec_.tries; ++i) {
    begun = host->Begin();
    if (!begun.lost || begun.hung) break;  // the next one would hang just as long
  }
  MUSTER_RETURN_IF_ERROR(begun.status);
  return host;
}

HostProcess::~HostProcess() = default;

pid_t HostProcess::pid() const { return child_ == nullptr ? -1 : child_->pid(); }

absl::Status HostProcess::Spawn() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    const int error = errno;
    return ErrnoStatus(error, "make a socket to a TensorFlow host");
  }
  socket_.Reset(ends[0]);
  const process::Descriptor theirs(ends[1]);
  // The host waits by reading its eventfd. This side polls the other eventfd, with a deadline and
  // together with the socket.
  requests_.Reset(eventfd(0, EFD_CLOEXEC));
  answers_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!requests_.valid() || !answers_.valid()) {
    const int error = errno;
    return ErrnoStatus(error, "make an eventfd for a TensorFlow host");
  }
  MUSTER_ASSIGN_OR_RETURN(output_, OutputTail::Open());
  const process::ChildSpec spec = {
      .argv = {spec_.program},
      .environment = spec_.environment,
      .stdout_fd = output_->writer_fd(),
      .stderr_fd = output_->writer_fd(),
      .inherited = {{.from = theirs.get(), .to = host::kSocketFd},
                    {.from = segment_->fd(), .to = host::kMemoryFd},
                    {.from = requests_.get(), .to = host::kRequestEventFd},
                    {.from = answers_.get(), .to = host::kAnswerEventFd}},
      .group = process::ChildSpec::Group::kOwnGroup,
  };
  MUSTER_ASSIGN_OR_RETURN(child_, process::Child::Start(spec));
  output_->CloseWriter();
  sequence_ = 0;
  ++starts_;
  return absl::OkStatus();
}

HostProcess::Outcome HostProcess::Begin() {
  Rest();  // a process's children inherit the cores it is pinned to
  if (const absl::Status status = Spawn(); !status.ok()) return {status};
  Outcome outcome = Prepare();
  if (outcome.status.ok() && spec_.one_core && !core_) core_ = process::CoreClaim::Take();
  if (outcome.status.ok() && core_ && !core_->Bind(child_->pid())) core_.reset();
  // If a function could not be made ready, this host is of no use to the next request.
  if (!outcome.status.ok()) child_.reset();
  return outcome;
}

HostProcess::Outcome HostProcess::Prepare() {
  fields_.Clear();
  fields_.Text(spec_.library_folder);
  Outcome outcome = Ask(RequestKind::kOpen, spec_.start_seconds);
  if (!outcome.status.ok()) return outcome;
  std::string_view version;
  if (!host::FieldReader({segment_->at(reply_.offset()), outcome.reply_bytes}).Text(&version)) {
    return {absl::DataLossError("the TensorFlow host sent no version")};
  }
  version_ = version;
  fields_.Clear();
  fields_.Text(spec_.saved_model);
  fields_.Text(spec_.config);
  outcome = Ask(RequestKind::kLoad, spec_.start_seconds);
  for (size_t i = 0; outcome.status.ok() && i < functions_.size(); ++i) {
    uint64_t number = 0;
    outcome = Define(functions_[i], &number);
  }
  return outcome;
}

HostProcess::Outcome HostProcess::Define(const FunctionSpec& function, uint64_t* number) {
  fields_.Clear();
  fields_.Number(function.feeds.size());
  for (const FunctionSpec::Feed& feed : function.feeds) {
    fields_.Text(feed.tensor);
    fields_.Number(feed.type);
  }
  fields_.Number(function.fetches.size());
  for (const std::string& fetch : function.fetches) fields_.Text(fetch);
  Outcome outcome = Ask(RequestKind::kDefine, spec_.run_seconds);
  if (outcome.status.ok() &&
      !host::FieldReader({segment_->at(reply_.offset()), outcome.reply_bytes}).Number(number)) {
    outcome.status = absl::DataLossError("the TensorFlow host sent no number for a function");
  }
  return outcome;
}

absl::StatusOr<uint64_t> HostProcess::Define(const FunctionSpec& function) {
  Outcome outcome;
  uint64_t number = 0;
  for (int i = 0; i < spec_.tries; ++i) {
    outcome = child_ == nullptr ? Begin() : Outcome();
    if (outcome.status.ok()) outcome = Define(function, &number);
    if (!outcome.lost) break;
  }
  MUSTER_RETURN_IF_ERROR(outcome.status);
  if (number != functions_.size()) {
    return absl::DataLossError(
        StrCat("the TensorFlow host gives function ", functions_.size(), " the number ", number));
  }
  functions_.push_back(function);
  return number;
}

HostProcess::Waited HostProcess::Wait(double seconds) {
  uint64_t count = 1;
  if (write(requests_.get(), &count, sizeof count) != sizeof count) return Waited::kGone;
  const process::Deadline deadline = process::Deadline::After(seconds);
  const int fds[] = {answers_.get(), socket_.get()};
  while (process::PollReadable(fds, 2, deadline)) {
    if (read(answers_.get(), &count, sizeof count) == sizeof count) return Waited::kAnswered;
    // The socket never carries data; only its end matters.
    pollfd socket = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&socket, 1, 0) > 0) return Waited::kGone;
  }
  return Waited::kLate;
}

HostProcess::Outcome HostProcess::Ask(RequestKind kind, double seconds) {
  const std::span<const std::byte> body = fields_.bytes();
  const absl::StatusOr<uint64_t> at = body_.Reserve(*segment_, body.size());
  if (!at.ok()) return {at.status()};
  std::copy(body.begin(), body.end(), segment_->at(*at));
  const Request request{.kind = kind,
                        .sequence = ++sequence_,
                        .segment_bytes = segment_->bytes(),
                        .body = *at,
                        .body_bytes = body.size(),
                        .reply = reply_.offset(),
                        .reply_room = reply_.capacity()};
  std::memcpy(segment_->at(0), &request, sizeof request);
  if (const Waited waited = Wait(seconds); waited != Waited::kAnswered) {
    const bool late = waited == Waited::kLate;
    const std::string what =
        late ? StrCat(GetName(kind), " in ", seconds, " s") : std::string(GetName(kind));
    return Lose(what, late);
  }
  Answer answer;
  std::memcpy(&answer, segment_->at(offsetof(host::Control, answer)), sizeof answer);
  Outcome outcome{.status = CheckAnswer(answer, request), .reply_bytes = answer.reply_bytes};
  if (!outcome.status.ok() || answer.code == 0) return outcome;
  std::string_view text = "no reason";
  if (answer.reply_bytes <= reply_.capacity()) {
    host::FieldReader({segment_->at(reply_.offset()), answer.reply_bytes}).Text(&text);
  }
  outcome.status = absl::Status(static_cast<absl::StatusCode>(answer.code), ToAbsl(text));
  return outcome;
}

HostProcess::Outcome HostProcess::Lose(std::string_view what, bool hung) {
  // A host that hangs, or that has only closed its end, must not stay; killing one that has ended
  // does no harm.
  if (hung) child_->SignalGroup(SIGKILL).IgnoreError();
  absl::StatusOr<process::ExitInfo> exit = child_->Wait(kEndSeconds);
  const pid_t pid = child_->pid();
  child_.reset();
  socket_.Reset();
  requests_.Reset();
  answers_.Reset();
  const std::vector<std::string> lines = output_->Finish();
  output_.reset();
  std::string how = !exit.ok() ? "it did not end"
                    : hung     ? "it was killed"
                               : process::DescribeExit(*exit);
  const int signal_number = exit.ok() && !hung ? exit->signal : 0;
  if (signal_number == SIGILL) {
    how +=
        ": this processor lacks instructions that this TensorFlow was built for: install one "
        "that was built for it";
  } else if (signal_number == SIGKILL) {
    how += ": perhaps the memory was too small: use smaller batches or a machine with more";
  }
  const std::string last = lines.empty()
                               ? "it printed nothing"
                               : StrCat("its last lines:\n  ", absl::StrJoin(lines, "\n  "));
  const std::string message =
      StrCat("the TensorFlow host (", spec_.program, ", process ", pid, ") was to ", what,
             hung ? " and did not: " : " and died: ", how, "; ", last);
  return {.status = signal_number == SIGKILL ? absl::ResourceExhaustedError(message)
                                             : absl::UnavailableError(message),
          .lost = true,
          .hung = hung};
}

absl::StatusOr<uint64_t> HostProcess::Insist(uint64_t function,
                                             std::span<const TensorPlace> feeds) {
  Outcome outcome;
  for (int i = 0; i < spec_.tries; ++i) {
    outcome = child_ == nullptr ? Begin() : Outcome();
    if (outcome.status.ok()) {
      fields_.Clear();
      fields_.Number(function);
      for (const TensorPlace& feed : feeds) feed.Write(fields_);
      if (core_ && !stay_) stay_.emplace(*core_);
      outcome = Ask(RequestKind::kRun, spec_.run_seconds);
    }
    if (outcome.status.ok() && outcome.reply_bytes > reply_.capacity()) {
      MUSTER_RETURN_IF_ERROR(reply_.Reserve(*segment_, outcome.reply_bytes).status());
      fields_.Clear();
      outcome = Ask(RequestKind::kCollect, spec_.run_seconds);
    }
    if (!outcome.lost) break;
  }
  MUSTER_RETURN_IF_ERROR(outcome.status);
  return outcome.reply_bytes;
}

absl::StatusOr<std::span<const TensorPlace>> HostProcess::Run(uint64_t function,
                                                              std::span<const TensorPlace> feeds) {
  if (function >= functions_.size() || feeds.size() != functions_[function].feeds.size()) {
    return absl::InternalError(StrCat("function ", function, " of the TensorFlow host is given ",
                                      feeds.size(), " feeds, which is not its number"));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, Insist(function, feeds));
  MUSTER_RETURN_IF_ERROR(ReadPlaces(function, bytes));
  return places_;
}

absl::Status HostProcess::ReadPlaces(uint64_t function, uint64_t bytes) {
  const std::vector<std::string>& fetches = functions_[function].fetches;
  const uint64_t begin = reply_.offset();
  const auto refuse = [&](std::string_view what) {
    return absl::DataLossError(StrCat("the TensorFlow host's answer: ", what));
  };
  if (bytes > reply_.capacity()) return refuse("it is longer than the memory reserved for it");
  host::FieldReader reader({segment_->at(begin), bytes});
  uint64_t count = 0;
  if (!reader.Number(&count) || count != fetches.size())
    return refuse("its number of tensors is wrong");
  places_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    TensorPlace& place = places_[i];
    uint64_t elements = 0;
    const bool lies_in = place.Read(reader) && place.Elements(&elements) && place.offset >= begin &&
                         place.offset - begin <= bytes &&
                         place.bytes <= bytes - (place.offset - begin) &&
                         place.offset % host::kAlignment == 0;
    if (!lies_in) return refuse(StrCat(fetches[i], " lies outside the reply"));
    const auto type = static_cast<formats::DataType>(place.type);
    const bool fits = place.type == host::kStringType
                          ? host::GoodStrings({segment_->at(place.offset), place.bytes}, elements)
                          : place.bytes == elements * formats::DataTypeBytes(type);
    if (!fits) return refuse(StrCat(fetches[i], " does not have the length for its shape"));
  }
  return absl::OkStatus();
}

}  // namespace muster::engine::tensorflow
