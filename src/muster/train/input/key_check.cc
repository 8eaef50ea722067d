#include "muster/train/input/key_check.h"

#include <algorithm>
#include <memory>

#include "muster/data/source_set.h"
#include "muster/formats/columns.h"
#include "muster/formats/decoder.h"

namespace muster::train {
namespace {

constexpr size_t kLookedAt = 100;  // records

bool AreFilesOfRecords(io::FileSystem& files, const data::SourceSpec& spec) {
  const auto set = data::ChooseSourceSet(files, spec.schemes, spec.patterns);
  return set.ok() && std::ranges::none_of(spec.schemes, [&set](const auto& scheme) {
           return scheme.second == *set;
         });
}

}  // namespace

std::string MakeKeyWarning(io::FileSystem& files, const data::SourceSpec& spec,
                           const data::RecordSource& source,
                           const features::FeatureSpec& features) {
  const int key = features.key.empty() ? -1 : features.schema.Find(features.key);
  if (key < 0 || source.chunks().empty() || !AreFilesOfRecords(files, spec)) return "";
  formats::Schema schema;
  formats::Field& field =
      schema.fields.emplace_back(features.schema.fields[static_cast<size_t>(key)]);
  field.has_default = true;  // a row without a key is none that cannot be read
  const auto decoder = source.NewDecoder(schema);
  const auto stream = source.Stream(0);
  if (!decoder.ok() || !stream.ok()) return "";
  const auto piece = (*stream)->Next();
  if (!piece.ok() || *piece == nullptr) return "";
  (*decoder)->UseLayout((*piece)->layout);
  formats::Columns columns(schema);
  for (size_t i = 0; i < std::min(kLookedAt, (*piece)->records.size()); ++i) {
    const absl::Status status = (*decoder)->Decode((*piece)->records[i], &columns);
    if (status.ok()) continue;
    return StrCat("predict will not be able to read the key: ", (*piece)->Where(i), ": ",
                  status.message(), "; if its values are words, make ", features.key,
                  " a string under inputs in the model file");
  }
  return "";
}

}  // namespace muster::train
