#include "muster/net/http/request_writer.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace muster::net::internal {
namespace {

constexpr size_t kPieceBytes = size_t{64} << 10;
constexpr size_t kMaxChunkHeadBytes = 8;  // "10000\r\n"
constexpr std::string_view kChunkEnd = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace

HttpRequestWriter::HttpRequestWriter(std::string head, BodySource* body)
    : head_(std::move(head)),
      body_(body),
      size_(body == nullptr ? std::optional<uint64_t>(0) : body->size()),
      room_(std::min<uint64_t>(size_.value_or(kPieceBytes), kPieceBytes)) {}

HttpRequestWriter::~HttpRequestWriter() {
  OPENSSL_cleanse(piece_.data(), std::min(piece_.size(), head_.size()));
  OPENSSL_cleanse(head_.data(), head_.size());
}

bool HttpRequestWriter::Restart() {
  sent_ = 0;
  head_sent_ = false;
  ended_ = size_ == 0;
  return body_ == nullptr || body_->Restart();
}

absl::StatusOr<std::string_view> HttpRequestWriter::Next() {
  if (head_sent_) return NextOfBody();
  head_sent_ = true;
  if (ended_ || !size_) return head_;
  piece_.resize(std::max(head_.size() + room_, piece_.size()));
  std::copy(head_.begin(), head_.end(), piece_.begin());
  MUSTER_ASSIGN_OR_RETURN(const size_t got, ReadBody(piece_.data() + head_.size()));
  return std::string_view(piece_).substr(0, head_.size() + got);
}

absl::StatusOr<std::string_view> HttpRequestWriter::NextOfBody() {
  if (ended_) return std::string_view();
  piece_.resize(std::max(kMaxChunkHeadBytes + room_ + kChunkEnd.size(), piece_.size()));
  char* const data = piece_.data() + kMaxChunkHeadBytes;
  MUSTER_ASSIGN_OR_RETURN(const size_t got, ReadBody(data));
  if (size_) return std::string_view(data, got);
  if (got == 0) return kLastChunk;
  const std::string chunk_head = absl::StrFormat("%x\r\n", got);
  std::copy(chunk_head.begin(), chunk_head.end(), data - chunk_head.size());
  std::copy(kChunkEnd.begin(), kChunkEnd.end(), data + got);
  return std::string_view(data - chunk_head.size(), chunk_head.size() + got + kChunkEnd.size());
}

absl::StatusOr<size_t> HttpRequestWriter::ReadBody(char* buffer) {
  const uint64_t left = size_ ? *size_ - sent_ : room_;
  absl::StatusOr<size_t> got = body_->Read(buffer, std::min<uint64_t>(room_, left));
  if (got.ok() && *got == 0 && size_) {
    got = absl::FailedPreconditionError(StrCat("the request's body ended after ", sent_, " of the ",
                                               *size_, " bytes that were announced"));
  }
  failed_ = !got.ok();
  MUSTER_RETURN_IF_ERROR(got.status());
  sent_ += *got;
  ended_ = size_ ? sent_ == *size_ : *got == 0;
  return got;
}

}  // namespace muster::net::internal
