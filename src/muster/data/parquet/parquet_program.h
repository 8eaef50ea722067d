// ParquetProgram: the process of the program muster-parquet, which lies beside this one and reads
// Parquet files with the Python package pyarrow, and connections to it
// (docs/formats/parquet_rows.md).
//
// Why a Python program: pyarrow is the one package that ships a complete reader (libparquet), but
// that library's C++ interface is another one in each release, while its Python interface stays.
// The columns are decoded by the same C++ code; Python handles batches, not values.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/process/child.h"
#include "muster/process/descriptor.h"

namespace muster::data {

class ParquetProgram;

// Requests and their answers, one after the other. One thread at a time.
class ParquetConnection {
 public:
  ParquetConnection(std::shared_ptr<ParquetProgram> program, process::Descriptor socket)
      : program_(std::move(program)), socket_(std::move(socket)) {}

  // Sends a request and returns its answer; *memory becomes the descriptor that came with it, or
  // none. INVALID_ARGUMENT for an error that the program answers, which names the file; after any
  // other error the connection is of no use. DEADLINE_EXCEEDED if nothing comes for a long time.
  absl::StatusOr<formats::Json> Call(const formats::Json& request, process::Descriptor* memory);

 private:
  absl::Status Send(std::string_view bytes);
  absl::Status Receive(size_t size, char* bytes, process::Descriptor* memory);

  const std::shared_ptr<ParquetProgram> program_;
  const process::Descriptor socket_;
};

// Any thread. The process ends with this object.
class ParquetProgram : public std::enable_shared_from_this<ParquetProgram> {
 public:
  // `python` is a Python that has pyarrow. NOT_FOUND for the program or this Python.
  static absl::StatusOr<std::shared_ptr<ParquetProgram>> Start(const std::string& python);

  absl::StatusOr<std::unique_ptr<ParquetConnection>> Connect();

  // Why the process has ended, or `status` if it has not. FAILED_PRECONDITION if Python has no
  // pyarrow.
  absl::Status Explain(const absl::Status& status);

 private:
  ParquetProgram(std::string python, process::Descriptor control, process::Descriptor errors,
                 std::unique_ptr<process::Child> child)
      : python_(std::move(python)),
        control_(std::move(control)),
        errors_(std::move(errors)),
        child_(std::move(child)) {}

  const std::string python_;
  const process::Descriptor control_;  // connections are sent over it
  const process::Descriptor errors_;   // a file in memory
  Mutex mutex_;
  std::unique_ptr<process::Child> child_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::data
