// libmuster-tensorflow-hdfs.so: what tf.experimental.register_filesystem_plugin loads.
#include <dlfcn.h>

#include <cstdio>

#include "muster/files/tensorflow/plugin.h"
#include "muster/files/tensorflow/start_service.h"

namespace muster::files {
namespace {

// Of the TensorFlow in this process, which is not linked: any release may load the library.
TF_SetStatusFunction* FindSetStatus() {
  constexpr char kName[] = "TF_SetStatus";
  void* function = dlsym(RTLD_DEFAULT, kName);
  for (const char* library : {"libtensorflow_framework.so.2", "libtensorflow_cc.so.2"}) {
    void* const loaded = function == nullptr ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (loaded != nullptr) function = dlsym(loaded, kName);
  }
  return reinterpret_cast<TF_SetStatusFunction*>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(
    TF_FilesystemPluginInfo* info) {
  TF_SetStatusFunction* const set_status = FindSetStatus();
  if (set_status != nullptr) {
    FillPlugin(ClientOfProcess(), set_status, {"hdfs", "webhdfs", "swebhdfs"}, info);
    return;
  }
  std::fputs("muster: this TensorFlow has no TF_SetStatus: hdfs:// stays unknown\n", stderr);
  FillPlugin(ClientOfProcess(), nullptr, {}, info);
}

}  // namespace muster::files
