// The functions of TensorFlow's C API that a host calls, found in libtensorflow_cc.so.2 at run
// time. Source: tensorflow/c/{c_api,tf_tensor,tf_tstring,tf_status,tf_buffer}.h, whose calls are
// the same in all releases from 2.16 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"

namespace muster::engine::tensorflow::host {

struct TF_Status;
struct TF_Graph;
struct TF_Session;
struct TF_SessionOptions;
struct TF_Operation;
struct TF_Tensor;

struct TF_Output {
  TF_Operation* operation = nullptr;
  int index = 0;
};

struct TF_Buffer {
  const void* data = nullptr;
  size_t length = 0;
  void (*deallocator)(void*, size_t) = nullptr;
};

// 24 bytes that TensorFlow's functions alone understand.
struct TF_TString {
  alignas(8) char bytes[24] = {};
};

struct Functions {
  const char* (*Version)();
  TF_Status* (*NewStatus)();
  void (*DeleteStatus)(TF_Status*);
  int (*GetCode)(const TF_Status*);
  const char* (*Message)(const TF_Status*);
  TF_Graph* (*NewGraph)();
  void (*DeleteGraph)(TF_Graph*);
  TF_SessionOptions* (*NewSessionOptions)();
  void (*DeleteSessionOptions)(TF_SessionOptions*);
  void (*SetConfig)(TF_SessionOptions*, const void*, size_t, TF_Status*);
  TF_Session* (*LoadSessionFromSavedModel)(const TF_SessionOptions*, const TF_Buffer*, const char*,
                                           const char* const*, int, TF_Graph*, TF_Buffer*,
                                           TF_Status*);
  void (*CloseSession)(TF_Session*, TF_Status*);
  void (*DeleteSession)(TF_Session*, TF_Status*);
  TF_Operation* (*GraphOperationByName)(TF_Graph*, const char*);
  int (*OperationNumOutputs)(TF_Operation*);
  int (*OperationOutputType)(TF_Output);
  void (*SessionRun)(TF_Session*, const TF_Buffer*, const TF_Output*, TF_Tensor* const*, int,
                     const TF_Output*, TF_Tensor**, int, const TF_Operation* const*, int,
                     TF_Buffer*, TF_Status*);
  TF_Tensor* (*NewTensor)(int, const int64_t*, int, void*, size_t, void (*)(void*, size_t, void*),
                          void*);
  TF_Tensor* (*AllocateTensor)(int, const int64_t*, int, size_t);
  void (*DeleteTensor)(TF_Tensor*);
  int (*TensorType)(const TF_Tensor*);
  int (*NumDims)(const TF_Tensor*);
  int64_t (*Dim)(const TF_Tensor*, int);
  size_t (*TensorByteSize)(const TF_Tensor*);
  void* (*TensorData)(const TF_Tensor*);
  void (*StringInit)(TF_TString*);
  void (*StringAssignView)(TF_TString*, const char*, size_t);
  const char* (*StringGetDataPointer)(const TF_TString*);
  size_t (*StringGetSize)(const TF_TString*);
  void (*StringDealloc)(TF_TString*);
};

// The library, loaded for the rest of the process's life.
struct Library {
  Functions call = {};
  std::string version;  // "2.21.0"
};

// From libtensorflow_cc.so.2 in `folder`. NOT_FOUND when it is not there, FAILED_PRECONDITION when
// it cannot be loaded here or is older than 2.16; what to do is in the message.
absl::StatusOr<Library> LoadLibrary(const std::string& folder);

// A status of TensorFlow's, deleted with its owner.
class TensorFlowStatus {
 public:
  explicit TensorFlowStatus(const Functions& call) : call_(call), status_(call.NewStatus()) {}
  ~TensorFlowStatus() { call_.DeleteStatus(status_); }
  TensorFlowStatus(const TensorFlowStatus&) = delete;
  TensorFlowStatus& operator=(const TensorFlowStatus&) = delete;

  TF_Status* get() const { return status_; }
  // The codes are absl's.
  absl::Status ToStatus() const;

 private:
  const Functions& call_;
  TF_Status* const status_;
};

}  // namespace muster::engine::tensorflow::host
