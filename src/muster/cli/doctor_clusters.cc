#include "muster/cli/doctor_clusters.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/control/tensorflow_hdfs.h"
#include "muster/data/kafka/rdkafka_library.h"
#include "muster/files/file_systems.h"
#include "muster/files/hdfs/hadoop_config.h"
#include "muster/launch/kubernetes/api/kube_config.h"
#include "muster/launch/yarn/programs.h"
#include "muster/launch/yarn/yarn_config.h"
#include "muster/process/capture.h"

namespace muster::cli {
namespace {

constexpr double kProgramSeconds = 10;
constexpr size_t kProgramBytes = 4096;

Finding Missing(const char* name, std::string text, std::string advice) {
  return {.name = name,
          .health = Health::kOptional,
          .text = std::move(text),
          .advice = std::move(advice)};
}

Finding ExamineParquet() {
  const char* const named = std::getenv(kParquetPythonVariable);
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  const auto version = AskProgram({python, "-c", "import pyarrow; print(pyarrow.__version__)"});
  if (version) return {.name = "parquet", .text = StrCat("pyarrow ", *version, " of ", python)};
  return Missing("parquet", StrCat(python, " has no pyarrow; Parquet files need it"),
                 StrCat("python3 -m pip install pyarrow, or name a Python that has it in ",
                        kParquetPythonVariable));
}

Finding ExamineKafka() {
  const auto library = data::LoadRdKafka();
  if (library.ok()) {
    return {.name = "kafka", .text = StrCat("librdkafka ", (*library)->rd_kafka_version_str())};
  }
  return Missing("kafka", "librdkafka.so.1 is not there; kafka:// needs it",
                 "install the package librdkafka1 (Debian, Ubuntu) or librdkafka (Fedora)");
}

Finding ExamineHadoop(io::FileSystem& files) {
  const std::string folder = files::HadoopConfigFolder();
  if (folder.empty()) {
    return Missing("hadoop", "no configuration; --on yarn and the names of nameservices need it",
                   "set HADOOP_CONF_DIR to the folder of core-site.xml, hdfs-site.xml and "
                   "yarn-site.xml");
  }
  if (access(folder.c_str(), R_OK | X_OK) != 0) {
    return Missing("hadoop", StrCat(folder, " cannot be read"),
                   "name the folder of core-site.xml in HADOOP_CONF_DIR");
  }
  const auto config = files::HadoopConfig::Read(files, folder);
  if (!config.ok())
    return Missing("hadoop", std::string(ToStd(config.status().message())), "mend that file");
  const std::string file_system = config->Get("fs.defaultFS");
  return {.name = "hadoop",
          .text = StrCat(folder, ": ",
                         file_system.empty() ? "fs.defaultFS is not set"
                                             : StrCat(file_system, " as ", files::HadoopUser())),
          .values = {{"folder", folder}, {"file_system", file_system}}};
}

Finding ExamineYarn(io::FileSystem& files) {
  const std::string folder = files::HadoopConfigFolder();
  const auto jar = launch::yarn::FindJar(files, OwnProgram().value_or("muster"));
  if (!jar.ok()) {
    return Missing("yarn",
                   absl::IsNotFound(jar.status())
                       ? "the ApplicationMaster muster-yarn.jar is not there; --on yarn needs it"
                       : "the ApplicationMaster muster-yarn.jar is of another version",
                   "make it by java/yarn/build.sh of Muster's sources, or name it in "
                   "MUSTER_YARN_JAR");
  }
  if (folder.empty()) return Missing("yarn", StrCat(*jar, "; no configuration"), "");
  const auto config = files::HadoopConfig::Read(files, folder);
  const auto yarn = config.ok() ? launch::yarn::GetYarnConfig(*config, folder) : config.status();
  if (!yarn.ok()) return Missing("yarn", std::string(ToStd(yarn.status().message())), "");
  return {.name = "yarn", .text = StrCat(absl::StrJoin(yarn->managers, ", "), "; ", *jar)};
}

Finding ExamineTensorFlowHdfs() {
  const std::string folder = control::FindTensorFlowHdfs();
  if (!folder.empty()) return {.name = "tensorflow_hdfs", .text = folder};
  return Missing("tensorflow_hdfs",
                 "not installed; TensorFlow programs of muster run need it for hdfs:// names",
                 "install Muster from its archive, wheel or package: the folder tensorflow-hdfs "
                 "belongs beside the program");
}

Finding ExamineKubernetes() {
  const auto places = launch::kubernetes::GetKubeConfigPlaces();
  const std::string file = StrCat(places.home, "/.kube/config");
  if (!places.environment_kubeconfig.empty()) {
    const std::vector<std::string> named =
        absl::StrSplit(places.environment_kubeconfig, ':', absl::SkipEmpty());
    const bool any_there = std::ranges::any_of(
        named, [](const std::string& each) { return access(each.c_str(), R_OK) == 0; });
    if (!any_there) {
      return Missing("kubernetes", StrCat(places.environment_kubeconfig, " cannot be read"),
                     "name the file of kubectl's configuration in KUBECONFIG");
    }
    return {.name = "kubernetes", .text = StrCat("by KUBECONFIG, ", places.environment_kubeconfig)};
  }
  if (!places.service_host.empty()) {
    return {.name = "kubernetes", .text = "by this pod's service account"};
  }
  if (access(file.c_str(), R_OK) == 0) return {.name = "kubernetes", .text = StrCat("by ", file)};
  return Missing("kubernetes", "no configuration; --on kubernetes needs it",
                 "set KUBECONFIG, or make ~/.kube/config as kubectl uses it");
}

}  // namespace

std::optional<std::string> AskProgram(const std::vector<std::string>& argv) {
  process::ChildSpec spec = {.argv = argv, .environment = process::CurrentEnvironment()};
  const auto run = process::RunCaptured(nullptr, spec, kProgramSeconds, kProgramBytes);
  if (!run.ok() || !run->exit.ok()) return std::nullopt;
  return run->output.substr(0, run->output.find('\n'));
}

std::vector<Finding> ExamineClusters() {
  const auto files = files::OpenFileSystems();
  return {ExamineParquet(),    ExamineKafka(),          ExamineHadoop(*files),
          ExamineYarn(*files), ExamineTensorFlowHdfs(), ExamineKubernetes()};
}

}  // namespace muster::cli
