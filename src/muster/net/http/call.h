// A request and the head of its answer as plain data, and where their bodies come from and go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::net {

struct HttpField {
  std::string name = {};
  std::string value = {};

  bool operator==(const HttpField&) const = default;
};

// In the order of the message; a name may occur more than once.
using HttpFields = std::vector<HttpField>;

// The value of the first field with this name, in upper or lower case; null if there is none.
const std::string* FindField(const HttpFields& fields, std::string_view name);

// Where a request's body comes from. The thread that sends the request calls it. A source that
// blocks holds up that call, also beyond its deadlines.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // The number of bytes of the whole body, which is then announced as Content-Length, or nullopt if
  // it is not known: the body is then sent in chunks, one for each Read().
  virtual std::optional<uint64_t> size() const = 0;
  // Goes to the body's first byte. Called before each sending, also before the first. Returns false
  // if the body was read before and cannot be read again.
  virtual bool Restart() = 0;
  // Puts at most `size` bytes into `buffer` and returns how many; 0 at the end. An error ends the
  // call and is returned from it.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// A body that is in memory, of known size; it can be sent again.
std::unique_ptr<BodySource> MakeTextBody(std::string text);

// The same without a copy: the caller keeps the bytes until the call has ended.
std::unique_ptr<BodySource> MakeBytesBody(std::string_view bytes);

// Takes an answer's body piece by piece, in order, as the pieces arrive; the bytes are valid during
// the call only. An error ends the call and is returned from it. The thread that sends the request
// calls it; while it runs, nothing more is read from the server.
using BodySink = std::function<absl::Status(std::string_view bytes)>;

// Sending a call reads its body, so two threads must not send it at the same time.
struct HttpCall {
  std::string method = {};  // "GET": upper-case letters
  // A path with its query ("/api/v1/pods?watch=1"; EscapeForTarget() for parts of it).
  std::string target = {};
  // Fields that describe the message's framing or the connection (Host, Content-Length,
  // Transfer-Encoding, Connection, Expect, Upgrade, ...) are set by the client and refused here.
  HttpFields fields = {};
  std::unique_ptr<BodySource> body = {};  // null: none
  // Whether the request may be sent a second time, on a new connection, if a kept connection broke
  // before a byte of an answer arrived. The server may have acted on the first one: set this to
  // false for a request that must not be acted on twice. Such a call then ends with UNAVAILABLE.
  bool may_be_repeated = true;
  // The name of the call in messages. Empty: the method and the URL without the query, which may
  // hold a delegation token or a signature.
  std::string what = {};
};

struct HttpAnswerHead {
  int status = 0;  // 200 to 999; interim answers (1xx) are skipped
  HttpFields fields = {};

  // "Retry-After", "Location": the value of the first field with this name; null if there is none.
  const std::string* Find(std::string_view name) const { return FindField(fields, name); }
};

// The functions that receive an answer; each may be null. Each is called by the thread that sends
// the request; its error ends the call and is returned from it.
struct HttpReceiver {
  // Called once, before the body's first byte: decides by status and fields where the body goes.
  std::function<absl::Status(const HttpAnswerHead& head)> head = {};
  BodySink body = {};  // null: the body is read and dropped
  // Where the next bytes of a body of announced length may be put as they are read, which saves a
  // copy; `body` then gets them in that memory. It must stay valid until the call has ended or
  // `body` was called. Null, or an empty room: the bytes come in a buffer of the client.
  std::function<std::span<char>()> room = {};
  // RESOURCE_EXHAUSTED for more. An announced length is checked before anything of the answer is
  // handed on.
  uint64_t max_body_bytes = std::numeric_limits<uint64_t>::max();
};

// An absolute URL, as a redirect's Location has it, in two parts: what HttpExchangeOptions::url and
// HttpCall::target want. INVALID_ARGUMENT for text that is not such a URL; the message does not
// repeat it, since it may hold a secret.
struct HttpLocation {
  std::string url = {};     // "http://datanode:9864"
  std::string target = {};  // "/webhdfs/v1/a?op=OPEN"
};
absl::StatusOr<HttpLocation> ParseHttpLocation(std::string_view text);

}  // namespace muster::net
