#include "muster/data/parquet/parquet_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/base/strings.h"
#include "muster/data/parquet/parquet_decoder.h"

namespace muster::data {
namespace {

using formats::Field;
using formats::Json;
using BlockPtr = std::shared_ptr<const ParquetBlock>;

constexpr int kPieceRows = 65536;  // of a block of a stream
// Of a block of a chunk that is held as a whole: each has a descriptor in muster-parquet.
constexpr int kChunkRows = 1 << 20;

// Whether muster-parquet gives the same values for both.
bool IsSameColumn(const Field& one, const Field& other) {
  return one.name == other.name && one.type == other.type && one.list == other.list &&
         one.truncate == other.truncate;
}

Json DescribeFields(const std::vector<Field>& fields) {
  Json columns = Json::array();
  for (const Field& field : fields) {
    Json& column = columns.emplace_back(Json::object());
    column["name"] = field.name;
    column["type"] = formats::ValueTypeName(field.type);
    column["list"] = field.list;
    column["truncate"] = field.truncate;
  }
  return columns;
}

// A chunk of the rows of blocks, at most `most`, which begin at row number `begin` of the file.
std::shared_ptr<Chunk> MakeChunk(const std::string& file, uint64_t begin, uint64_t number,
                                 uint64_t most, std::vector<BlockPtr> blocks) {
  auto chunk = std::make_shared<Chunk>();
  chunk->file = file;
  chunk->place = RecordPlace::kRow;
  chunk->first_number = number;
  uint64_t rows = 0;
  for (const BlockPtr& block : blocks) rows += block->rows;
  rows = std::min(rows, most);
  chunk->bytes.resize(rows * sizeof(ParquetRow));
  chunk->records.reserve(rows);
  chunk->offsets.reserve(rows);
  char* to = chunk->bytes.data();
  for (BlockPtr& block : blocks) {
    for (uint64_t row = 0; row < block->rows && chunk->records.size() < rows; ++row) {
      const ParquetRow record = {.block = block.get(), .row = row};
      std::memcpy(to, &record, sizeof record);
      chunk->records.emplace_back(to, sizeof record);
      chunk->offsets.push_back(++begin);
      to += sizeof record;
    }
    chunk->memory.push_back(std::move(block));
  }
  return chunk;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ParquetLane>> ParquetLanes::Take() {
  const MutexLock lock(&mutex_);
  if (!idle_.empty()) {
    std::shared_ptr<ParquetLane> lane = std::move(idle_.back());
    idle_.pop_back();
    return lane;
  }
  if (program_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(program_, ParquetProgram::Start(python_));
  }
  MUSTER_ASSIGN_OR_RETURN(auto connection, program_->Connect());
  return std::make_shared<ParquetLane>(std::move(connection));
}

void ParquetLanes::GiveBack(std::shared_ptr<ParquetLane> lane) {
  const MutexLock lock(&mutex_);
  idle_.push_back(std::move(lane));
}

// The blocks of one chunk, in order.
class ParquetSource::Blocks {
 public:
  Blocks(const ParquetSource& source, size_t chunk, std::vector<Field> wanted, int most_rows)
      : source_(source), chunk_(chunk), wanted_(std::move(wanted)), most_rows_(most_rows) {}
  ~Blocks() {
    if (lane_ != nullptr) source_.lanes_->GiveBack(std::move(lane_));
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // Null after the chunk's last row.
  absl::StatusOr<BlockPtr> Next() {
    const ChunkInfo& info = source_.table_.chunks[chunk_];
    if (rows_ >= info.records) return nullptr;
    auto block = Ask(info);
    if (!block.ok()) {
      if (!absl::IsInvalidArgument(block.status())) lane_ = nullptr;
      return block;
    }
    if (*block == nullptr) {
      return absl::DataLossError(StrCat(source_.table_.names[static_cast<size_t>(info.file)],
                                        ": row group ", source_.groups_[chunk_], " ends after ",
                                        info.first_record + rows_,
                                        " rows, but has more by the file's footer"));
    }
    MUSTER_RETURN_IF_ERROR(CheckKinds(**block, wanted_));
    rows_ += (*block)->rows;
    return block;
  }

 private:
  absl::StatusOr<BlockPtr> Ask(const ChunkInfo& info) {
    Json request = Json::object();
    request["op"] = lane_ != nullptr ? "next" : "read";
    if (lane_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(lane_, source_.lanes_->Take());
      request["file"] = source_.table_.names[static_cast<size_t>(info.file)];
      request["group"] = source_.groups_[chunk_];
      request["skip"] = info.first_record;
      request["batch_rows"] = most_rows_;
      request["columns"] = DescribeFields(wanted_);
    }
    return lane_->AskForRows(std::move(request), wanted_.size());
  }

  const ParquetSource& source_;
  const size_t chunk_;
  const std::vector<Field> wanted_;
  const int most_rows_;
  std::shared_ptr<ParquetLane> lane_;
  uint64_t rows_ = 0;
};

// A chunk in pieces of a block each.
class ParquetSource::Pieces : public ChunkStream {
 public:
  Pieces(const ParquetSource& source, size_t chunk, std::vector<Field> wanted)
      : source_(source), chunk_(chunk), blocks_(source, chunk, std::move(wanted), kPieceRows) {}

  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    MUSTER_ASSIGN_OR_RETURN(BlockPtr block, blocks_.Next());
    if (block == nullptr) return nullptr;
    const ChunkInfo& info = source_.table_.chunks[chunk_];
    const uint64_t rows = block->rows, before = std::exchange(rows_, rows_ + rows);
    std::vector<BlockPtr> blocks;
    blocks.push_back(std::move(block));
    return MakeChunk(source_.table_.names[static_cast<size_t>(info.file)],
                     info.begin + info.first_record + before, info.first_number + before,
                     info.records - before, std::move(blocks));
  }

 private:
  const ParquetSource& source_;
  const size_t chunk_;
  Blocks blocks_;
  uint64_t rows_ = 0;
};

ParquetSource::ParquetSource(ChunkTable table, std::vector<int> groups,
                             std::shared_ptr<ParquetLanes> lanes)
    : table_(std::move(table)), groups_(std::move(groups)), lanes_(std::move(lanes)) {}

absl::StatusOr<std::shared_ptr<const Chunk>> ParquetSource::Read(size_t number) const {
  std::vector<Field> wanted;
  {
    const MutexLock lock(&mutex_);
    wanted = wanted_;
  }
  const ChunkInfo& info = table_.chunks[number];
  Blocks blocks(*this, number, std::move(wanted), kChunkRows);
  std::vector<BlockPtr> found;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(BlockPtr block, blocks.Next());
    if (block == nullptr) break;
    found.push_back(std::move(block));
  }
  return MakeChunk(table_.names[static_cast<size_t>(info.file)], info.begin + info.first_record,
                   info.first_number, info.records, std::move(found));
}

absl::StatusOr<std::unique_ptr<ChunkStream>> ParquetSource::Stream(size_t chunk) const {
  const MutexLock lock(&mutex_);
  return std::make_unique<Pieces>(*this, chunk, wanted_);
}

absl::StatusOr<std::unique_ptr<formats::RowDecoder>> ParquetSource::NewDecoder(
    const formats::Schema& schema) const {
  const MutexLock lock(&mutex_);
  std::vector<size_t> places;
  for (const Field& field : schema.fields) {
    const auto same = std::find_if(wanted_.begin(), wanted_.end(),
                                   [&](const Field& each) { return IsSameColumn(each, field); });
    places.push_back(static_cast<size_t>(same - wanted_.begin()));
    if (same == wanted_.end()) wanted_.push_back(field);
  }
  return NewParquetDecoder(schema, std::move(places));
}

}  // namespace muster::data
