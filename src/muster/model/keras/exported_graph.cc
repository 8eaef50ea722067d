#include "muster/model/keras/exported_graph.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

namespace muster::model {
namespace {

enum class SavedModelField : protozero::pbf_tag_type { kMetaGraphs = 2 };
enum class MetaGraphField : protozero::pbf_tag_type { kGraph = 2 };

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// Returns the graph of the first MetaGraphDef; "" if there is none. Throws protozero's exceptions.
std::string FirstGraph(const std::string& bytes) {
  protozero::pbf_message<SavedModelField> saved(bytes);
  while (saved.next(SavedModelField::kMetaGraphs)) {
    protozero::pbf_message<MetaGraphField> meta(saved.get_view());
    while (meta.next(MetaGraphField::kGraph)) return std::string(meta.get_view());
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> StepGraph(io::FileSystem& files,
                                      const engine::tensorflow::KerasExport& model) {
  const std::string path = io::JoinPath(model.saved_model(), "saved_model.pb");
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path, kMaxBytes));
  try {
    return FirstGraph(bytes);
  } catch (const protozero::exception&) {
    return absl::DataLossError(StrCat(path, " is cut or changed: export the model again"));
  }
}

}  // namespace muster::model
