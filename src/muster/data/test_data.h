// Makes files for the tests of this layer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/data/source_conformance.h"
#include "muster/formats/compression.h"
#include "muster/io/file_system.h"

namespace muster::data {

void WriteText(io::FileSystem& files, const std::string& path, const std::string& text);

// `damage`, if given, changes the frames before they are compressed.
void WriteTfRecords(io::FileSystem& files, const std::string& path,
                    const std::vector<std::string>& records,
                    formats::Compression compression = formats::Compression::kNone,
                    const std::function<void(std::string* frames)>& damage = {});

// Returns TFRecord, CSV and JSON lines, plain and compressed.
std::vector<std::shared_ptr<SourceFormat>> FileSourceFormats();
// Returns the formats of FileSourceFormats() and an in-memory log.
std::vector<std::shared_ptr<SourceFormat>> AllSourceFormats();

}  // namespace muster::data
