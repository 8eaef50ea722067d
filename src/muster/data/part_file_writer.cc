#include "muster/data/part_file_writer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace muster::data {
namespace {

std::string_view GetSuffix(formats::Compression compression) {
  switch (compression) {
    case formats::Compression::kGzip:
      return ".gz";
    case formats::Compression::kZlib:
      return ".zlib";
    case formats::Compression::kNone:
    case formats::Compression::kZstd:  // Muster does not write zstd
      break;
  }
  return "";
}

// Whether the name looks like "part-00000-of-00005.tfrecord", with or without a suffix.
bool IsPartFileName(std::string_view name) {
  constexpr std::string_view kPattern = "part-#####-of-#####.tfrecord";
  if (name.size() < kPattern.size()) return false;
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    if (kPattern[i] == '#' ? !digit : name[i] != kPattern[i]) return false;
  }
  const std::string_view suffix = name.substr(kPattern.size());
  return suffix.empty() || suffix == ".gz" || suffix == ".zlib";
}

}  // namespace

std::string PartFileName(int index, int count, formats::Compression compression) {
  char name[64];
  std::snprintf(name, sizeof name, "part-%05d-of-%05d.tfrecord", index, count);
  return StrCat(name, GetSuffix(compression));
}

absl::StatusOr<std::unique_ptr<PartFileWriter>> PartFileWriter::Create(io::FileSystem& files,
                                                                       const PartFilesSpec& spec) {
  if (spec.files < 1 || spec.files > kMaxPartFiles) {
    return absl::InvalidArgumentError(
        StrCat(spec.files, " part files: the number must be from 1 to ", kMaxPartFiles));
  }
  std::unique_ptr<PartFileWriter> writer(new PartFileWriter(files, spec));
  MUSTER_RETURN_IF_ERROR(writer->Open());
  return writer;
}

absl::Status PartFileWriter::Open() {
  MUSTER_RETURN_IF_ERROR(files_.MakeFolders(spec_.folder));
  MUSTER_RETURN_IF_ERROR(FindOtherFiles());
  for (int i = 0; i < spec_.files; ++i) {
    std::string path = io::JoinPath(spec_.folder, PartFileName(i, spec_.files, spec_.compression));
    MUSTER_ASSIGN_OR_RETURN(auto file, files_.OpenForWrite(io::TemporaryPath(path)));
    parts_.push_back({std::move(path), nullptr,
                      RecordIndexBuilder(FileFormat::kTfRecord, spec_.compression), 0});
    MUSTER_ASSIGN_OR_RETURN(parts_.back().writer,
                            formats::TfRecordWriter::Create(std::move(file), spec_.compression));
  }
  return absl::OkStatus();
}

absl::Status PartFileWriter::FindOtherFiles() {
  MUSTER_ASSIGN_OR_RETURN(const auto names, files_.List(spec_.folder));
  for (const std::string& name : names) {
    if (!IsPartFileName(name)) continue;
    int index = 0;
    std::sscanf(name.c_str(), "part-%d", &index);
    if (name != PartFileName(index, spec_.files, spec_.compression)) others_.push_back(name);
  }
  if (others_.empty() || spec_.overwrite) return absl::OkStatus();
  return absl::AlreadyExistsError(
      StrCat(io::JoinPath(spec_.folder, others_[0]),
             " belongs to another set of part files: choose another folder, or give --overwrite to "
             "replace that set"));
}

PartFileWriter::~PartFileWriter() {
  if (committed_) return;
  for (Part& part : parts_) {
    part.writer = nullptr;
    files_.Remove(io::TemporaryPath(part.path)).IgnoreError();
  }
}

absl::Status PartFileWriter::Write(std::string_view record) {
  Part& part = parts_[next_];
  next_ = next_ + 1 == parts_.size() ? 0 : next_ + 1;
  part.index.Add(part.writer->offset());
  return part.writer->Write(record);
}

absl::Status PartFileWriter::Commit() {
  for (Part& part : parts_) {
    part.end = part.writer->offset();
    MUSTER_RETURN_IF_ERROR(part.writer->Close());
  }
  const absl::Status status = Publish();
  if (!status.ok()) {
    for (const Part& part : parts_) {
      files_.Remove(part.path).IgnoreError();
      files_.Remove(RecordIndexPath(part.path)).IgnoreError();
    }
    return status;
  }
  committed_ = true;
  return absl::OkStatus();
}

absl::Status PartFileWriter::Publish() {
  for (const Part& part : parts_) {
    MUSTER_RETURN_IF_ERROR(files_.Rename(io::TemporaryPath(part.path), part.path));
  }
  for (Part& part : parts_) {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files_.Stat(part.path));
    file_bytes_ += info.size;
    MUSTER_RETURN_IF_ERROR(
        WriteRecordIndex(files_, part.path, std::move(part.index).Finish(part.end, info.size)));
  }
  for (const std::string& other : others_) {
    const std::string path = io::JoinPath(spec_.folder, other);
    MUSTER_RETURN_IF_ERROR(files_.Remove(path));
    files_.Remove(RecordIndexPath(path)).IgnoreError();
  }
  return files_.SyncFolder(spec_.folder);
}

std::vector<std::string> PartFileWriter::paths() const {
  std::vector<std::string> paths;
  for (const Part& part : parts_) paths.push_back(part.path);
  return paths;
}

}  // namespace muster::data
