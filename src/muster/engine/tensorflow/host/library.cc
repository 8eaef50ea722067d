#include "muster/engine/tensorflow/host/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace muster::engine::tensorflow::host {
namespace {

constexpr const char* kLibraryName = "libtensorflow_cc.so.2";
constexpr int kLeastMajor = 2, kLeastMinor = 16;

// Finds functions until one is missing.
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
  finder.Find("TF_Version", &call->Version);
  finder.Find("TF_NewStatus", &call->NewStatus);
  finder.Find("TF_DeleteStatus", &call->DeleteStatus);
  finder.Find("TF_GetCode", &call->GetCode);
  finder.Find("TF_Message", &call->Message);
  finder.Find("TF_NewGraph", &call->NewGraph);
  finder.Find("TF_DeleteGraph", &call->DeleteGraph);
  finder.Find("TF_NewSessionOptions", &call->NewSessionOptions);
  finder.Find("TF_DeleteSessionOptions", &call->DeleteSessionOptions);
  finder.Find("TF_SetConfig", &call->SetConfig);
  finder.Find("TF_LoadSessionFromSavedModel", &call->LoadSessionFromSavedModel);
  finder.Find("TF_CloseSession", &call->CloseSession);
  finder.Find("TF_DeleteSession", &call->DeleteSession);
  finder.Find("TF_GraphOperationByName", &call->GraphOperationByName);
  finder.Find("TF_OperationNumOutputs", &call->OperationNumOutputs);
  finder.Find("TF_OperationOutputType", &call->OperationOutputType);
  finder.Find("TF_SessionRun", &call->SessionRun);
  finder.Find("TF_NewTensor", &call->NewTensor);
  finder.Find("TF_AllocateTensor", &call->AllocateTensor);
  finder.Find("TF_DeleteTensor", &call->DeleteTensor);
  finder.Find("TF_TensorType", &call->TensorType);
  finder.Find("TF_NumDims", &call->NumDims);
  finder.Find("TF_Dim", &call->Dim);
  finder.Find("TF_TensorByteSize", &call->TensorByteSize);
  finder.Find("TF_TensorData", &call->TensorData);
  finder.Find("TF_StringInit", &call->StringInit);
  finder.Find("TF_StringAssignView", &call->StringAssignView);
  finder.Find("TF_StringGetDataPointer", &call->StringGetDataPointer);
  finder.Find("TF_StringGetSize", &call->StringGetSize);
  finder.Find("TF_StringDealloc", &call->StringDealloc);
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
  library.version = library.call.Version();
  if (IsOldVersion(library.version)) {
    return absl::FailedPreconditionError(
        StrCat(path, " is TensorFlow ", library.version, ": muster needs 2.16 or newer"));
  }
  return library;
}

absl::Status TensorFlowStatus::ToStatus() const {
  const int code = call_.GetCode(status_);
  if (code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code), call_.Message(status_));
}

}  // namespace muster::engine::tensorflow::host
