// IDX files (MNIST and its kin) to a set of TFRecord shards of tf.Example.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/data/convert.h"
#include "muster/data/shard_writer.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct IdxConversionSpec {
  std::string images;  // a file, plain or compressed
  std::string labels;  // the same: one whole number for each image; empty: there are none
  std::string image_feature = "image";
  std::string label_feature = "label";
  ShardSetSpec output;
};

// Makes a record of each item of `images`: its elements as bytes, little-endian, and its label as
// int64. Dealt round robin: record i is in shard i % shards. Memory holds one item. After an error
// no shard is left. INVALID_ARGUMENT for labels that are no whole numbers or not as many as there
// are images, for features of one name, and when there is no item; DATA_LOSS for broken files.
absl::StatusOr<ConversionCounts> ConvertIdx(io::FileSystem& files, const IdxConversionSpec& spec,
                                            const ConversionProgress& progress = {});

}  // namespace muster::data
