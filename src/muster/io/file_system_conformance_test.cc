#include "muster/io/file_system_conformance.h"

#include <unistd.h>

#include "muster/io/fault_file_system.h"
#include "muster/io/fenced_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::io {
namespace {

// A FaultFileSystem without a fault behaves as the file system that it wraps.
class FaultlessFileSystem : public FaultFileSystem {
 public:
  explicit FaultlessFileSystem(std::unique_ptr<FileSystem> inner)
      : FaultFileSystem(*inner), keep_(std::move(inner)) {}

 private:
  std::unique_ptr<FileSystem> keep_;
};

// So is a FencedFileSystem whose fence lets pass.
class UnfencedFileSystem : public FencedFileSystem {
 public:
  explicit UnfencedFileSystem(std::unique_ptr<FileSystem> inner)
      : FencedFileSystem(*inner, [] { return absl::OkStatus(); }), keep_(std::move(inner)) {}

 private:
  std::unique_ptr<FileSystem> keep_;
};

INSTANTIATE_TEST_SUITE_P(
    Members, FileSystemConformance,
    testing::Values(
        FileSystemMember{"local", NewLocalFileSystem,
                         StrCat(testing::TempDir(), "muster-io-", getpid())},
        FileSystemMember{"memory", NewMemoryFileSystem, "/root/of/tests"},
        FileSystemMember{"memory_relative", NewMemoryFileSystem, "tests"},
        FileSystemMember{
            "faultless",
            [] { return std::make_unique<FaultlessFileSystem>(NewMemoryFileSystem()); }, "/t"},
        FileSystemMember{"unfenced",
                         [] { return std::make_unique<UnfencedFileSystem>(NewMemoryFileSystem()); },
                         "/t"}),
    FileSystemMemberName);

}  // namespace
}  // namespace muster::io
