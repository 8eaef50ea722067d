#include "muster/files/tensorflow/file_client.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

namespace muster::files {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;  // gathered before they are sent

Outcome Ended(const std::string& path) {
  return {Outcome::kUnavailable,
          path + ": the process of muster that reaches this file has ended or cannot be reached"};
}

bool SendDescriptor(int control, int descriptor) {
  char byte = 0;
  iovec data = {.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  ssize_t count = 0;
  do {
    count = sendmsg(control, &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

std::string_view Bytes(const FileRequestHead& head) {
  return {reinterpret_cast<const char*>(&head), sizeof(head)};
}

}  // namespace

// The service of one process, and the connections to it that no call uses.
struct FileClient::Service {
  struct Connection {
    int fd = -1;
    uint64_t start = 0;  // of the service that it goes to: the first, the second...
  };

  explicit Service(pid_t owner) : process(owner) {}
  ~Service() { Close(); }

  Outcome Take(const Start& start_service, const std::string& path, Connection* connection) {
    const std::lock_guard lock(mutex);
    if (control < 0) {
      Outcome outcome = start_service(&control);
      if (!outcome.ok()) return outcome;
      ++starts;
    }
    connection->start = starts;
    if (!idle.empty()) {
      connection->fd = idle.back();
      idle.pop_back();
      return {};
    }
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return {Outcome::kResourceExhausted,
              path + ": cannot make a connection to muster: " + std::strerror(errno)};
    }
    const bool sent = SendDescriptor(control, ends[1]);
    close(ends[1]);
    connection->fd = ends[0];
    if (sent) return {};
    close(ends[0]);
    Close();
    return Ended(path);
  }
  void GiveBack(Connection connection) {
    const std::lock_guard lock(mutex);
    if (connection.start == starts && control >= 0) {
      idle.push_back(connection.fd);
    } else {
      close(connection.fd);
    }
  }
  void Fail(Connection connection) {
    close(connection.fd);
    const std::lock_guard lock(mutex);
    if (connection.start == starts) Close();
  }
  void Close() {
    if (control >= 0) close(control);
    control = -1;
    for (const int connection : idle) close(connection);
    idle.clear();
  }

  const pid_t process;
  std::mutex mutex;  // of what follows
  int control = -1;
  uint64_t starts = 0;
  std::vector<int> idle;
};

FileClient::~FileClient() { delete service_.load(); }

FileClient::Service& FileClient::Current() {
  Service* now = service_.load();
  while (now == nullptr || now->process != getpid()) {
    auto next = std::make_unique<Service>(getpid());
    // That of the parent process is left as it is: its mutex may be held for all time.
    if (service_.compare_exchange_strong(now, next.get())) now = next.release();
  }
  return *now;
}

Outcome FileClient::Exchange(const FileCall& call, FileAnswerHead* head, std::string* data,
                             char* buffer) {
  if (call.path.size() > kMaxPathBytes || call.data.size() > kMaxPieceBytes) {
    return {Outcome::kInvalidArgument, call.path + ": the path is too long"};
  }
  Service& service = Current();
  Service::Connection connection;
  Outcome outcome = service.Take(start_, call.path, &connection);
  if (!outcome.ok()) return outcome;
  const FileRequestHead request = {.op = static_cast<uint16_t>(call.op),
                                   .path_size = static_cast<uint32_t>(call.path.size()),
                                   .data_size = static_cast<uint32_t>(call.data.size()),
                                   .file = call.file,
                                   .offset = call.offset,
                                   .size = call.size};
  bool whole = SendAll(connection.fd, Bytes(request), MSG_MORE) &&
               SendAll(connection.fd, call.path, call.data.empty() ? 0 : MSG_MORE) &&
               SendAll(connection.fd, call.data, 0) &&
               ReceiveAll(connection.fd, reinterpret_cast<char*>(head), sizeof(*head));
  if (whole && head->code == 0 && buffer != nullptr) {
    whole = head->data_size <= call.size && ReceiveAll(connection.fd, buffer, head->data_size);
  } else if (whole) {
    data->resize(head->data_size);
    whole = ReceiveAll(connection.fd, data->data(), data->size());
  }
  if (!whole) {
    service.Fail(connection);
    return Ended(call.path);
  }
  service.GiveBack(connection);
  return head->code == 0 ? Outcome{} : Outcome{head->code, std::move(*data)};
}

Outcome FileClient::Do(const FileCall& call, FileAnswer* answer) {
  return Exchange(call, &answer->head, &answer->data, nullptr);
}

Outcome FileClient::Read(const std::string& path, uint64_t file, uint64_t offset, size_t size,
                         char* buffer, size_t* count) {
  *count = 0;
  while (*count < size) {
    FileCall call = {.op = FileOp::kRead, .path = path, .file = file, .offset = offset + *count};
    call.size = std::min<size_t>(size - *count, kMaxPieceBytes);
    FileAnswerHead head;
    std::string message;
    Outcome outcome = Exchange(call, &head, &message, buffer + *count);
    if (!outcome.ok()) return outcome;
    *count += head.data_size;
    if (head.data_size < call.size) break;
  }
  return {};
}

Outcome FileClient::Stat(const std::string& path, Info* info) {
  FileAnswer answer;
  Outcome outcome = Do({.op = FileOp::kStat, .path = path}, &answer);
  if (outcome.ok()) {
    *info = {.size = answer.head.size,
             .modified_ns = answer.head.modified_ns,
             .is_folder = answer.head.is_folder != 0};
  }
  return outcome;
}

Outcome FileClient::List(const std::string& folder, std::vector<std::string>* names) {
  FileAnswer answer;
  Outcome outcome = Do({.op = FileOp::kList, .path = folder}, &answer);
  if (!outcome.ok()) return outcome;
  std::string_view rest = answer.data;
  while (!rest.empty()) {
    const size_t end = rest.find('/');
    names->emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
  }
  return outcome;
}

Outcome FileClient::MakeFolders(const std::string& folder) {
  FileAnswer answer;
  return Do({.op = FileOp::kMakeFolders, .path = folder}, &answer);
}

Outcome FileClient::Rename(const std::string& from, const std::string& to) {
  FileAnswer answer;
  return Do({.op = FileOp::kRename, .path = from, .data = to}, &answer);
}

Outcome FileClient::RemoveFile(const std::string& path) {
  FileAnswer answer;
  return Do({.op = FileOp::kRemove, .path = path}, &answer);
}

Outcome FileClient::Remove(const std::string& path, bool recursive) {
  Info info;
  Outcome outcome = Stat(path, &info);
  if (!outcome.ok()) return outcome;
  if (!info.is_folder) return RemoveFile(path);
  std::vector<std::string> names;
  if (!recursive) outcome = List(path, &names);
  if (!outcome.ok()) return outcome;
  if (!names.empty()) return {Outcome::kFailedPrecondition, path + ": the folder is not empty"};
  FileAnswer answer;
  return Do({.op = FileOp::kRemoveAll, .path = path}, &answer);
}

ClientReader::ClientReader(FileClient& client, std::string path, uint64_t file)
    : client_(client), path_(std::move(path)), file_(file), process_(getpid()) {}

Outcome ClientReader::Open(FileClient& client, const std::string& path,
                           std::unique_ptr<ClientReader>* reader) {
  FileAnswer answer;
  Outcome outcome = client.Do({.op = FileOp::kOpenForRead, .path = path}, &answer);
  if (outcome.ok()) reader->reset(new ClientReader(client, path, answer.head.number));
  return outcome;
}

ClientReader::~ClientReader() {
  FileAnswer answer;
  if (process_ == getpid())
    (void)client_.Do({.op = FileOp::kClose, .path = path_, .file = file_}, &answer);
}

namespace {

// What a process opened is of no use in one that was forked from it.
Outcome CheckProcess(pid_t process, const std::string& path) {
  if (process == getpid()) return {};
  return {Outcome::kFailedPrecondition, path + ": it was opened by process " +
                                            std::to_string(process) +
                                            ", from which this one was forked; open it here"};
}

}  // namespace

Outcome ClientReader::Read(uint64_t offset, size_t size, char* buffer, size_t* count) const {
  *count = 0;
  Outcome outcome = CheckProcess(process_, path_);
  return outcome.ok() ? client_.Read(path_, file_, offset, size, buffer, count) : outcome;
}

ClientWriter::ClientWriter(FileClient& client, std::string path, uint64_t file, int64_t position)
    : client_(client),
      path_(std::move(path)),
      file_(file),
      process_(getpid()),
      position_(position) {}

Outcome ClientWriter::Open(FileClient& client, const std::string& path, bool append,
                           std::unique_ptr<ClientWriter>* writer) {
  FileAnswer answer;
  const FileOp op = append ? FileOp::kOpenForAppend : FileOp::kOpenForWrite;
  Outcome outcome = client.Do({.op = op, .path = path}, &answer);
  if (outcome.ok()) {
    writer->reset(
        new ClientWriter(client, path, answer.head.number, static_cast<int64_t>(answer.head.size)));
  }
  return outcome;
}

ClientWriter::~ClientWriter() {
  if (!is_closed_ && process_ == getpid()) (void)Close();
}

Outcome ClientWriter::Check() const {
  if (is_closed_) return {Outcome::kFailedPrecondition, path_ + ": the file is closed"};
  return CheckProcess(process_, path_);
}

Outcome ClientWriter::Append(std::string_view bytes) {
  Outcome outcome = Check();
  while (outcome.ok() && !bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kWriteBytes - buffer_.size());
    buffer_ += piece;
    position_ += static_cast<int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
    if (buffer_.size() == kWriteBytes) outcome = Send();
  }
  return outcome;
}

Outcome ClientWriter::Send() {
  if (buffer_.empty()) return {};
  FileAnswer answer;
  Outcome outcome =
      client_.Do({.op = FileOp::kAppend, .path = path_, .data = buffer_, .file = file_}, &answer);
  buffer_.clear();
  return outcome;
}

Outcome ClientWriter::SendThen(FileOp op) {
  Outcome outcome = Check();
  if (outcome.ok()) outcome = Send();
  if (!outcome.ok()) return outcome;
  FileAnswer answer;
  return client_.Do({.op = op, .path = path_, .file = file_}, &answer);
}

// The service forgets the file, also after an error of what was appended.
Outcome ClientWriter::Close() {
  Outcome outcome = Check();
  if (!outcome.ok()) return outcome;
  outcome = Send();
  is_closed_ = true;
  FileAnswer answer;
  Outcome closed = client_.Do({.op = FileOp::kClose, .path = path_, .file = file_}, &answer);
  return outcome.ok() ? closed : outcome;
}

}  // namespace muster::files
