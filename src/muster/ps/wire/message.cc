#include "muster/ps/wire/message.h"

#include <cstring>
#include <type_traits>

#include "muster/base/byte_reader.h"

namespace muster::ps {
namespace {

// Every field is a multiple of 4 bytes long: texts are padded with zeros.
constexpr size_t kUnit = 4;

class Writer {
 public:
  explicit Writer(Bytes* bytes) : bytes_(*bytes) { bytes_.clear(); }

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(const T& value) {
    static_assert(sizeof(T) % kUnit == 0);
    Append(&value, sizeof value);
  }
  template <class T>
  void operator()(const std::span<const T>& values) {
    (*this)(static_cast<uint64_t>(values.size()));
    Append(values.data(), values.size_bytes());
  }
  void operator()(const Counts& counts);
  void operator()(const Word& word);
  void operator()(const std::string& text) {
    (*this)(static_cast<uint64_t>(text.size()));
    Append(text.data(), text.size());
    bytes_.resize((bytes_.size() + kUnit - 1) / kUnit * kUnit);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(static_cast<uint64_t>(values.size()));
    for (const T& each : values) Put(each);
  }

 private:
  void Put(const std::string& text) { (*this)(text); }
  template <class T>
  requires(std::is_arithmetic_v<T>) void Put(T number) { (*this)(number); }
  void Put(const TableRows& table);
  void Append(const void* data, size_t size) {
    const size_t old = bytes_.size();
    bytes_.resize(old + size);
    if (size > 0) std::memcpy(bytes_.data() + old, data, size);
  }

  Bytes& bytes_;
};

class Reader {
 public:
  explicit Reader(ConstBytes bytes) : bytes_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(T& value) {
    bytes_.Read(&value);
  }
  template <class T>
  void operator()(std::span<const T>& values) {
    uint64_t count = 0;
    if (bytes_.Read(&count)) bytes_.ReadArray(count, &values);
  }
  void operator()(Counts& counts);
  void operator()(Word& word);
  void operator()(std::string& text) {
    uint64_t size = 0;
    std::string_view padded;
    if (!bytes_.Read(&size) || !bytes_.Fits(size, 1)) return;
    if (!bytes_.ReadBytes((size + kUnit - 1) / kUnit * kUnit, &padded)) return;
    text.assign(padded.substr(0, size));
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    uint64_t count = 0;
    // An element that is not a number takes at least the 8 bytes of its length.
    constexpr size_t kLeast = std::is_arithmetic_v<T> ? sizeof(T) : sizeof(uint64_t);
    if (!bytes_.Read(&count) || !bytes_.Fits(count, kLeast)) return;
    for (uint64_t i = 0; i < count && bytes_.ok(); ++i) Get(values.emplace_back());
  }

  absl::Status Finish() const {
    if (bytes_.done()) return absl::OkStatus();
    if (!bytes_.ok())
      return absl::InvalidArgumentError("a message of the parameter servers' protocol is cut off");
    return absl::InvalidArgumentError(StrCat("a message of the parameter servers' protocol has ",
                                             bytes_.left(), " bytes too many"));
  }

 private:
  void Get(std::string& text) { (*this)(text); }
  template <class T>
  requires(std::is_arithmetic_v<T>) void Get(T& number) { (*this)(number); }
  void Get(TableRows& table);

  ByteReader bytes_;
};

// Visits the fields of a message in their order, for printing and for parsing.
template <class V, class... Fields>
void All(V& visit, Fields&... fields) {
  (visit(fields), ...);
}
template <class M, class T>
concept Is = std::is_same_v<std::remove_const_t<M>, T>;

template <class V, Is<Counts> M>
void Visit(V& v, M& m) {
  All(v, m.trained, m.dropped, m.repeated, m.left_at_end, m.bad_records, m.known);
}
template <class V, Is<Word> M>
void Visit(V& v, M& m) {
  All(v, m.counted, m.scales);
}
template <class V, Is<Hello> M>
void Visit(V& v, M& m) {
  All(v, m.version, m.replica, m.replicas, m.server, m.servers, m.synchronous, m.aggregate,
      m.agreement, m.generation, m.work);
}
template <class V, Is<State> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.phase, m.unfinished, m.step, m.sequence, m.position, m.counts, m.save);
}
template <class V, Is<Wait> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.for_all);
}
template <class V, Is<Begin> M>
void Visit(V& v, M& m) {
  All(v, m.generation);
}
template <class V, Is<Finish> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.left_at_end, m.bad_records);
}
template <class V, Is<Slice> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.variable, m.slot, m.first, m.count, m.values);
}
template <class V, Is<KeySlice> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.variable, m.first, m.count, m.keys, m.counts, m.last_steps, m.values);
}
template <class V, Is<ReadFile> M>
void Visit(V& v, M& m) {
  All(v, m.path);
}
template <class V, Is<FileText> M>
void Visit(V& v, M& m) {
  All(v, m.text);
}
template <class V, Is<SaveTables> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.path);
}
template <class V, Is<SavedTables> M>
void Visit(V& v, M& m) {
  All(v, m.checksums, m.keys);
}
template <class V, Is<LoadTables> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.checkpoint);
}
template <class V, Is<Ready> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.step, m.positions, m.counts);
}
template <class V, Is<TableRows> M>
void Visit(V& v, M& m) {
  All(v, m.variable, m.rows, m.keys, m.values);
}
template <class V, Is<Pull> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.sequence, m.step, m.rows, m.stop, m.tables, m.sequences, m.left_at_end,
      m.bad_records, m.word);
}
template <class V, Is<Pulled> M>
void Visit(V& v, M& m) {
  All(v, m.step, m.rows, m.stop, m.dense, m.tables, m.sequences, m.counts, m.word, m.settle,
      m.save);
}
template <class V, Is<Push> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.sequence, m.step, m.rows, m.finite, m.loss, m.data_loss, m.position,
      m.given, m.dense, m.tables, m.dropped);
}
template <class V, Is<Pushed> M>
void Visit(V& v, M& m) {
  All(v, m.step, m.finite, m.loss, m.data_loss, m.counts, m.stale, m.stop);
}
template <class V, Is<Hold> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.step, m.sequences, m.word);
}
template <class V, Is<Held> M>
void Visit(V& v, M& m) {
  All(v, m.step, m.positions, m.sequences, m.counts, m.word, m.settle);
}
template <class V, Is<Measure> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.sequence, m.step, m.word);
}
template <class V, Is<Measured> M>
void Visit(V& v, M& m) {
  All(v, m.squares);
}
template <class V, Is<Settle> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.step, m.squares);
}
template <class V, Is<Break> M>
void Visit(V& v, M& m) {
  All(v, m.generation, m.why);
}
template <class V, Is<Beat> M>
void Visit(V& v, M& m) {
  All(v, m.replica);
}
template <class V, Is<Refused> M>
void Visit(V& v, M& m) {
  All(v, m.code, m.text);
}
template <class V, Is<Empty> M>
void Visit(V&, M&) {}

void Writer::operator()(const Counts& counts) { Visit(*this, counts); }
void Reader::operator()(Counts& counts) { Visit(*this, counts); }
void Writer::operator()(const Word& word) { Visit(*this, word); }
void Reader::operator()(Word& word) { Visit(*this, word); }
void Writer::Put(const TableRows& table) { Visit(*this, table); }
void Reader::Get(TableRows& table) { Visit(*this, table); }

}  // namespace

template <class M>
void Print(const M& message, Bytes* bytes) {
  Writer writer(bytes);
  Visit(writer, message);
}

template <class M>
absl::StatusOr<M> Parse(ConstBytes bytes) {
  Reader reader(bytes);
  M message;
  Visit(reader, message);
  MUSTER_RETURN_IF_ERROR(reader.Finish());
  return message;
}

#define MUSTER_PS_MESSAGE(M)                \
  template void Print<M>(const M&, Bytes*); \
  template absl::StatusOr<M> Parse<M>(ConstBytes)
MUSTER_PS_MESSAGE(Hello);
MUSTER_PS_MESSAGE(State);
MUSTER_PS_MESSAGE(Wait);
MUSTER_PS_MESSAGE(Begin);
MUSTER_PS_MESSAGE(Finish);
MUSTER_PS_MESSAGE(Slice);
MUSTER_PS_MESSAGE(KeySlice);
MUSTER_PS_MESSAGE(ReadFile);
MUSTER_PS_MESSAGE(FileText);
MUSTER_PS_MESSAGE(SaveTables);
MUSTER_PS_MESSAGE(SavedTables);
MUSTER_PS_MESSAGE(LoadTables);
MUSTER_PS_MESSAGE(Ready);
MUSTER_PS_MESSAGE(Pull);
MUSTER_PS_MESSAGE(Pulled);
MUSTER_PS_MESSAGE(Push);
MUSTER_PS_MESSAGE(Pushed);
MUSTER_PS_MESSAGE(Hold);
MUSTER_PS_MESSAGE(Held);
MUSTER_PS_MESSAGE(Measure);
MUSTER_PS_MESSAGE(Measured);
MUSTER_PS_MESSAGE(Settle);
MUSTER_PS_MESSAGE(Break);
MUSTER_PS_MESSAGE(Beat);
MUSTER_PS_MESSAGE(Refused);
MUSTER_PS_MESSAGE(Empty);
#undef MUSTER_PS_MESSAGE

}  // namespace muster::ps
