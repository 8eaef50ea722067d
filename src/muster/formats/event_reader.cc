#include <protozero/pbf_message.hpp>

#include "muster/base/crc32c.h"
#include "muster/formats/event.h"
#include "muster/formats/event_fields.h"
#include "muster/formats/table_coding.h"
#include "muster/formats/tfrecord.h"

namespace muster::formats {
namespace {

using protozero::pbf_wire_type;

// Whether the file ends inside the record that `bytes` begin with, as far as its undamaged bytes
// show.
bool IsCutRecord(std::string_view bytes) {
  constexpr size_t kHeaderBytes = 12;  // length and its masked CRC-32C
  if (bytes.size() < kHeaderBytes) return true;
  if (MaskedCrc32c(bytes.substr(0, 8)) != GetFixed32(bytes.data() + 8)) return false;
  return bytes.size() - kHeaderBytes < GetFixed64(bytes.data()) ||
         bytes.size() - kHeaderBytes - GetFixed64(bytes.data()) < 4;
}

void ReadSummaryValue(protozero::pbf_message<SummaryValueField> message, ScalarEvent event,
                      std::vector<ScalarEvent>* events) {
  bool has_value = false;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(SummaryValueField::kTag, pbf_wire_type::length_delimited):
        event.tag = message.get_string();
        break;
      case protozero::tag_and_type(SummaryValueField::kSimpleValue, pbf_wire_type::fixed32):
        event.value = message.get_float();
        has_value = true;
        break;
      default:
        message.skip();
    }
  }
  if (has_value) events->push_back(std::move(event));
}

// Throws protozero::exception if the bytes are not an Event.
void ReadEvent(std::string_view record, std::vector<ScalarEvent>* events) {
  ScalarEvent event;
  protozero::data_view summary;
  protozero::pbf_message<EventField> message(record.data(), record.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(EventField::kWallTime, pbf_wire_type::fixed64):
        event.wall_time = message.get_double();
        break;
      case protozero::tag_and_type(EventField::kStep, pbf_wire_type::varint):
        event.step = message.get_int64();
        break;
      case protozero::tag_and_type(EventField::kSummary, pbf_wire_type::length_delimited):
        summary = message.get_view();
        break;
      default:
        message.skip();
    }
  }
  protozero::pbf_message<SummaryField> values(summary);
  while (values.next(SummaryField::kValue, pbf_wire_type::length_delimited)) {
    ReadSummaryValue(values.get_message(), event, events);
  }
}

}  // namespace

absl::StatusOr<std::vector<ScalarEvent>> ReadScalarEvents(io::FileSystem& files,
                                                          const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path));
  std::vector<ScalarEvent> events;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const uint64_t offset = bytes.size() - rest.size();
    std::string_view record;
    const absl::StatusOr<uint64_t> frame = ParseRecord(rest, path, offset, &record);
    if (!frame.ok() && IsCutRecord(rest)) break;
    MUSTER_RETURN_IF_ERROR(frame.status());
    try {
      ReadEvent(record, &events);
    } catch (const protozero::exception& error) {
      return absl::DataLossError(
          StrCat(path, ": record at byte ", offset, ": not an event: ", error.what()));
    }
    rest.remove_prefix(*frame);
  }
  return events;
}

}  // namespace muster::formats
