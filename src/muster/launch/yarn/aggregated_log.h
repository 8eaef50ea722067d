// What YARN keeps of the containers' output after an application's end: a file of each node on
// HDFS, as Hadoop's LogAggregationTFileController writes it. The format is that of TFile
// (org.apache.hadoop.io.file.tfile) with big-endian numbers; a container is a key, and its value
// has its files one after the other: name, length as text, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::launch::yarn {

// The files of one container, by name ("stdout").
struct ContainerFiles {
  std::string container = {};
  std::map<std::string, std::string> files = {};
};

// Reads such a file, `name` in messages. INVALID_ARGUMENT for a compression other than none and gz,
// DATA_LOSS for bytes that are no such file.
absl::StatusOr<std::vector<ContainerFiles>> ParseAggregatedLog(std::string_view bytes,
                                                               const std::string& name);

// Where the files of an application's nodes are.
struct AggregatedPlace {
  std::string folder = {};  // yarn.nodemanager.remote-app-log-dir, with its scheme
  std::string suffix = "logs";
  std::string user = {};
};

// What one container of a task has written.
struct KeptOutput {
  int64_t incarnation = 0;  // of its task, that it ran
  std::string bytes = {};
};

// The outputs of all incarnations of a task, in their order. NOT_FOUND if nothing of the
// application was aggregated yet; UNAVAILABLE while a node is still writing. RESOURCE_EXHAUSTED for
// a file that is too long to be read here.
absl::StatusOr<std::vector<KeptOutput>> ReadAggregatedLog(io::FileSystem& files,
                                                          const AggregatedPlace& place,
                                                          const std::string& application,
                                                          const std::string& task);

}  // namespace muster::launch::yarn
