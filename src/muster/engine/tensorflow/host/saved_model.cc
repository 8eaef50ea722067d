#include "muster/engine/tensorflow/host/saved_model.h"

#include <charconv>
#include <cstring>
#include <utility>

namespace muster::engine::tensorflow::host {
namespace {

constexpr const char* kServeTag = "serve";

// A ConfigProto's experimental.executor_type "" (config.proto): after another one it replaces that
// one's, since a message that is appended is merged.
constexpr std::string_view kDefaultExecutor("\x82\x01\x02\x1a\x00", 5);

// TensorFlow owns the tensor, but its memory belongs to the segment.
void KeepMemory(void*, size_t, void*) {}

size_t TypeBytes(uint64_t type) {
  switch (type) {
    case 4:   // uint8
    case 6:   // int8
    case 10:  // bool
      return 1;
    case 5:   // int16
    case 14:  // bfloat16
    case 17:  // uint16
    case 19:  // float16
      return 2;
    case 1:   // float32
    case 3:   // int32
    case 22:  // uint32
      return 4;
    case 2:   // float64
    case 9:   // int64
    case 23:  // uint64
      return 8;
    default:
      return 0;
  }
}

uint64_t AlignUp(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

void DeleteSession(const Functions& call, TF_Session* session) {
  if (session == nullptr) return;
  const TensorFlowStatus ignored(call);
  call.close_session(session, ignored.get());
  call.delete_session(session, ignored.get());
}

// Whether sessions with these options have a device besides the processor.
bool HasAccelerator(const Functions& call, const TF_SessionOptions* options) {
  const TensorFlowStatus status(call);
  TF_Graph* const empty = call.new_graph();
  TF_Session* const session = call.new_session(empty, options, status.get());
  bool found = false;
  if (session != nullptr) {
    TF_DeviceList* const devices = call.session_list_devices(session, status.get());
    const int count = devices == nullptr ? 0 : call.device_list_count(devices);
    for (int i = 0; i < count; ++i) {
      const char* const type = call.device_list_type(devices, i, status.get());
      found = found || (type != nullptr && std::string_view(type) != "CPU");
    }
    if (devices != nullptr) call.delete_device_list(devices);
  }
  DeleteSession(call, session);
  call.delete_graph(empty);
  return found;
}

absl::Status BadFeed(const std::string& name, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("feed ", name, ": ", why));
}

uint64_t GetCount(const TensorPlace& place) {
  uint64_t elements = 0;
  return place.Elements(&elements) ? elements : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SavedModel>> SavedModel::Load(const Library& library,
                                                             const SharedSegment& segment,
                                                             const std::string& folder,
                                                             std::string_view config) {
  std::unique_ptr<SavedModel> model(new SavedModel(library, segment, folder));
  const Functions& call = library.call;
  const TensorFlowStatus status(call);
  TF_SessionOptions* const options = call.new_session_options();
  call.set_config(options, config.data(), config.size(), status.get());
  if (status.ToStatus().ok() && HasAccelerator(call, options)) {
    // The single-threaded executor would wait for ever: it runs the processor's part of a graph and
    // the device's part one after the other, and each waits for tensors of the other.
    const std::string changed = StrCat(config, kDefaultExecutor);
    call.set_config(options, changed.data(), changed.size(), status.get());
  }
  model->graph_ = call.new_graph();
  if (status.ToStatus().ok()) {
    model->session_ = call.load_session_from_saved_model(
        options, nullptr, folder.c_str(), &kServeTag, 1, model->graph_, nullptr, status.get());
  }
  call.delete_session_options(options);
  if (!status.ToStatus().ok()) {
    model->session_ = nullptr;
    return Annotate(status.ToStatus(),
                    StrCat("load ", folder, " with TensorFlow ", library.version));
  }
  return model;
}

SavedModel::~SavedModel() {
  DeleteResults();
  for (Function& function : functions_) {
    for (Feed& feed : function.tensors) DeleteTensor(feed.tensor);
  }
  DeleteSession(call_, session_);
  if (graph_ != nullptr) call_.delete_graph(graph_);
}

void SavedModel::DeleteTensor(TF_Tensor* tensor) const {
  if (tensor != nullptr) call_.delete_tensor(tensor);
}

void SavedModel::DeleteResults() {
  for (TF_Tensor* const tensor : results_) DeleteTensor(tensor);
  results_.clear();
}

absl::StatusOr<TfOutput> SavedModel::Find(std::string_view tensor) const {
  const size_t colon = tensor.rfind(':');
  const std::string name(tensor.substr(0, colon));
  TfOutput output;
  if (colon != tensor.npos) {
    const char* const end = tensor.data() + tensor.size();
    const auto [at, error] = std::from_chars(tensor.data() + colon + 1, end, output.index);
    if (error != std::errc() || at != end) output.index = -1;
  }
  output.operation = call_.graph_operation_by_name(graph_, name.c_str());
  if (output.operation == nullptr || output.index < 0 ||
      output.index >= call_.operation_num_outputs(output.operation)) {
    return absl::NotFoundError(StrCat("the graph of ", folder_, " has no tensor ", tensor,
                                      ": was its model.json made for it? Export the model again"));
  }
  return output;
}

absl::StatusOr<uint64_t> SavedModel::Define(const std::vector<FeedName>& feeds,
                                            const std::vector<std::string_view>& fetches) {
  Function function;
  for (const FeedName& feed : feeds) {
    MUSTER_ASSIGN_OR_RETURN(const TfOutput output, Find(feed.tensor));
    if (const int type = call_.operation_output_type(output); std::cmp_not_equal(type, feed.type)) {
      return absl::InvalidArgumentError(StrCat("tensor ", feed.tensor, " of ", folder_,
                                               " has TensorFlow's type ", type, ", not ",
                                               feed.type));
    }
    if (TypeBytes(feed.type) == 0 && feed.type != kStringType) {
      return absl::InvalidArgumentError(StrCat("tensor ", feed.tensor, " of ", folder_,
                                               " has TensorFlow's type ", feed.type,
                                               ", which cannot be fed"));
    }
    function.feeds.push_back(output);
    function.tensors.push_back({.place = {}, .name = std::string(feed.tensor), .tensor = nullptr});
    function.tensors.back().place.type = feed.type;
  }
  for (const std::string_view fetch : fetches) {
    MUSTER_ASSIGN_OR_RETURN(const TfOutput output, Find(fetch));
    function.fetches.push_back(output);
  }
  functions_.push_back(std::move(function));
  return functions_.size() - 1;
}

absl::StatusOr<TF_Tensor*> SavedModel::NewStrings(const TensorPlace& place,
                                                  uint64_t elements) const {
  int64_t dims[TensorPlace::kMaxRank];
  for (uint64_t i = 0; i < place.rank; ++i) dims[i] = static_cast<int64_t>(place.dims[i]);
  TF_Tensor* const tensor =
      call_.allocate_tensor(static_cast<int>(kStringType), dims, static_cast<int>(place.rank),
                            elements * sizeof(TfString));
  if (tensor == nullptr) {
    return absl::ResourceExhaustedError(StrCat("no memory for ", elements, " strings"));
  }
  auto* const strings = static_cast<TfString*>(call_.tensor_data(tensor));
  const std::byte* const offsets = segment_.at(place.offset);
  const std::byte* const texts = offsets + (elements + 1) * sizeof(uint64_t);
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t range[2];
    std::memcpy(range, offsets + i * sizeof(uint64_t), sizeof range);
    call_.string_init(strings + i);
    call_.string_assign_view(strings + i, reinterpret_cast<const char*>(texts) + range[0],
                             range[1] - range[0]);
  }
  return tensor;
}

absl::Status SavedModel::SetFeed(const TensorPlace& place, Feed* feed) const {
  const bool strings = place.type == kStringType;
  // Numbers are read in place at each run, but TensorFlow keeps views of strings.
  if (!strings && feed->tensor != nullptr && feed->place == place) return absl::OkStatus();
  uint64_t elements = 0;
  if (place.type != feed->place.type)
    return BadFeed(feed->name, "its type differs from the one it was defined with");
  if (!place.Elements(&elements) || !segment_.Has(place.offset, place.bytes) ||
      place.offset % kAlignment != 0) {
    return BadFeed(feed->name, "its place is not in the shared memory");
  }
  const bool fits = strings ? GoodStrings({segment_.at(place.offset), place.bytes}, elements)
                            : place.bytes == elements * TypeBytes(place.type);
  if (!fits) return BadFeed(feed->name, StrCat(place.bytes, " bytes do not fit its shape"));
  DeleteTensor(std::exchange(feed->tensor, nullptr));
  if (strings) {
    MUSTER_ASSIGN_OR_RETURN(feed->tensor, NewStrings(place, elements));
  } else {
    int64_t dims[TensorPlace::kMaxRank];
    for (uint64_t i = 0; i < place.rank; ++i) dims[i] = static_cast<int64_t>(place.dims[i]);
    feed->tensor =
        call_.new_tensor(static_cast<int>(place.type), dims, static_cast<int>(place.rank),
                         segment_.at(place.offset), place.bytes, KeepMemory, nullptr);
  }
  if (feed->tensor == nullptr)
    return BadFeed(feed->name, "TensorFlow could not make a tensor of it");
  feed->place = place;
  return absl::OkStatus();
}

absl::Status SavedModel::Run(uint64_t number, FieldReader feeds) {
  if (number >= functions_.size()) {
    return absl::InvalidArgumentError(StrCat("there is no function ", number));
  }
  Function& function = functions_[number];
  DeleteResults();
  inputs_.clear();
  for (Feed& feed : function.tensors) {
    TensorPlace place;
    if (!place.Read(feeds)) return BadFeed(feed.name, "it is missing");
    MUSTER_RETURN_IF_ERROR(SetFeed(place, &feed));
    inputs_.push_back(feed.tensor);
  }
  results_.assign(function.fetches.size(), nullptr);
  const TensorFlowStatus status(call_);
  call_.session_run(session_, nullptr, function.feeds.data(),
                    const_cast<TF_Tensor* const*>(inputs_.data()), static_cast<int>(inputs_.size()),
                    function.fetches.data(), results_.data(), static_cast<int>(results_.size()),
                    nullptr, 0, nullptr, status.get());
  if (const absl::Status error = status.ToStatus(); !error.ok()) {
    DeleteResults();
    return error;
  }
  return absl::OkStatus();
}

uint64_t SavedModel::DataBytes(const TF_Tensor* tensor) const {
  if (call_.tensor_type(tensor) != static_cast<int>(kStringType)) {
    return call_.tensor_byte_size(tensor);
  }
  const auto* const strings = static_cast<const TfString*>(call_.tensor_data(tensor));
  const size_t elements = call_.tensor_byte_size(tensor) / sizeof(TfString);
  uint64_t bytes = (elements + 1) * sizeof(uint64_t);
  for (size_t i = 0; i < elements; ++i) bytes += call_.string_get_size(strings + i);
  return bytes;
}

std::vector<TensorPlace> SavedModel::Places(uint64_t reply, uint64_t* end) const {
  std::vector<TensorPlace> places(results_.size());
  uint64_t at = reply + sizeof(uint64_t);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto rank = static_cast<uint64_t>(call_.num_dims(results_[i]));
    places[i].rank = rank;
    at += (4 + rank) * sizeof(uint64_t);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const TF_Tensor* const tensor = results_[i];
    TensorPlace& place = places[i];
    place.type = static_cast<uint64_t>(call_.tensor_type(tensor));
    for (uint64_t d = 0; d < place.rank && d < TensorPlace::kMaxRank; ++d) {
      place.dims[d] = static_cast<uint64_t>(call_.dim(tensor, static_cast<int>(d)));
    }
    place.bytes = DataBytes(tensor);
    place.offset = AlignUp(at);
    at = place.offset + place.bytes;
  }
  *end = at;
  return places;
}

uint64_t SavedModel::WriteResult(uint64_t reply, uint64_t room) const {
  uint64_t end = 0;
  const std::vector<TensorPlace> places = Places(reply, &end);
  if (end - reply > room) return end - reply;
  FieldWriter fields;
  fields.Number(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].Write(fields);
    const void* const data = call_.tensor_data(results_[i]);
    std::byte* to = segment_.at(places[i].offset);
    if (places[i].type != kStringType) {
      if (places[i].bytes > 0) std::memcpy(to, data, places[i].bytes);
      continue;
    }
    const auto* const strings = static_cast<const TfString*>(data);
    const uint64_t elements = GetCount(places[i]);
    std::byte* text = to + (elements + 1) * sizeof(uint64_t);
    for (uint64_t k = 0, offset = 0; k <= elements; ++k, to += sizeof offset) {
      std::memcpy(to, &offset, sizeof offset);
      if (k == elements) break;
      const size_t size = call_.string_get_size(strings + k);
      std::memcpy(text + offset, call_.string_get_data_pointer(strings + k), size);
      offset += size;
    }
  }
  std::memcpy(segment_.at(reply), fields.bytes().data(), fields.bytes().size());
  return end - reply;
}

}  // namespace muster::engine::tensorflow::host
