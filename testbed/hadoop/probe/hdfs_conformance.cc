// io/file_system_conformance.h on the folder that MUSTER_HDFS_FOLDER names ("hdfs://...").
#include <cstdlib>

#include "muster/files/file_systems.h"
#include "muster/io/file_system_conformance.h"

namespace muster::io {
namespace {

INSTANTIATE_TEST_SUITE_P(Hdfs, FileSystemConformance,
                         testing::Values(FileSystemMember{.name = "hdfs",
                                                          .make = files::OpenFileSystems,
                                                          .root = std::getenv("MUSTER_HDFS_FOLDER"),
                                                          .makes_parents = true,
                                                          .drops_replaced = true,
                                                          .replaces_written = true}),
                         FileSystemMemberName);

}  // namespace
}  // namespace muster::io
