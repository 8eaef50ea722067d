#include "muster/net/http/answer_reader.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/match.h"
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace muster::net::internal {
namespace {

namespace beast = boost::beast;

constexpr std::string_view kProtocol = "HTTP/1.";
constexpr std::string_view kHeaderEnd = "\r\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kTransferEncoding = "Transfer-Encoding";
constexpr size_t kMaxLineBytes = size_t{4} << 10;

// Accepts "chunked" and nothing else: a body in another coding could not be read.
bool IsChunkedOnly(const HttpFields& fields) {
  const auto codings = std::count_if(fields.begin(), fields.end(), [](const HttpField& field) {
    return absl::EqualsIgnoreCase(field.name, ToAbsl(kTransferEncoding));
  });
  return codings == 1 && absl::EqualsIgnoreCase(*FindField(fields, kTransferEncoding), "chunked");
}

HttpFields CopyFields(const beast::http::fields& fields) {
  HttpFields copies;
  for (const auto& field : fields) {
    copies.push_back(
        {.name = std::string(field.name_string()), .value = std::string(field.value())});
  }
  return copies;
}

// At least as many as it has fields.
size_t CountLines(std::string_view header) {
  return static_cast<size_t>(std::count(header.begin(), header.end(), '\n'));
}

}  // namespace

size_t HttpAnswerReader::Put(std::string_view bytes) {
  started_ = started_ || !bytes.empty();
  size_t taken = 0;
  while (fault_.ok() && !done() && taken < bytes.size()) {
    taken += PutSome(bytes.substr(taken));
  }
  return taken;
}

size_t HttpAnswerReader::PutSome(std::string_view bytes) {
  switch (part_) {
    case Part::kHeader:
      return PutHeader(bytes);
    case Part::kSized:
    case Part::kToEnd:
    case Part::kChunk:
      return PutBody(bytes);
    case Part::kChunkSize:
    case Part::kChunkEnd:
    case Part::kTrailer:
      return PutLine(bytes);
    case Part::kDone:
      break;
  }
  return 0;
}

std::span<char> HttpAnswerReader::Room() const {
  if (part_ != Part::kSized || !receiver_.room || !receiver_.body) return {};
  const std::span<char> room = receiver_.room();
  return room.first(static_cast<size_t>(std::min<uint64_t>(room.size(), left_)));
}

void HttpAnswerReader::PutEnd() {
  if (!fault_.ok() || done()) return;
  if (part_ == Part::kToEnd) {
    part_ = Part::kDone;
  } else if (!started_) {
    fault_ =
        absl::UnavailableError("Empty reply: the server closed the connection without an answer");
  } else {
    fault_ = absl::UnavailableError(StrCat("the answer was cut short: ", Progress()));
  }
}

std::string HttpAnswerReader::Progress() const {
  if (!started_) return "nothing of it came";
  if (part_ == Part::kHeader) return "only a part of its header came";
  return StrCat(body_bytes_, " bytes of its body came");
}

void HttpAnswerReader::NotHttp(std::string_view why) {
  fault_ = absl::UnavailableError(
      StrCat("the answer is not HTTP/1.1: ", why, "; does another program listen there?"));
}

void HttpAnswerReader::TooLarge() {
  fault_ = absl::ResourceExhaustedError(StrCat(
      "the answer has more than the ", receiver_.max_body_bytes, " bytes that are accepted here"));
}

size_t HttpAnswerReader::PutHeader(std::string_view bytes) {
  const size_t had = header_.size();
  header_.append(bytes.substr(0, kMaxAnswerHeaderBytes - header_bytes_ - had));
  const size_t known = std::min(kProtocol.size(), header_.size());
  if (header_.compare(0, known, kProtocol, 0, known) != 0) {
    NotHttp("it begins otherwise");
    return header_.size() - had;
  }
  const size_t end = header_.find(kHeaderEnd, had - std::min(had, kHeaderEnd.size() - 1));
  if (end != header_.npos) {
    header_.resize(end + kHeaderEnd.size());
    const size_t taken = header_.size() - had;
    ParseHeader();
    return taken;
  }
  if (header_bytes_ + header_.size() == kMaxAnswerHeaderBytes) {
    fault_ = absl::ResourceExhaustedError(
        StrCat("the answer's header has more than ", kMaxAnswerHeaderBytes, " bytes"));
  }
  return header_.size() - had;
}

void HttpAnswerReader::ParseHeader() {
  if (CountLines(header_) > kMaxAnswerFields + 2) {
    fault_ = absl::ResourceExhaustedError(
        StrCat("the answer's header has more than ", kMaxAnswerFields, " fields"));
    return;
  }
  beast::http::response_parser<beast::http::empty_body> parser;
  parser.header_limit(kMaxAnswerHeaderBytes + 1);
  parser.skip(true);  // of the body nothing is its business
  beast::error_code error;
  const size_t used = parser.put(boost::asio::buffer(header_), error);
  if (error) return NotHttp(error.message());
  if (!parser.is_header_done() || used != header_.size()) return NotHttp("its header has no end");
  const auto status = static_cast<int>(parser.get().result_int());
  if (status < 200) {
    if (status < 100 || status == 101) return NotHttp(StrCat("status ", status));
    header_bytes_ += header_.size();
    header_.clear();
    return;
  }
  keep_alive_ = parser.keep_alive();
  head_ = {.status = status, .fields = CopyFields(parser.get())};
  header_ = std::string();
  header_bytes_ = 0;
  const auto size = parser.content_length();
  FindBody(size ? std::optional<uint64_t>(*size) : std::nullopt);
  if (fault_.ok() && receiver_.head) fault_ = receiver_.head(head_);
}

// Finds where the body ends, by RFC 9112, 6.3.
void HttpAnswerReader::FindBody(std::optional<uint64_t> size) {
  if (to_head_ || head_.status == 204 || head_.status == 304) {
    part_ = Part::kDone;
  } else if (head_.Find(kTransferEncoding) != nullptr) {
    part_ = Part::kChunkSize;
    if (!IsChunkedOnly(head_.fields)) NotHttp("its body is in a coding that was not asked for");
  } else if (size) {
    BeginBody(*size, Part::kSized);
  } else {
    keep_alive_ = false;
    part_ = Part::kToEnd;
  }
}

void HttpAnswerReader::BeginBody(uint64_t size, Part part) {
  if (size > receiver_.max_body_bytes - body_bytes_) return TooLarge();
  left_ = size;
  part_ = size == 0 ? Part::kDone : part;
}

size_t HttpAnswerReader::PutBody(std::string_view bytes) {
  if (part_ == Part::kToEnd) {
    if (bytes.size() > receiver_.max_body_bytes - body_bytes_) {
      TooLarge();
      return 0;
    }
    HandOn(bytes);
    return bytes.size();
  }
  const size_t taken = std::min<uint64_t>(left_, bytes.size());
  left_ -= taken;
  if (left_ == 0) part_ = part_ == Part::kSized ? Part::kDone : Part::kChunkEnd;
  HandOn(bytes.substr(0, taken));
  return taken;
}

void HttpAnswerReader::HandOn(std::string_view bytes) {
  body_bytes_ += bytes.size();
  if (receiver_.body) fault_ = receiver_.body(bytes);
}

size_t HttpAnswerReader::PutLine(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t taken = end == bytes.npos ? bytes.size() : end + 1;
  if (line_.size() + taken > kMaxLineBytes) {
    NotHttp(StrCat("a line between its chunks has more than ", kMaxLineBytes, " bytes"));
    return 0;
  }
  line_.append(bytes.substr(0, taken));
  if (end != bytes.npos) {
    ParseLine();
    line_.clear();
  }
  return taken;
}

void HttpAnswerReader::ParseLine() {
  if (!line_.ends_with(kLineEnd)) return NotHttp("a line between its chunks ends without CR LF");
  if (part_ == Part::kChunkSize) return ParseChunkSize();
  if (part_ == Part::kChunkEnd) {
    part_ = Part::kChunkSize;
    if (line_ != kLineEnd) NotHttp("a chunk is longer than it says");
    return;
  }
  header_bytes_ += line_.size();
  if (line_ == kLineEnd) {
    part_ = Part::kDone;
  } else if (header_bytes_ > kMaxAnswerHeaderBytes) {
    fault_ = absl::ResourceExhaustedError(
        StrCat("the answer's trailer has more than ", kMaxAnswerHeaderBytes, " bytes"));
  }
}

// "1f4" or "1f4;name=value"
void HttpAnswerReader::ParseChunkSize() {
  uint64_t size = 0;
  const char* const end = line_.data() + line_.size();
  const auto parsed = std::from_chars(line_.data(), end, size, 16);
  if (parsed.ec == std::errc::result_out_of_range) return TooLarge();
  const size_t digits = static_cast<size_t>(parsed.ptr - line_.data());
  const size_t after = line_.find_first_not_of(" \t", digits);
  if (parsed.ec != std::errc() || (line_[after] != ';' && line_.substr(after) != kLineEnd)) {
    return NotHttp("a chunk has no size");
  }
  if (size == 0) {
    part_ = Part::kTrailer;
  } else {
    BeginBody(size, Part::kChunk);
  }
}

}  // namespace muster::net::internal
