#include "muster/engine/tensorflow/host/server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::engine::tensorflow::host {
namespace {

// The most feeds and fetches of a request: far more than any graph has.
constexpr uint64_t kMaxNames = uint64_t{1} << 20;

absl::Status BadBody(const char* what) {
  return absl::InvalidArgumentError(StrCat("a request to ", what, " is cut short or malformed"));
}

}  // namespace

Server::Server(process::Descriptor requests, process::Descriptor answers,
               std::unique_ptr<SharedSegment> segment)
    : requests_(std::move(requests)), answers_(std::move(answers)), segment_(std::move(segment)) {}

Server::~Server() = default;

absl::StatusOr<bool> Server::Receive(Request* request) {
  uint64_t count = 0;
  ssize_t got;
  do {
    got = read(requests_.get(), &count, sizeof count);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof count) {
    const int error = errno;
    return ErrnoStatus(error, "wait for a request");
  }
  // The request is copied, so that the bytes that are checked are those that are used.
  std::memcpy(request, segment_->at(0), sizeof *request);
  if (request->magic != kMagic || request->version != kVersion ||
      request->sequence != last_sequence_ + 1) {
    return absl::DataLossError(StrCat(
        "request ", request->sequence, " after ", last_sequence_, ", version ", request->version,
        ": not one of this version: is muster of another version than muster-tensorflow?"));
  }
  MUSTER_RETURN_IF_ERROR(segment_->MapTo(request->segment_bytes));
  if (!segment_->Has(request->body, request->body_bytes) ||
      !segment_->Has(request->reply, request->reply_room) || request->reply % kAlignment != 0) {
    return absl::DataLossError(
        StrCat("request ", request->sequence, " lies outside the shared memory"));
  }
  last_sequence_ = request->sequence;
  return request->kind != RequestKind::kEnd;
}

absl::Status Server::Serve() {
  MUSTER_RETURN_IF_ERROR(segment_->MapTo(kLeastSegmentBytes));
  for (Request request;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, Receive(&request));
    if (!more) return absl::OkStatus();
    Answer answer{.kind = static_cast<uint16_t>(request.kind), .sequence = request.sequence};
    Handle(request, &answer);
    std::memcpy(segment_->at(offsetof(Control, answer)), &answer, sizeof answer);
    const uint64_t one = 1;
    if (write(answers_.get(), &one, sizeof one) == sizeof one) continue;
    const int error = errno;
    return ErrnoStatus(error, "signal an answer");
  }
}

void Server::Handle(const Request& request, Answer* answer) {
  FieldWriter reply;
  bool ran = false;
  const FieldReader body(std::span(segment_->at(request.body), request.body_bytes));
  const absl::Status status = Do(request, body, &reply, &ran);
  if (!status.ok()) {
    // A text that is too long is cut, since the caller does not ask for it again.
    const absl::string_view text = status.message();
    const size_t overhead = 2 * sizeof(uint64_t);
    const size_t room = request.reply_room < overhead ? 0 : request.reply_room - overhead;
    reply.Clear();
    reply.Text(ToStd(text.substr(0, room)));
  }
  answer->code = static_cast<uint64_t>(status.code());
  if (status.ok() && ran) {
    answer->reply_bytes = model_->WriteResult(request.reply, request.reply_room);
    return;
  }
  answer->reply_bytes = reply.bytes().size();
  if (answer->reply_bytes <= request.reply_room) {
    std::copy(reply.bytes().begin(), reply.bytes().end(), segment_->at(request.reply));
  }
}

absl::Status Server::Do(const Request& request, FieldReader body, FieldWriter* reply, bool* ran) {
  if (request.kind == RequestKind::kOpen) return Open(body, reply);
  if (request.kind == RequestKind::kLoad) return Load(body);
  if (model_ == nullptr) return absl::FailedPreconditionError("no model is loaded");
  switch (request.kind) {
    case RequestKind::kDefine:
      return Define(body, reply);
    case RequestKind::kRun:
      *ran = true;
      return Run(body);
    case RequestKind::kCollect:
      *ran = true;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          StrCat("there is no request of kind ", static_cast<int>(request.kind)));
  }
}

absl::Status Server::Open(FieldReader body, FieldWriter* reply) {
  std::string_view folder;
  if (!body.Text(&folder) || !body.done()) return BadBody("open TensorFlow");
  if (opened_) return absl::FailedPreconditionError("TensorFlow is loaded already");
  MUSTER_ASSIGN_OR_RETURN(library_, LoadLibrary(std::string(folder)));
  opened_ = true;
  reply->Text(library_.version);
  return absl::OkStatus();
}

absl::Status Server::Load(FieldReader body) {
  std::string_view folder, config;
  if (!body.Text(&folder) || !body.Text(&config) || !body.done()) return BadBody("load a model");
  if (!opened_) return absl::FailedPreconditionError("TensorFlow is not loaded yet");
  MUSTER_ASSIGN_OR_RETURN(model_,
                          SavedModel::Load(library_, *segment_, std::string(folder), config));
  return absl::OkStatus();
}

absl::Status Server::Define(FieldReader body, FieldWriter* reply) {
  uint64_t count = 0;
  std::vector<FeedName> feeds;
  std::vector<std::string_view> fetches;
  bool good = body.Count(kMaxNames, &count);
  for (uint64_t i = 0; good && i < count; ++i) {
    FeedName feed;
    good = body.Text(&feed.tensor) && body.Number(&feed.type);
    feeds.push_back(feed);
  }
  good = good && body.Count(kMaxNames, &count);
  for (uint64_t i = 0; good && i < count; ++i) {
    std::string_view fetch;
    good = body.Text(&fetch);
    fetches.push_back(fetch);
  }
  if (!good || !body.done()) return BadBody("define a function");
  MUSTER_ASSIGN_OR_RETURN(const uint64_t function, model_->Define(feeds, fetches));
  reply->Number(function);
  return absl::OkStatus();
}

absl::Status Server::Run(FieldReader body) {
  uint64_t function = 0;
  if (!body.Number(&function)) return BadBody("run a function");
  return model_->Run(function, body);
}

}  // namespace muster::engine::tensorflow::host
