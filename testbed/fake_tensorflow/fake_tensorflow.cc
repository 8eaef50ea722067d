// The functions of TensorFlow's C API that muster-tensorflow calls, over a toy graph, with faults.
// FOLDER/saved_model.pb is text, a line each:
//   feed NAME TYPE            a tensor of TensorFlow's type number TYPE
//   fetch NAME copy A         A's bytes and shape
//   fetch NAME sum A          one float: the sum of A's floats
//   fetch NAME floats A       A's int64 as floats
//   fetch NAME flat A         A's numbers in one dimension
//   fetch NAME picked A B     the rows of A that B's int32 name, in one dimension of rows
//   fetch NAME zeros N        N floats
//   fault KIND RUN MARKER     in run RUN of the process, unless the file MARKER exists, which is
//                             made: crash, hang or kill; KIND fail: an error, always
// FAKE_TENSORFLOW_VERSION is its version. FAKE_TENSORFLOW_DEVICE=GPU adds a device of that type; on
// two devices the single-threaded executor hangs, as TensorFlow's does.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kFloat = 1, kString = 7;

struct Text {
  uint64_t size = 0;
  const char* data = nullptr;
  uint64_t owned = 0;
};

size_t BytesOf(int type) {
  return type == kString ? sizeof(Text) : type == 9 || type == 2 ? 8 : type == 10 ? 1 : 4;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): TensorFlow's names
struct TF_Status {
  int code = 0;
  std::string message;
};

struct TF_Tensor {
  int type = kFloat;
  std::vector<int64_t> dims;
  std::vector<char> own;  // what it has itself
  void* data = nullptr;
  size_t bytes = 0;
};

struct TF_Operation {
  std::string name, kind, a, b;
  int type = 0;
};

struct TF_Graph {
  std::map<std::string, TF_Operation> operations;
};

struct TF_Session {
  TF_Graph* graph = nullptr;
  std::vector<std::vector<std::string>> faults;
  int runs = 0;
  bool hangs = false;
};

struct TF_DeviceList {
  std::vector<std::string> types;
};

struct TF_SessionOptions {
  std::string config;
};

struct TF_Output {
  TF_Operation* operation;
  int index;
};
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

namespace {

TF_Tensor* NewTensor(int type, std::vector<int64_t> dims, const void* data, size_t bytes) {
  auto* const tensor = new TF_Tensor{.type = type, .dims = std::move(dims), .own = {}};
  tensor->own.resize(bytes);
  if (data != nullptr && bytes > 0) std::memcpy(tensor->own.data(), data, bytes);
  tensor->data = tensor->own.data();
  tensor->bytes = bytes;
  return tensor;
}

int64_t Elements(const TF_Tensor& tensor) {
  return static_cast<int64_t>(tensor.bytes / BytesOf(tensor.type));
}

TF_Tensor* Compute(const TF_Operation& fetch, const std::map<std::string, TF_Tensor*>& fed) {
  if (fetch.kind == "zeros") {
    const int64_t count = std::atoll(fetch.a.c_str());
    return NewTensor(kFloat, {count}, nullptr, static_cast<size_t>(count) * sizeof(float));
  }
  const TF_Tensor& a = *fed.at(fetch.a);
  if (fetch.kind == "copy") return NewTensor(a.type, a.dims, a.data, a.bytes);
  if (fetch.kind == "flat") return NewTensor(a.type, {Elements(a)}, a.data, a.bytes);
  const auto* const floats = static_cast<const float*>(a.data);
  if (fetch.kind == "sum") {
    float sum = 0;
    for (int64_t i = 0; i < Elements(a); ++i) sum += floats[i];
    return NewTensor(kFloat, {}, &sum, sizeof sum);
  }
  if (fetch.kind == "floats") {
    std::vector<float> values;
    for (int64_t i = 0; i < Elements(a); ++i) {
      values.push_back(static_cast<float>(static_cast<const int64_t*>(a.data)[i]));
    }
    return NewTensor(kFloat, a.dims, values.data(), values.size() * sizeof(float));
  }
  const TF_Tensor& b = *fed.at(fetch.b);
  std::vector<float> picked;
  for (int64_t i = 0; i < Elements(b); ++i) {
    const float* const row = floats + static_cast<const int32_t*>(b.data)[i] * a.dims[1];
    picked.insert(picked.end(), row, row + a.dims[1]);
  }
  return NewTensor(kFloat, {Elements(b), a.dims[1]}, picked.data(), picked.size() * sizeof(float));
}

void Fail(TF_Status* status, int code, const std::string& message) { *status = {code, message}; }

std::vector<std::string> DeviceTypes() {
  const char* const added = std::getenv("FAKE_TENSORFLOW_DEVICE");
  if (added == nullptr) return {"CPU"};
  return {"CPU", added};
}

// Whether the last executor_type of a ConfigProto is that of one thread.
bool IsSingleThreaded(const std::string& config) {
  const size_t named = config.rfind("SINGLE_THREADED_EXECUTOR");
  const size_t unnamed = config.rfind(std::string("\x1a\0", 2));
  return named != config.npos && (unnamed == config.npos || unnamed < named);
}

// True: the run is to fail.
bool MakeFaults(TF_Session* session) {
  ++session->runs;
  while (session->hangs) pause();
  for (const auto& fault : session->faults) {
    if (std::atoi(fault[1].c_str()) != session->runs) continue;
    if (fault[0] == "fail") return true;
    if (access(fault[2].c_str(), F_OK) == 0) continue;
    std::ofstream(fault[2]) << "made";
    std::fprintf(stderr, "the fake shall %s in run %d\n", fault[0].c_str(), session->runs);
    if (fault[0] == "crash") abort();
    if (fault[0] == "kill") raise(SIGKILL);
    while (true) pause();
  }
  return false;
}

}  // namespace

extern "C" {

const char* TF_Version() {
  const char* const version = std::getenv("FAKE_TENSORFLOW_VERSION");
  return version == nullptr ? "2.99.0-fake" : version;
}
TF_Status* TF_NewStatus() { return new TF_Status; }
void TF_DeleteStatus(TF_Status* status) { delete status; }
int TF_GetCode(const TF_Status* status) { return status->code; }
const char* TF_Message(const TF_Status* status) { return status->message.c_str(); }
TF_Graph* TF_NewGraph() { return new TF_Graph; }
void TF_DeleteGraph(TF_Graph* graph) { delete graph; }
TF_SessionOptions* TF_NewSessionOptions() { return new TF_SessionOptions; }
void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }
void TF_SetConfig(TF_SessionOptions* options, const void* config, size_t bytes, TF_Status*) {
  options->config.assign(static_cast<const char*>(config), bytes);
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions*, TF_Status*) {
  return new TF_Session{.graph = graph, .faults = {}};
}
TF_DeviceList* TF_SessionListDevices(TF_Session*, TF_Status*) {
  return new TF_DeviceList{DeviceTypes()};
}
void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }
int TF_DeviceListCount(const TF_DeviceList* list) { return static_cast<int>(list->types.size()); }
const char* TF_DeviceListType(const TF_DeviceList* list, int i, TF_Status*) {
  return list->types[static_cast<size_t>(i)].c_str();
}

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* options, const void*,
                                         const char* folder, const char* const*, int,
                                         TF_Graph* graph, void*, TF_Status* status) {
  std::ifstream file(std::string(folder) + "/saved_model.pb");
  if (!file) {
    Fail(status, 5, std::string("no saved_model.pb in ") + folder);
    return nullptr;
  }
  auto* const session = new TF_Session{.graph = graph, .faults = {}};
  session->hangs = DeviceTypes().size() > 1 && IsSingleThreaded(options->config);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, name;
    words >> what >> name;
    if (what == "fault") {
      auto& fault = session->faults.emplace_back(3);
      fault[0] = name;
      words >> fault[1] >> fault[2];
    } else {
      TF_Operation operation{.name = name, .kind = what, .a = {}, .b = {}};
      if (what == "feed") words >> operation.type;
      if (what == "fetch") words >> operation.kind >> operation.a >> operation.b;
      graph->operations.emplace(name, operation);
    }
  }
  return session;
}
void TF_CloseSession(TF_Session*, TF_Status*) {}
void TF_DeleteSession(TF_Session* session, TF_Status*) { delete session; }

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* name) {
  const auto found = graph->operations.find(name);
  return found == graph->operations.end() ? nullptr : &found->second;
}
int TF_OperationNumOutputs(TF_Operation*) { return 1; }
int TF_OperationOutputType(TF_Output output) { return output.operation->type; }

void TF_SessionRun(TF_Session* session, const void*, const TF_Output* inputs,
                   TF_Tensor* const* values, int count, const TF_Output* outputs,
                   TF_Tensor** results, int result_count, const TF_Operation* const*, int, void*,
                   TF_Status* status) {
  if (MakeFaults(session)) return Fail(status, 3, "the fake was told to fail");
  std::map<std::string, TF_Tensor*> fed;
  for (int i = 0; i < count; ++i) fed[inputs[i].operation->name] = values[i];
  for (int i = 0; i < result_count; ++i) results[i] = Compute(*outputs[i].operation, fed);
}

TF_Tensor* TF_NewTensor(int type, const int64_t* dims, int rank, void* data, size_t bytes,
                        void (*)(void*, size_t, void*), void*) {
  return new TF_Tensor{
      .type = type, .dims = {dims, dims + rank}, .own = {}, .data = data, .bytes = bytes};
}
TF_Tensor* TF_AllocateTensor(int type, const int64_t* dims, int rank, size_t bytes) {
  return NewTensor(type, {dims, dims + rank}, nullptr, bytes);
}
void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }
int TF_TensorType(const TF_Tensor* tensor) { return tensor->type; }
int TF_NumDims(const TF_Tensor* tensor) { return static_cast<int>(tensor->dims.size()); }
int64_t TF_Dim(const TF_Tensor* tensor, int i) { return tensor->dims[static_cast<size_t>(i)]; }
size_t TF_TensorByteSize(const TF_Tensor* tensor) { return tensor->bytes; }
void* TF_TensorData(const TF_Tensor* tensor) { return tensor->data; }

// A view of memory that lasts as long as the run and what it gave.
void TF_StringInit(Text* text) { *text = {}; }
void TF_StringAssignView(Text* text, const char* data, size_t size) { *text = {size, data}; }
const char* TF_StringGetDataPointer(const Text* text) { return text->data; }
size_t TF_StringGetSize(const Text* text) { return text->size; }
void TF_StringDealloc(Text*) {}

}  // extern "C"
