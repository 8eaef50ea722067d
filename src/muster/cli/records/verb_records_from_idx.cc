#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/conversion.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/convert_idx.h"
#include "muster/files/file_systems.h"

namespace muster::cli {
namespace {

struct FromIdxFlags {
  data::IdxConversionSpec spec;
  ConversionFlags conversion;
};

absl::Status RunFromIdx(const FromIdxFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckOut(*files, flags.conversion));
  data::IdxConversionSpec spec = flags.spec;
  spec.output = flags.conversion.output();
  return RunConversion(flags.conversion, "images", [&](const data::ConversionProgress& progress) {
    return data::ConvertIdx(*files, spec, progress);
  });
}

}  // namespace

void AddRecordsFromIdx(CLI::App& records) {
  const auto flags = std::make_shared<FromIdxFlags>();
  CLI::App* verb =
      records.add_subcommand("from-idx", "Convert IDX files (such as MNIST) to TFRecord shards");
  verb->footer(
      "Each image becomes a bytes feature of its raw values, which an exported Keras model reads "
      "by\n"
      "muster.keras.Field(\"image\", \"uint8\", [28, 28, 1], decode=\"raw\"); its label an int64\n"
      "feature. Image i is in part-0000X-of-0000N.tfrecord, X being i modulo N. The shards appear\n"
      "together at the end, or not at all.\n"
      "Example:\n"
      "  muster records from-idx t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz \\\n"
      "    --out data/mnist --shards 5");
  verb->add_option("images", flags->spec.images, "File of images, plain or GZIP")
      ->required()
      ->type_name("IMAGES");
  verb->add_option("labels", flags->spec.labels, "File of their labels")->type_name("LABELS");
  verb->add_option("--image", flags->spec.image_feature, "Name of the image's feature")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--label", flags->spec.label_feature, "Name of the label's feature")
      ->type_name("NAME")
      ->capture_default_str();
  AddConversionFlags(verb, &flags->conversion);
  verb->callback([flags] { FailUnlessOk(RunFromIdx(*flags)); });
}

}  // namespace muster::cli
