// The programs of this Muster, which travel with its jobs as one archive: each is looked for beside
// `muster`, wherever a NodeManager has unpacked it.
//
//   muster, muster-yarn.jar
//   muster-tensorflow, muster-parquet, tensorflow-hdfs/   as far as they are installed here
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::launch::yarn {

// The number of what ApplicationMaster and submission agree on: am.json, what lies where in a
// container, and the slots interface. java/yarn/build.sh writes it into the jar.
inline constexpr int kMasterVersion = 3;

// The ApplicationMaster's jar for the program at that path: $MUSTER_YARN_JAR, or muster-yarn.jar
// beside the program or in ../share/muster. NOT_FOUND says where it was looked for;
// FAILED_PRECONDITION: it is of another version of Muster.
absl::StatusOr<std::string> FindJar(io::FileSystem& files, const std::string& program);

// The archive (tar.h) for the program at that path and the jar. Equal programs make equal bytes.
absl::StatusOr<std::string> PackPrograms(io::FileSystem& files, const std::string& program,
                                         const std::string& jar);

}  // namespace muster::launch::yarn
