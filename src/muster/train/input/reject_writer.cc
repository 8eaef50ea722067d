#include "muster/train/input/reject_writer.h"

#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"

#include "muster/base/utf8.h"
#include "muster/formats/json_fields.h"

namespace muster::train {

absl::StatusOr<std::unique_ptr<RejectWriter>> RejectWriter::Create(io::FileSystem& files,
                                                                   const std::string& path) {
  std::unique_ptr<RejectWriter> writer(new RejectWriter(files, path));
  auto file = files.OpenForWrite(writer->temporary_);
  if (!file.ok()) return Annotate(file.status(), "writing bad records");
  writer->file_ = *std::move(file);
  return writer;
}

RejectWriter::RejectWriter(io::FileSystem& files, const std::string& path)
    : files_(files), path_(path), temporary_(io::TemporaryPath(path)) {}

RejectWriter::~RejectWriter() {
  if (!file_) return;
  file_->Close().IgnoreError();
  files_.Remove(temporary_).IgnoreError();
}

absl::Status RejectWriter::Add(const data::BadRecord& record) {
  // A source's reason begins with the place of the record.
  std::string_view why = ToStd(record.why.message());
  if (const std::string place = record.where + ": "; why.starts_with(place)) {
    why.remove_prefix(place.size());
  }
  formats::Json object = {
      {"row", record.number}, {"where", record.where}, {"error", std::string(why)}};
  if (!IsUtf8(record.bytes)) {
    object["record_base64"] = absl::Base64Escape(record.bytes);
  } else if (!record.bytes.empty()) {
    object["record"] = record.bytes;
  }
  return file_->Append(formats::PrintJson(object) + "\n");
}

absl::Status RejectWriter::Close() {
  MUSTER_RETURN_IF_ERROR(file_->Sync());
  MUSTER_RETURN_IF_ERROR(file_->Close());
  file_.reset();
  if (const absl::Status renamed = files_.Rename(temporary_, path_); !renamed.ok()) {
    files_.Remove(temporary_).IgnoreError();
    return renamed;
  }
  return files_.SyncFolder(io::Dirname(path_));
}

}  // namespace muster::train
