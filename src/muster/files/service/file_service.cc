#include "muster/files/service/file_service.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "muster/base/strings.h"

namespace muster::files {
namespace {

// The descriptor that came with a byte on the unix socket; -1: its other end is closed.
absl::StatusOr<int> ReceiveDescriptor(int control) {
  char byte = 0;
  iovec data = {.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  ssize_t count = 0;
  do {
    count = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ErrnoStatus(errno, "receive a connection");
  if (count == 0) return -1;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) {
    return absl::InvalidArgumentError("a byte without a connection arrived");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof(int));
  return descriptor;
}

bool IsValid(const FileRequestHead& head) {
  return head.magic == kFileServiceMagic && head.version == kFileServiceVersion &&
         head.path_size <= kMaxPathBytes && head.data_size <= kMaxPieceBytes &&
         head.size <= kMaxPieceBytes;
}

void Describe(const io::FileInfo& info, FileAnswerHead* head) {
  head->size = info.size;
  head->modified_ns = info.modified_ns;
  head->is_folder = info.is_folder ? 1 : 0;
}

}  // namespace

struct FileService::OpenFile {
  std::unique_ptr<io::RandomAccessFile> reading = nullptr;
  std::mutex mutex = {};  // of writing
  std::unique_ptr<io::WritableFile> writing = nullptr;
};

FileService::FileService(io::FileSystem& files) : files_(files) {
  std::random_device random;
  last_number_ = (uint64_t{random()} << 32) | random();
}

FileService::~FileService() {
  {
    const std::lock_guard lock(mutex_);
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int connection : connections_) close(connection);
}

absl::Status FileService::Serve(int control) {
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const int connection, ReceiveDescriptor(control));
    if (connection < 0) return absl::OkStatus();
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { ServeConnection(connection); });
  }
}

void FileService::ServeConnection(int connection) {
  FileRequestHead head;
  std::string path;
  std::string data;
  while (ReceiveAll(connection, reinterpret_cast<char*>(&head), sizeof(head))) {
    if (!IsValid(head)) break;
    path.resize(head.path_size);
    data.resize(head.data_size);
    if (!ReceiveAll(connection, path.data(), path.size()) ||
        !ReceiveAll(connection, data.data(), data.size())) {
      break;
    }
    Answer answer = Do(head, path, data);
    answer.head.data_size = static_cast<uint32_t>(answer.data.size());
    if (!SendAll(connection, {reinterpret_cast<const char*>(&answer.head), sizeof(answer.head)}) ||
        !SendAll(connection, answer.data)) {
      break;
    }
  }
  shutdown(connection, SHUT_RDWR);
}

FileService::Answer FileService::Do(const FileRequestHead& head, const std::string& path,
                                    const std::string& data) {
  Answer answer;
  const auto op = static_cast<FileOp>(head.op);
  const absl::Status status =
      op >= FileOp::kRead ? DoOpened(op, head, data, &answer) : DoNamed(op, path, data, &answer);
  if (!status.ok()) {
    answer.head = {.code = static_cast<uint32_t>(status.code())};
    answer.data = std::string(ToStd(status.message())).substr(0, kMaxPathBytes);
  }
  return answer;
}

absl::Status FileService::DoNamed(FileOp op, const std::string& path, const std::string& data,
                                  Answer* answer) {
  switch (op) {
    case FileOp::kStat: {
      MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files_.Stat(path));
      Describe(info, &answer->head);
      return absl::OkStatus();
    }
    case FileOp::kList: {
      MUSTER_ASSIGN_OR_RETURN(const auto names, files_.List(path));
      for (const std::string& name : names) answer->data += name + "/";
      return absl::OkStatus();
    }
    case FileOp::kMakeFolders:
      return files_.MakeFolders(path);
    case FileOp::kRename:
      return files_.Rename(path, data);
    case FileOp::kRemove:
      return files_.Remove(path);
    case FileOp::kRemoveAll:
      return files_.RemoveAll(path);
    case FileOp::kOpenForRead:
    case FileOp::kOpenForWrite:
    case FileOp::kOpenForAppend:
      return Open(op, path, answer);
    default:
      break;
  }
  return absl::InvalidArgumentError(StrCat("unknown operation ", static_cast<int>(op)));
}

absl::Status FileService::Open(FileOp op, const std::string& path, Answer* answer) {
  auto file = std::make_shared<OpenFile>();
  if (op == FileOp::kOpenForRead) {
    MUSTER_ASSIGN_OR_RETURN(file->reading, files_.OpenForRead(path));
  } else if (op == FileOp::kOpenForWrite) {
    MUSTER_ASSIGN_OR_RETURN(file->writing, files_.OpenForWrite(path));
  } else {
    const auto info = files_.Stat(path);
    if (!info.ok() && !absl::IsNotFound(info.status())) return info.status();
    if (info.ok()) Describe(*info, &answer->head);
    MUSTER_ASSIGN_OR_RETURN(file->writing, files_.OpenForAppend(path));
  }
  const std::lock_guard lock(mutex_);
  answer->head.number = ++last_number_;
  open_[last_number_] = std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<FileService::OpenFile>> FileService::Find(uint64_t number,
                                                                         bool forget) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(number);
  if (found == open_.end()) {
    return absl::FailedPreconditionError(StrCat("file ", number, " is not open"));
  }
  std::shared_ptr<OpenFile> file = found->second;
  if (forget) open_.erase(found);
  return file;
}

absl::Status FileService::DoOpened(FileOp op, const FileRequestHead& head, const std::string& data,
                                   Answer* answer) {
  MUSTER_ASSIGN_OR_RETURN(const auto file, Find(head.file, op == FileOp::kClose));
  if (file->reading != nullptr) {
    if (op == FileOp::kClose) return absl::OkStatus();
    if (op != FileOp::kRead) {
      return absl::InvalidArgumentError(StrCat(file->reading->path(), ": it is open for reading"));
    }
    answer->data.resize(head.size);
    MUSTER_ASSIGN_OR_RETURN(const size_t count,
                            file->reading->Read(head.offset, head.size, answer->data.data()));
    answer->data.resize(count);
    return absl::OkStatus();
  }
  const std::lock_guard lock(file->mutex);
  switch (op) {
    case FileOp::kAppend:
      return file->writing->Append(data);
    case FileOp::kFlush:
      return file->writing->Flush();
    case FileOp::kSync:
      return file->writing->Sync();
    case FileOp::kClose:
      return file->writing->Close();
    default:
      break;
  }
  return absl::InvalidArgumentError(StrCat(file->writing->path(), ": it is open for writing"));
}

}  // namespace muster::files
