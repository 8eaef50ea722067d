#include "muster/data/parquet/parquet_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"

namespace muster::data {
namespace {

using formats::Json;
using process::Descriptor;

constexpr const char* kProgramName = "muster-parquet";
constexpr double kEndSeconds = 30;            // after its connection has ended
constexpr int kSilentMilliseconds = 600'000;  // a row group of a slow file system
constexpr uint32_t kMaxAnswerBytes = uint32_t{64} << 20;
constexpr size_t kMaxErrorBytes = 4096;
constexpr std::string_view kNoPackage = "has no package pyarrow";

absl::StatusOr<std::filesystem::path> OwnPath() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "cannot find the program that runs");
  return path;
}

struct Ends {
  Descriptor here, there;
};

absl::StatusOr<Ends> MakeConnection(int type) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "make a connection");
  }
  return Ends{Descriptor(ends[0]), Descriptor(ends[1])};
}

absl::Status SendDescriptor(int control, int descriptor) {
  char byte = 0;
  iovec data = {.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  if (sendmsg(control, &message, MSG_NOSIGNAL) == 1) return absl::OkStatus();
  return absl::UnavailableError(StrCat("cannot reach ", kProgramName, ": ", std::strerror(errno)));
}

// The descriptor that came with a message, or none.
Descriptor TakeDescriptor(const msghdr& message) {
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  int descriptor = -1;
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof descriptor)) {
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  }
  return Descriptor(descriptor);
}

}  // namespace

absl::StatusOr<std::shared_ptr<ParquetProgram>> ParquetProgram::Start(const std::string& python) {
  MUSTER_ASSIGN_OR_RETURN(const auto own_path, OwnPath());
  const auto program = own_path.parent_path() / kProgramName;
  if (access(program.c_str(), R_OK) != 0) {
    return absl::NotFoundError(StrCat("no ", kProgramName, " beside ", own_path.string(),
                                      ": install both from the same build"));
  }
  MUSTER_ASSIGN_OR_RETURN(Ends control, MakeConnection(SOCK_SEQPACKET));
  Descriptor errors(memfd_create(kProgramName, MFD_CLOEXEC));
  if (!errors.valid()) return ErrnoStatus(errno, "memfd_create");
  process::ChildSpec spec = {.argv = {python, program.string(), own_path.string()},
                             .environment = process::CurrentEnvironment()};
  spec.stdin_fd = control.there.get();
  spec.stdout_fd = errors.get();
  spec.stderr_fd = errors.get();
  spec.parent_death_signal = 0;  // the starting thread may end; the end of `control` ends it
  MUSTER_ASSIGN_OR_RETURN(auto child, process::Child::Start(spec));
  return std::shared_ptr<ParquetProgram>(
      new ParquetProgram(python, std::move(control.here), std::move(errors), std::move(child)));
}

absl::StatusOr<std::unique_ptr<ParquetConnection>> ParquetProgram::Connect() {
  MUSTER_ASSIGN_OR_RETURN(Ends ends, MakeConnection(SOCK_STREAM));
  const absl::Status sent = SendDescriptor(control_.get(), ends.there.get());
  if (!sent.ok()) return Explain(sent);
  return std::make_unique<ParquetConnection>(shared_from_this(), std::move(ends.here));
}

absl::Status ParquetProgram::Explain(const absl::Status& status) {
  const MutexLock lock(&mutex_);
  const auto exit = child_->Wait(absl::IsUnavailable(status) ? kEndSeconds : 0);
  if (!exit.ok()) return status;
  std::string said(kMaxErrorBytes, '\0');
  const ssize_t size = pread(errors_.get(), said.data(), said.size(), 0);
  said.resize(size < 0 ? 0 : static_cast<size_t>(size));
  said = std::string(absl::StripAsciiWhitespace(said));
  // A traceback's last line is what went wrong.
  if (said.rfind("Traceback", 0) == 0) said = said.substr(said.rfind('\n') + 1);
  if (said.find(kNoPackage) != std::string::npos) return absl::FailedPreconditionError(said);
  return absl::InternalError(StrCat(kProgramName, " (", python_,
                                    ") has ended: ", process::DescribeExit(*exit), " ", said));
}

absl::Status ParquetConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::UnavailableError(
          StrCat("cannot reach ", kProgramName, ": ", std::strerror(errno)));
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status ParquetConnection::Receive(size_t size, char* bytes, Descriptor* memory) {
  for (size_t done = 0; done < size;) {
    pollfd readable = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, kSilentMilliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return absl::DeadlineExceededError(
          StrCat(kProgramName, " gave no answer in ", kSilentMilliseconds / 1000, " s"));
    }
    iovec part = {.iov_base = bytes + done, .iov_len = size - done};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t count = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError(StrCat(kProgramName, " has ended"));
    if (Descriptor came = TakeDescriptor(message); came.valid()) *memory = std::move(came);
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParquetConnection::Call(const Json& request, Descriptor* memory) {
  const std::string text = formats::PrintJson(request);
  const auto length = static_cast<uint32_t>(text.size());
  std::string message(reinterpret_cast<const char*>(&length), sizeof length);
  absl::Status status = Send(message + text);
  uint32_t size = 0;
  if (status.ok()) status = Receive(sizeof size, reinterpret_cast<char*>(&size), memory);
  if (status.ok() && size > kMaxAnswerBytes) {
    status = absl::DataLossError(StrCat(kProgramName, " gave an answer of ", size, " bytes"));
  }
  std::string answer(status.ok() ? size : 0, '\0');
  if (status.ok()) status = Receive(answer.size(), answer.data(), memory);
  if (!status.ok()) return program_->Explain(status);
  MUSTER_ASSIGN_OR_RETURN(Json json, formats::ParseJsonObject(answer, kProgramName));
  formats::JsonFields fields(json, kProgramName);
  const std::string error = fields.Text("error");
  if (!error.empty()) return absl::InvalidArgumentError(error);
  return json;
}

}  // namespace muster::data
