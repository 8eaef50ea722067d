// Converts IDX files (such as MNIST's) to a set of TFRecord part files of tf.Example.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/data/convert.h"
#include "muster/data/part_file_writer.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct IdxConversionSpec {
  std::string images;  // a file, plain or compressed
  std::string labels;  // also a file: one integer for each image; "": no labels
  std::string image_feature = "image";
  std::string label_feature = "label";
  PartFilesSpec output;
};

// Makes a record of each item of `images`: its elements as little-endian bytes, and its label as
// int64. Records are distributed round robin: record i is in part file i % files. Memory holds one
// item. After an error no part file is left. INVALID_ARGUMENT if labels are not integers or their
// number differs from that of the images, if two features have the same name, and if there is no
// item; DATA_LOSS for broken files.
absl::StatusOr<ConversionCounts> ConvertIdx(io::FileSystem& files, const IdxConversionSpec& spec,
                                            const ConversionProgress& progress = {});

}  // namespace muster::data
