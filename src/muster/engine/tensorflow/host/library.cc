#include "muster/engine/tensorflow/host/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace muster::engine::tensorflow::host {
namespace {

constexpr const char* kLibraryName = "libtensorflow_cc.so.2";
constexpr int kLeastMajor = 2, kLeastMinor = 16;

// Looks up functions until one is missing.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

std::string FindFunctions(void* library, Functions* call) {
  Finder finder(library);
  finder.Find("TF_Version", &call->version);
  finder.Find("TF_NewStatus", &call->new_status);
  finder.Find("TF_DeleteStatus", &call->delete_status);
  finder.Find("TF_GetCode", &call->get_code);
  finder.Find("TF_Message", &call->message);
  finder.Find("TF_NewGraph", &call->new_graph);
  finder.Find("TF_DeleteGraph", &call->delete_graph);
  finder.Find("TF_NewSessionOptions", &call->new_session_options);
  finder.Find("TF_DeleteSessionOptions", &call->delete_session_options);
  finder.Find("TF_SetConfig", &call->set_config);
  finder.Find("TF_NewSession", &call->new_session);
  finder.Find("TF_SessionListDevices", &call->session_list_devices);
  finder.Find("TF_DeleteDeviceList", &call->delete_device_list);
  finder.Find("TF_DeviceListCount", &call->device_list_count);
  finder.Find("TF_DeviceListType", &call->device_list_type);
  finder.Find("TF_LoadSessionFromSavedModel", &call->load_session_from_saved_model);
  finder.Find("TF_CloseSession", &call->close_session);
  finder.Find("TF_DeleteSession", &call->delete_session);
  finder.Find("TF_GraphOperationByName", &call->graph_operation_by_name);
  finder.Find("TF_OperationNumOutputs", &call->operation_num_outputs);
  finder.Find("TF_OperationOutputType", &call->operation_output_type);
  finder.Find("TF_SessionRun", &call->session_run);
  finder.Find("TF_NewTensor", &call->new_tensor);
  finder.Find("TF_AllocateTensor", &call->allocate_tensor);
  finder.Find("TF_DeleteTensor", &call->delete_tensor);
  finder.Find("TF_TensorType", &call->tensor_type);
  finder.Find("TF_NumDims", &call->num_dims);
  finder.Find("TF_Dim", &call->dim);
  finder.Find("TF_TensorByteSize", &call->tensor_byte_size);
  finder.Find("TF_TensorData", &call->tensor_data);
  finder.Find("TF_StringInit", &call->string_init);
  finder.Find("TF_StringAssignView", &call->string_assign_view);
  finder.Find("TF_StringGetDataPointer", &call->string_get_data_pointer);
  finder.Find("TF_StringGetSize", &call->string_get_size);
  finder.Find("TF_StringDealloc", &call->string_dealloc);
  return finder.missing();
}

bool IsOldVersion(std::string_view version) {
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return true;
  std::from_chars(dot + 1, end, minor);
  return major < kLeastMajor || (major == kLeastMajor && minor < kLeastMinor);
}

}  // namespace

absl::StatusOr<Library> LoadLibrary(const std::string& folder) {
  const std::string path = StrCat(folder, "/", kLibraryName);
  if (access(path.c_str(), F_OK) != 0) {
    return absl::NotFoundError(StrCat("no ", kLibraryName, " in ", folder,
                                      ": name the folder of the Python package `tensorflow` (2.16 "
                                      "or newer)"));
  }
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        StrCat("load ", path, ": ", dlerror(),
               ": install the tensorflow package made for this machine and system"));
  }
  Library library;
  if (const std::string missing = FindFunctions(handle, &library.call); !missing.empty()) {
    return absl::FailedPreconditionError(
        StrCat(path, " has no function ", missing, ": muster needs TensorFlow 2.16 or newer"));
  }
  library.version = library.call.version();
  if (IsOldVersion(library.version)) {
    return absl::FailedPreconditionError(
        StrCat(path, " is TensorFlow ", library.version, ": muster needs 2.16 or newer"));
  }
  return library;
}

absl::Status TensorFlowStatus::ToStatus() const {
  const int code = call_.get_code(status_);
  if (code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code), call_.message(status_));
}

}  // namespace muster::engine::tensorflow::host
