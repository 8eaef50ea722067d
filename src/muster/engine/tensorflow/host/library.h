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
struct TF_DeviceList;
struct TF_Operation;
struct TF_Tensor;

struct TfOutput {
  TF_Operation* operation = nullptr;
  int index = 0;
};

struct TfBuffer {
  const void* data = nullptr;
  size_t length = 0;
  void (*deallocator)(void*, size_t) = nullptr;
};

// 24 bytes that only TensorFlow's functions interpret.
struct TfString {
  alignas(8) char bytes[24] = {};
};

struct Functions {
  const char* (*version)();
  TF_Status* (*new_status)();
  void (*delete_status)(TF_Status*);
  int (*get_code)(const TF_Status*);
  const char* (*message)(const TF_Status*);
  TF_Graph* (*new_graph)();
  void (*delete_graph)(TF_Graph*);
  TF_SessionOptions* (*new_session_options)();
  void (*delete_session_options)(TF_SessionOptions*);
  void (*set_config)(TF_SessionOptions*, const void*, size_t, TF_Status*);
  TF_Session* (*new_session)(TF_Graph*, const TF_SessionOptions*, TF_Status*);
  TF_DeviceList* (*session_list_devices)(TF_Session*, TF_Status*);
  void (*delete_device_list)(TF_DeviceList*);
  int (*device_list_count)(const TF_DeviceList*);
  const char* (*device_list_type)(const TF_DeviceList*, int, TF_Status*);
  TF_Session* (*load_session_from_saved_model)(const TF_SessionOptions*, const TfBuffer*,
                                               const char*, const char* const*, int, TF_Graph*,
                                               TfBuffer*, TF_Status*);
  void (*close_session)(TF_Session*, TF_Status*);
  void (*delete_session)(TF_Session*, TF_Status*);
  TF_Operation* (*graph_operation_by_name)(TF_Graph*, const char*);
  int (*operation_num_outputs)(TF_Operation*);
  int (*operation_output_type)(TfOutput);
  void (*session_run)(TF_Session*, const TfBuffer*, const TfOutput*, TF_Tensor* const*, int,
                      const TfOutput*, TF_Tensor**, int, const TF_Operation* const*, int, TfBuffer*,
                      TF_Status*);
  TF_Tensor* (*new_tensor)(int, const int64_t*, int, void*, size_t, void (*)(void*, size_t, void*),
                           void*);
  TF_Tensor* (*allocate_tensor)(int, const int64_t*, int, size_t);
  void (*delete_tensor)(TF_Tensor*);
  int (*tensor_type)(const TF_Tensor*);
  int (*num_dims)(const TF_Tensor*);
  int64_t (*dim)(const TF_Tensor*, int);
  size_t (*tensor_byte_size)(const TF_Tensor*);
  void* (*tensor_data)(const TF_Tensor*);
  void (*string_init)(TfString*);
  void (*string_assign_view)(TfString*, const char*, size_t);
  const char* (*string_get_data_pointer)(const TfString*);
  size_t (*string_get_size)(const TfString*);
  void (*string_dealloc)(TfString*);
};

// The library, loaded until the process ends.
struct Library {
  Functions call = {};
  std::string version;  // "2.21.0"
};

// Loads libtensorflow_cc.so.2 from `folder`. NOT_FOUND if the folder does not contain it,
// FAILED_PRECONDITION if it cannot be loaded here or is older than 2.16; the message says what to
// do.
absl::StatusOr<Library> LoadLibrary(const std::string& folder);

// A TensorFlow status, deleted with its owner.
class TensorFlowStatus {
 public:
  explicit TensorFlowStatus(const Functions& call) : call_(call), status_(call.new_status()) {}
  ~TensorFlowStatus() { call_.delete_status(status_); }
  TensorFlowStatus(const TensorFlowStatus&) = delete;
  TensorFlowStatus& operator=(const TensorFlowStatus&) = delete;

  TF_Status* get() const { return status_; }
  // The codes are the same as absl's.
  absl::Status ToStatus() const;

 private:
  const Functions& call_;
  TF_Status* const status_;
};

}  // namespace muster::engine::tensorflow::host
