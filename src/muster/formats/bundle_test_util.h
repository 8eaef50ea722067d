// Helpers for the tests of bundles.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/formats/bundle.h"
#include "muster/formats/bundle_proto.h"
#include "muster/formats/table.h"

namespace muster::formats {

inline absl::StatusOr<std::string> ReadTensorBytes(const BundleReader& reader,
                                                   const std::string& name) {
  const auto found = reader.tensors().find(name);
  std::string bytes(found == reader.tensors().end() ? 0 : found->second.bytes, '?');
  MUSTER_RETURN_IF_ERROR(reader.Read(name, bytes));
  return bytes;
}

// Writes an index with the given entries under the name "b"; the caller writes its data files.
inline void WriteIndex(io::FileSystem& files, const BundleHeader& header,
                       const std::vector<std::pair<std::string, std::string>>& entries) {
  TableBuilder table;
  table.Add("", SerializeBundleHeader(header));
  for (const auto& [name, entry] : entries) table.Add(name, entry);
  ASSERT_TRUE(io::WriteFileAtomically(files, "b.index", table.Finish()).ok());
}

}  // namespace muster::formats
