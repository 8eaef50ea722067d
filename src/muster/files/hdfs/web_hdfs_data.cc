// The calls of WebHdfs whose data go to and come from DataNodes.
#include <chrono>
#include <cstring>
#include <optional>
#include <span>

#include "muster/base/strings.h"
#include "muster/files/hdfs/web_hdfs_calls.h"
#include "muster/net/http/message.h"

namespace muster::files {
namespace {

using formats::Json;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr double kSuspectSeconds = 30;  // a DataNode that did not answer is left out

// HOST:PORT of "http://HOST:PORT".
std::string GetAuthority(const std::string& url) { return url.substr(url.find("//") + 2); }

// A NameNode's JSON has the characters of a path beyond ASCII as they are, and a DataNode would
// read their bytes as Latin-1.
std::string EscapeBeyondAscii(std::string_view target) {
  std::string escaped;
  for (const char& c : target) {
    const std::string_view byte(&c, 1);
    escaped +=
        static_cast<unsigned char>(c) < 0x80 ? std::string(byte) : net::EscapeForTarget(byte);
  }
  return escaped;
}

}  // namespace

absl::StatusOr<net::HttpLocation> WebHdfs::Locate(const Answer& answer,
                                                  const WebHdfsCall& call) const {
  std::string location;
  if (const std::string* const field = answer.head->Find("Location"); field != nullptr) {
    location = *field;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(answer.text, What(call)));
    location = formats::JsonFields(json, What(call)).Text("Location");
  }
  auto parsed = net::ParseHttpLocation(EscapeBeyondAscii(location));
  return parsed.ok() ? std::move(parsed) : Annotate(parsed.status(), What(call));
}

// Bytes that are received into memory of the caller's, whole pieces of it without a copy.
class WebHdfs::Filling {
 public:
  Filling(std::string what, char* buffer, size_t size)
      : what_(std::move(what)), buffer_(buffer), size_(size) {}
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  std::span<char> room() const { return {buffer_ + filled_, size_ - filled_}; }
  size_t filled() const { return filled_; }
  absl::Status Take(std::string_view bytes) {
    if (bytes.size() > size_ - filled_) {
      return absl::DataLossError(StrCat(what_, ": more bytes came than were asked for"));
    }
    if (bytes.data() != buffer_ + filled_)
      std::memcpy(buffer_ + filled_, bytes.data(), bytes.size());
    filled_ += bytes.size();
    return absl::OkStatus();
  }

 private:
  const std::string what_;
  char* const buffer_;
  const size_t size_;
  size_t filled_ = 0;
};

WebHdfsVerdict WebHdfs::ReadFrom(const net::HttpLocation& place, const std::string& what,
                                 Filling& filling) {
  const auto node = Server(place.url);
  if (!node.ok()) return {node.status()};
  int status = 0;
  std::string text;
  const net::HttpReceiver receiver = {
      .head =
          [&](const net::HttpAnswerHead& head) {
            status = head.status;
            return absl::OkStatus();
          },
      .body =
          [&](std::string_view bytes) {
            if (status < 300) return filling.Take(bytes);
            if (text.size() < kMaxTextBytes) text += bytes;
            return absl::OkStatus();
          },
      .room = [&] { return status < 300 ? filling.room() : std::span<char>(); }};
  const auto head = (*node)->Send({.method = "GET", .target = place.target}, receiver,
                                  {.silence_seconds = options_.silence_seconds});
  if (!head.ok()) return {Annotate(head.status(), what), IsOfTransport(head.status())};
  return JudgeAnswer(status, text, what);
}

absl::StatusOr<size_t> WebHdfs::Read(const std::string& path, uint64_t offset, size_t size,
                                     char* buffer, BlockPlaces& places) {
  WebHdfsCall call = {.method = "GET", .op = "OPEN", .path = path};
  Filling filling(What(call), buffer, size);
  const net::BodySink sink = [&](std::string_view bytes) { return filling.Take(bytes); };
  if (const auto known = places.Find(offset, size); known.has_value()) {
    const WebHdfsVerdict verdict = ReadFrom(*known, What(call), filling);
    if (verdict.status.ok()) return filling.filled();
    places.Forget(offset);
    if (verdict.again) Suspect(known->url);
    // The NameNode is asked where else the rest is, and whether it is there at all.
  }
  Patience patience(*this);
  while (true) {
    const uint64_t at = offset + filling.filled();
    call.parameters = {{"offset", StrCat(at)}, {"length", StrCat(filling.room().size())}};
    call.parameters.emplace_back("noredirect", "true");
    ExcludeSuspects(&call);
    const Answer answer = Ask(call, sink);
    WebHdfsVerdict verdict = answer.verdict;
    if (verdict.status.ok() && !answer.has_data) {
      MUSTER_ASSIGN_OR_RETURN(const net::HttpLocation place, Locate(answer, call));
      verdict = ReadFrom(place, What(call), filling);
      if (verdict.status.ok()) places.Keep(at, place);
      if (verdict.again) Suspect(place.url);
    } else if (verdict.again) {
      ForgetSuspects();
    }
    if (verdict.again && patience.Wait(verdict.status)) continue;
    MUSTER_RETURN_IF_ERROR(verdict.status);
    return filling.filled();
  }
}

void WebHdfs::Suspect(const std::string& url) {
  const std::lock_guard lock(mutex_);
  suspects_[GetAuthority(url)] = steady_clock::now();
}

void WebHdfs::ForgetSuspects() {
  const std::lock_guard lock(mutex_);
  suspects_.clear();
}

void WebHdfs::ExcludeSuspects(WebHdfsCall* call) {
  const std::lock_guard lock(mutex_);
  std::string names;
  for (auto suspect = suspects_.begin(); suspect != suspects_.end();) {
    if (steady_clock::now() - suspect->second > duration<double>(kSuspectSeconds)) {
      suspect = suspects_.erase(suspect);
      continue;
    }
    names += StrCat(names.empty() ? "" : ",", suspect->first);
    ++suspect;
  }
  if (!names.empty()) call->parameters.emplace_back("excludedatanodes", names);
}

WebHdfsVerdict WebHdfs::Put(WebHdfsCall call, std::string_view bytes, bool* may_be_done) {
  ExcludeSuspects(&call);
  const Answer answer = Ask(call, nullptr);
  if (!answer.verdict.status.ok()) {
    if (answer.verdict.again) ForgetSuspects();
    return answer.verdict;
  }
  const auto place = Locate(answer, call);
  if (!place.ok()) return {place.status()};
  const auto node = Server(place->url);
  if (!node.ok()) return {node.status()};
  net::HttpCall request = {.method = call.method, .target = place->target};
  request.fields = {{"Content-Type", "application/octet-stream"}};
  request.body = net::MakeBytesBody(bytes);
  request.may_be_repeated = false;  // the server may have taken the bytes
  *may_be_done = true;
  const auto done =
      (*node)->Fetch(request, kMaxTextBytes, {.silence_seconds = options_.silence_seconds});
  const WebHdfsVerdict verdict = done.ok()
                                     ? JudgeAnswer(done->head.status, done->body, What(call))
                                     : WebHdfsVerdict{done.status(), IsOfTransport(done.status())};
  if (verdict.again && !verdict.has_lease_of_other) Suspect(place->url);
  return verdict;
}

absl::Status WebHdfs::Create(const std::string& path, std::string_view bytes,
                             const std::string& mode) {
  WebHdfsCall call = {.method = "PUT",
                      .op = "CREATE",
                      .path = path,
                      .parameters = {{"overwrite", "true"}, {"noredirect", "true"}}};
  if (!mode.empty()) call.parameters.emplace_back("permission", mode);
  Patience patience(*this);
  while (true) {
    bool may_be_done = false;
    const WebHdfsVerdict verdict = Put(call, bytes, &may_be_done);
    if (verdict.again && patience.Wait(verdict.status)) continue;
    return Annotate(verdict.status, StrCat("write ", path));
  }
}

absl::Status WebHdfs::Append(const std::string& path, uint64_t length, std::string_view bytes,
                             bool waits_for_lease) {
  const WebHdfsCall call = {
      .method = "POST", .op = "APPEND", .path = path, .parameters = {{"noredirect", "true"}}};
  const std::string what = StrCat("append to ", path);
  const uint64_t whole = length + bytes.size();
  Patience patience(*this);
  bool is_doubtful = false;  // an earlier sending may have added some of the bytes
  while (true) {
    bool may_be_done = false;
    const WebHdfsVerdict verdict = Put(call, bytes, &may_be_done);
    if (verdict.status.ok() && !is_doubtful) return absl::OkStatus();
    if (!verdict.status.ok() && !verdict.again) return Annotate(verdict.status, what);
    if (verdict.has_lease_of_other && !waits_for_lease) {
      return absl::AbortedError(StrCat(what, ": ", verdict.status.message()));
    }
    if (may_be_done) {
      MUSTER_ASSIGN_OR_RETURN(const HdfsFileStatus now, GetStatus(path));
      if (now.info.size == whole) return absl::OkStatus();
      if (now.info.size != length) {
        return absl::DataLossError(StrCat(what, ": the append was interrupted, and the file has ",
                                          now.info.size, " bytes instead of ", length, " or ",
                                          whole));
      }
      is_doubtful = true;
    }
    if (!patience.Wait(verdict.status)) return Annotate(verdict.status, what);
  }
}

}  // namespace muster::files
