// tfrecord_peer FILE: libprotobuf's side. Each record is parsed into a message on an arena that is
// emptied with the batch, and its features are looked up by name; strings stay in the arena.
// Framing and CRCs are Muster's, so that only the parsing differs.
#include <google/protobuf/arena.h>

#include "example.pb.h"
#include "forty_features.h"

namespace muster::bench {
namespace {

class ArenaDecoder {
 public:
  ArenaDecoder() : arena_(Options()), schema_(FortyFeatures()) {}

  absl::Status Decode(std::string_view record, formats::Columns* columns) {
    auto* example = google::protobuf::Arena::CreateMessage<Example>(&arena_);
    if (!example->ParseFromArray(record.data(), static_cast<int>(record.size()))) {
      return absl::DataLossError("not a tf.Example");
    }
    const auto& features = example->features().feature();
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const auto found = features.find(schema_.fields[i].name);
      if (found == features.end()) return absl::InvalidArgumentError("a feature is missing");
      formats::Column& column = columns->mutable_column(static_cast<int>(i));
      switch (schema_.fields[i].type) {
        case formats::ValueType::kFloat:
          column.floats.push_back(found->second.float_list().value(0));
          break;
        case formats::ValueType::kString:
          column.strings.push_back(found->second.bytes_list().value(0));
          break;
        case formats::ValueType::kInt:
          column.ints.push_back(found->second.int64_list().value(0));
          break;
      }
    }
    columns->AddRow();
    return absl::OkStatus();
  }

  void ClearBatch(formats::Columns* columns) {
    columns->Clear();
    arena_.Reset();
  }

 private:
  static google::protobuf::ArenaOptions Options() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = size_t{1} << 20;
    options.max_block_size = size_t{4} << 20;
    return options;
  }

  google::protobuf::Arena arena_;
  formats::Schema schema_;
};

absl::Status Run(const std::string& path) {
  ArenaDecoder decoder;
  return Measure(path, {[&](std::string_view record, formats::Columns* columns) {
                          return decoder.Decode(record, columns);
                        },
                        [&](formats::Columns* columns) { decoder.ClearBatch(columns); }});
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tfrecord_peer FILE\n");
    return 2;
  }
  return muster::bench::ExitCode(muster::bench::Run(argv[1]));
}
