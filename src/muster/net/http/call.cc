#include "muster/net/http/call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"

#include "muster/net/http/url.h"

namespace muster::net {
namespace {

class BytesBody : public BodySource {
 public:
  explicit BytesBody(std::string_view bytes) : bytes_(bytes) {}

  std::optional<uint64_t> size() const override { return bytes_.size(); }
  bool Restart() override {
    at_ = 0;
    return true;
  }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t taken = std::min(size, bytes_.size() - at_);
    std::memcpy(buffer, bytes_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
};

struct OwnedText {
  const std::string text;
};

// The text is a base, so that it is there before the body that looks at it.
class TextBody : private OwnedText, public BytesBody {
 public:
  explicit TextBody(std::string given) : OwnedText{std::move(given)}, BytesBody(text) {}
};

}  // namespace

const std::string* FindField(const HttpFields& fields, std::string_view name) {
  for (const HttpField& field : fields) {
    if (absl::EqualsIgnoreCase(field.name, ToAbsl(name))) return &field.value;
  }
  return nullptr;
}

std::unique_ptr<BodySource> MakeBytesBody(std::string_view bytes) {
  return std::make_unique<BytesBody>(bytes);
}

std::unique_ptr<BodySource> MakeTextBody(std::string text) {
  return std::make_unique<TextBody>(std::move(text));
}

absl::StatusOr<HttpLocation> ParseHttpLocation(std::string_view text) {
  const size_t scheme_end = text.find("://");
  if (scheme_end == text.npos) {
    return absl::InvalidArgumentError("HTTP location: it is no absolute http or https URL");
  }
  const size_t end = std::min(text.find_first_of("/?#", scheme_end + 3), text.size());
  HttpLocation location = {.url = std::string(text.substr(0, end)),
                           .target = std::string(text.substr(end))};
  if (location.target.empty()) location.target = "/";
  if (location.target.front() != '/' || !internal::IsSendable(location.target) ||
      location.target.find('#') != text.npos) {
    return absl::InvalidArgumentError("HTTP location: it has no path that could be requested");
  }
  MUSTER_RETURN_IF_ERROR(Annotate(internal::ParseHttpUrl(location.url).status(), "HTTP location"));
  return location;
}

}  // namespace muster::net
