#include "muster/files/hdfs/hadoop_token.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include <protozero/pbf_reader.hpp>

#include "muster/base/strings.h"

namespace muster::files {
namespace {

constexpr std::string_view kMagic = "HDTS";
constexpr char kWritable = 0, kProtobuf = 1;  // the forms of a file
constexpr int kShortest = -112;               // a first byte from here on is the number itself

// Java's WritableUtils.writeVInt, for numbers from 0 on.
void AppendNumber(uint64_t number, std::string* out) {
  if (number < 128) {
    out->push_back(static_cast<char>(number));
    return;
  }
  int bytes = 0;
  for (uint64_t rest = number; rest != 0; rest >>= 8) ++bytes;
  out->push_back(static_cast<char>(kShortest - bytes));
  while (bytes-- > 0) out->push_back(static_cast<char>(number >> (8 * bytes)));
}

void AppendText(std::string_view text, std::string* out) {
  AppendNumber(text.size(), out);
  *out += text;
}

// Reads what the functions above write; after an error everything is empty.
class WritableReader {
 public:
  explicit WritableReader(std::string_view bytes) : rest_(bytes) {}

  uint64_t Number() {
    if (rest_.empty()) return Fail();
    const int byte = static_cast<unsigned char>(rest_.front());
    const int first = byte < 128 ? byte : byte - 256;  // a byte of Java has a sign
    rest_.remove_prefix(1);
    if (first >= 0) return static_cast<uint64_t>(first);
    const int bytes = kShortest - first;
    if (bytes < 1 || bytes > 4 || rest_.size() < static_cast<size_t>(bytes)) return Fail();
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) {
      number = number << 8 | static_cast<unsigned char>(rest_[static_cast<size_t>(i)]);
    }
    rest_.remove_prefix(static_cast<size_t>(bytes));
    return number;
  }
  std::string Text() {
    const uint64_t size = Number();
    if (size > rest_.size()) Fail();
    const std::string text(rest_.substr(0, size));
    rest_.remove_prefix(text.size());
    return text;
  }
  HadoopToken Token() {
    HadoopToken token;
    token.identifier = Text();
    token.password = Text();
    token.kind = Text();
    token.service = Text();
    return token;
  }
  bool ok() const { return ok_; }

 private:
  uint64_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

void AppendToken(const HadoopToken& token, std::string* out) {
  for (const std::string* const part :
       {&token.identifier, &token.password, &token.kind, &token.service}) {
    AppendText(*part, out);
  }
}

absl::StatusOr<std::vector<HadoopToken>> ParseWritables(std::string_view bytes) {
  WritableReader reader(bytes);
  const uint64_t count = reader.Number();
  std::vector<HadoopToken> tokens;
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    (void)reader.Text();  // its name
    tokens.push_back(reader.Token());
  }
  if (!reader.ok()) return absl::InvalidArgumentError("its tokens are cut or damaged");
  return tokens;
}

HadoopToken ParseTokenMessage(protozero::pbf_reader message) {
  HadoopToken token;
  std::string* const parts[] = {&token.identifier, &token.password, &token.kind, &token.service};
  while (message.next()) {
    // Reading the bytes ends the field, and its tag with it.
    const uint32_t tag = message.tag();
    if (tag >= 1 && tag <= 4 && message.wire_type() == protozero::pbf_wire_type::length_delimited) {
      *parts[tag - 1] = message.get_bytes();
    } else {
      message.skip();
    }
  }
  return token;
}

// CredentialsProto of hadoop-common's Security.proto, after its length.
absl::StatusOr<std::vector<HadoopToken>> ParseProtobuf(std::string_view bytes) {
  std::vector<HadoopToken> tokens;
  try {
    // A length in front of a message is what a field has after its tag: here field 1.
    const std::string field = StrCat(std::string(1, '\x0a'), bytes);
    protozero::pbf_reader whole(field);
    if (!whole.next(1)) return tokens;
    protozero::pbf_reader credentials = whole.get_message();
    while (credentials.next(1)) {
      protozero::pbf_reader entry = credentials.get_message();
      while (entry.next(2)) tokens.push_back(ParseTokenMessage(entry.get_message()));
    }
  } catch (const protozero::exception& error) {
    return absl::InvalidArgumentError(StrCat("its tokens are damaged: ", error.what()));
  }
  return tokens;
}

}  // namespace

std::string PrintTokenText(const HadoopToken& token) {
  std::string bytes;
  AppendToken(token, &bytes);
  std::string text = absl::WebSafeBase64Escape(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

absl::StatusOr<HadoopToken> ParseTokenText(std::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes)) bytes.clear();
  WritableReader reader(bytes);
  HadoopToken token = reader.Token();
  if (!reader.ok()) return absl::InvalidArgumentError("this is no token of Hadoop");
  return token;
}

std::string PrintTokenFile(const std::vector<HadoopToken>& tokens) {
  std::string bytes(kMagic);
  bytes.push_back(kWritable);
  AppendNumber(tokens.size(), &bytes);
  for (const HadoopToken& token : tokens) {
    AppendText(token.service, &bytes);
    AppendToken(token, &bytes);
  }
  AppendNumber(0, &bytes);  // secret keys
  return bytes;
}

absl::StatusOr<std::vector<HadoopToken>> ParseTokenFile(std::string_view bytes,
                                                        const std::string& path) {
  if (!bytes.starts_with(kMagic) || bytes.size() <= kMagic.size()) {
    return absl::InvalidArgumentError(StrCat(path, ": this is no file of Hadoop's tokens"));
  }
  const char form = bytes[kMagic.size()];
  bytes.remove_prefix(kMagic.size() + 1);
  if (form == kWritable || form == kProtobuf) {
    auto tokens = form == kWritable ? ParseWritables(bytes) : ParseProtobuf(bytes);
    return tokens.ok() ? std::move(tokens) : Annotate(tokens.status(), path);
  }
  return absl::InvalidArgumentError(
      StrCat(path, ": this file of Hadoop's tokens has the unknown form ", static_cast<int>(form)));
}

}  // namespace muster::files
