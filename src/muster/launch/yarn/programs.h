// The programs of this Muster, which travel with its jobs as one archive: each is looked for beside
// `muster`, wherever a NodeManager has unpacked it.
//
//   muster, muster-yarn.jar
//   muster-tensorflow, muster-parquet, tensorflow-hdfs/   as far as they are installed here
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::launch::yarn {

// The number of what ApplicationMaster and submission agree on: am.json, how programs lie, and the
// slots interface. java/yarn/build.sh writes it into the jar.
inline constexpr int kMasterVersion = 2;

// The ApplicationMaster's jar for the program at that path: $MUSTER_YARN_JAR, or muster-yarn.jar
// beside the program or in ../share/muster. NOT_FOUND says where it was looked for;
// FAILED_PRECONDITION: it is of another version of Muster.
absl::StatusOr<std::string> FindJar(io::FileSystem& files, const std::string& program);

// A tar archive (POSIX.1-1988, ustar) of the files at these paths, all of which may be executed, by
// their names in the archive. Equal files make equal bytes.
absl::StatusOr<std::string> MakeTar(io::FileSystem& files,
                                    const std::vector<std::pair<std::string, std::string>>& named);

// The archive for the program at that path and the jar.
absl::StatusOr<std::string> PackPrograms(io::FileSystem& files, const std::string& program,
                                         const std::string& jar);

}  // namespace muster::launch::yarn
