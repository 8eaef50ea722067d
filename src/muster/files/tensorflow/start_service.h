// The service of files that the program muster is (muster file-service).
#pragma once

#include "muster/files/tensorflow/file_client.h"

namespace muster::files {

// The client of this process, which lives to its end: threads of TensorFlow may run longer than
// destructors. Its service is the muster of the installation that this library belongs to. It is
// started by the first call, ends with this process, and is no child of it, which waiting for any
// child would find.
FileClient& ClientOfProcess();

}  // namespace muster::files
