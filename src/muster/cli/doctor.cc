#include "muster/cli/doctor.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "muster/base/clock.h"
#include "muster/base/strings.h"
#include "muster/cli/doctor_clusters.h"
#include "muster/control/job_folder.h"
#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/io/memory_file_system.h"
#include "muster/math/kernels.h"
#include "muster/model/spec/model_spec.h"
#include "muster/net/tls/tls_library.h"
#include "muster/net/transport/kernel_tls.h"
#include "muster/process/child.h"
#include "muster/process/cpu_sets.h"
#include "muster/process/gpus.h"
#include "muster/process/ports.h"
#include "muster/process/proc.h"
#include "muster/train/estimator.h"

namespace muster::cli {
namespace {

constexpr uint64_t kEnoughFiles = 4096;
constexpr uint64_t kEnoughBytes = uint64_t{1} << 30;
constexpr double kFirstGoodSecond = 1'704'067'200;  // 2024-01-01: an older clock was never set

std::string FormatBytes(uint64_t bytes) {
  const double giga = static_cast<double>(bytes) / (1 << 30);
  return giga >= 1 ? absl::StrFormat("%.1f GiB", giga) : absl::StrFormat("%.0f MiB", giga * 1024);
}

Finding ExamineTraining() {
  constexpr char kModel[] =
      "inputs: {x: float, y: int}\n"
      "label: y\n"
      "columns: {x: {numeric: x}}\n"
      "model: {type: dnn, dnn: {columns: [x], hidden_units: [4], optimizer: {adagrad: "
      "{learning_rate: 0.1}}}}\n"
      "train: {batch_size: 4, epochs: 2}\n";
  const auto train = [&]() -> absl::StatusOr<int64_t> {
    const auto files = io::NewMemoryFileSystem();
    const SystemClock clock;
    MUSTER_RETURN_IF_ERROR(
        io::WriteFileAtomically(*files, "rows.csv", "x,y\n1,1\n-1,0\n2,1\n-2,0\n"));
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                            model::ParseModelSpec(*files, kModel, "doctor.yaml"));
    train::RunConfig run;
    run.model_dir = "model";
    MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                            train::Estimator::Create(*files, clock, spec, run));
    train::TrainSpec training;
    training.input.source.patterns = {"rows.csv"};
    training.input.reader.batch_size = spec.train.batch_size;
    training.input.reader.epochs = spec.train.epochs;
    train::Progress progress(train::ProgressStyle::kNone, STDERR_FILENO, clock);
    const std::atomic<bool> stop = false;
    MUSTER_ASSIGN_OR_RETURN(const train::TrainResult result,
                            estimator->Train(training, progress, stop));
    return result.step;
  };
  const auto steps = train();
  if (!steps.ok()) {
    return {.name = "training",
            .health = Health::kBad,
            .text = StrCat("a small model does not train: ", ToStd(steps.status().message())),
            .advice = "this program does not work on this machine: please report it"};
  }
  return {.name = "training", .text = "a small model trains", .values = {{"steps", *steps}}};
}

Finding ExamineCores() {
  const auto cores = process::AvailableCpus();
  if (!cores.ok()) {
    return {.name = "cores",
            .health = Health::kOptional,
            .text = StrCat("unknown: ", ToStd(cores.status().message()))};
  }
  return {.name = "cores",
          .text = StrCat(cores->size(), " (", process::PrintCpus(*cores), ")"),
          .values = {{"count", cores->size()}}};
}

Finding ExamineInstructions() {
  const std::string vectors = math::ActiveKernels().name;
  const bool tiles = math::ActiveTileKernels() != nullptr;
  const char* const forced = std::getenv("MUSTER_INSTRUCTIONS");
  const bool is_slow = vectors == "baseline" && forced == nullptr;
  return {.name = "instructions",
          .health = is_slow ? Health::kOptional : Health::kGood,
          .text = StrCat(vectors, tiles ? ", amx for --precision bf16" : "",
                         forced != nullptr ? " (by MUSTER_INSTRUCTIONS)" : ""),
          .advice = is_slow ? "a processor with AVX2 or AVX-512 computes several times faster" : "",
          .values = {{"vectors", vectors}, {"tiles", tiles}}};
}

// Returns the value of a line "NAME:  1234 kB" of /proc/meminfo, in bytes.
uint64_t FindMemory(const std::string& text, std::string_view name) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kilobytes = 0;
    if (words.size() >= 2 && words[0] == name && absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes << 10;
    }
  }
  return 0;
}

Finding ExamineMemory() {
  constexpr size_t kMaxBytes = 1 << 16;
  const std::string text = process::ReadSmallFile("/proc/meminfo", kMaxBytes).value_or("");
  const uint64_t all = FindMemory(text, "MemTotal:"), free = FindMemory(text, "MemAvailable:");
  Finding finding = {.name = "memory",
                     .text = StrCat(FormatBytes(free), " free of ", FormatBytes(all)),
                     .values = {{"bytes", all}, {"free_bytes", free}}};
  uint64_t limit = 0;
  const auto limited = process::ReadSmallFile("/sys/fs/cgroup/memory.max", kMaxBytes);
  if (limited && absl::SimpleAtoi(*limited, &limit) && limit < all) {
    finding.text += StrCat("; this container may have ", FormatBytes(limit));
    finding.values["limit_bytes"] = limit;
  }
  return finding;
}

// The kernel writes its choice in brackets: "always [madvise] never".
Finding ExamineHugePages() {
  constexpr size_t kMaxBytes = 1 << 12;
  const std::string text =
      process::ReadSmallFile("/sys/kernel/mm/transparent_hugepage/enabled", kMaxBytes).value_or("");
  const size_t begin = text.find('['), end = text.find(']');
  const std::string mode =
      begin < end && end != text.npos ? text.substr(begin + 1, end - begin - 1) : "";
  Finding finding = {.name = "huge_pages",
                     .text = mode.empty() ? "this kernel has none" : mode,
                     .values = {{"mode", mode}}};
  if (mode == "never") {
    finding.health = Health::kOptional;
    finding.text = "never; tables of more than 4 MiB train slower";
    finding.advice =
        "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; other programs get "
        "them only if they ask, too";
  }
  return finding;
}

Finding ExamineGpus() {
  const auto environment = process::CurrentEnvironment();
  const auto gpus =
      process::VisibleGpus(process::FindEnvironment("CUDA_VISIBLE_DEVICES", environment), "/dev");
  return {.name = "gpus",
          .text = gpus.empty() ? "none; model files train on the cores"
                               : StrCat(gpus.size(),
                                        ", for programs of muster run that use them; "
                                        "model files train on the cores"),
          .values = {{"count", gpus.size()}}};
}

Finding ExamineTensorFlow() {
  const auto found = engine::tensorflow::FindTensorFlow("", process::CurrentEnvironment());
  if (found.ok()) {
    return {.name = "tensorflow", .text = *found, .values = {{"path", *found}}};
  }
  return {.name = "tensorflow",
          .health = Health::kOptional,
          .text = "not found; exported Keras models need it, model files do not",
          .advice =
              "python3 -m pip install 'tensorflow>=2.16', or name its place with --tensorflow "
              "or MUSTER_TENSORFLOW"};
}

Finding ExamineTensorBoard() {
  const auto found = AskProgram({"python3", "-c",
                                 "import sys, importlib.util as u; print(sys.executable); "
                                 "raise SystemExit(0 if u.find_spec('tensorboard') else 3)"});
  if (found) return {.name = "tensorboard", .text = StrCat("in ", *found)};
  return {.name = "tensorboard",
          .health = Health::kOptional,
          .text = "python3 does not have it; muster tensorboard needs it",
          .advice = "python3 -m pip install tensorboard, or name a Python with --python"};
}

Finding ExaminePorts() {
  const auto port = process::HeldPort::Any({.folder = "", .address = "127.0.0.1"});
  if (port.ok()) {
    return {.name = "ports",
            .text = StrCat("tasks can have ports of 127.0.0.1, such as ", port->port()),
            .values = {{"port", port->port()}}};
  }
  return {.name = "ports",
          .health = Health::kOptional,
          .text = StrCat("tasks get no port: ", ToStd(port.status().message())),
          .advice =
              "--workers, --evaluator and muster run need ports of 127.0.0.1 and a folder in "
              "/tmp"};
}

Finding ExamineClock() {
  const double now = SystemClock().WallSeconds();
  if (now < kFirstGoodSecond) {
    return {.name = "clock",
            .health = Health::kOptional,
            .text = "was never set",
            .advice = "set the date: names of exports and times of events are made from it"};
  }
  timex about = {};
  const bool is_synchronized = adjtimex(&about) >= 0 && (about.status & STA_UNSYNC) == 0;
  return {.name = "clock",
          .text = is_synchronized ? "set and synchronized" : "set; not synchronized by the kernel",
          .values = {{"synchronized", is_synchronized}}};
}

Finding ExamineFiles() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool few = limit.rlim_max < kEnoughFiles;
  return {.name = "open_files",
          .health = few ? Health::kOptional : Health::kGood,
          .text = StrCat("up to ", static_cast<uint64_t>(limit.rlim_max), " files and sockets"),
          .advice = few ? "a chief of hundreds of workers needs more: raise RLIMIT_NOFILE (ulimit "
                          "-Hn)"
                        : "",
          .values = {{"limit", static_cast<uint64_t>(limit.rlim_max)}}};
}

// Examines the file system that contains `folder`, or will contain it, if such a folder is made
// when it is needed. The environment's `variable` names another one.
Finding ExamineDisk(const std::string& name, const std::string& folder, const std::string& use,
                    std::string_view variable, bool is_made) {
  struct stat entry = {};
  const bool is_there = stat(folder.c_str(), &entry) == 0;
  if (is_there ? !S_ISDIR(entry.st_mode) : !is_made) {
    return {.name = name,
            .health = Health::kOptional,
            .text = StrCat(folder, is_there ? " is no folder" : " is not there"),
            .advice = StrCat("name a folder for ", use, " in ", variable),
            .values = {{"path", folder}}};
  }
  struct statvfs about = {};
  std::string asked = folder;
  while (statvfs(asked.c_str(), &about) != 0 && errno == ENOENT && asked.size() > 1) {
    const size_t slash = asked.rfind('/');
    if (slash == std::string::npos) break;
    asked.resize(std::max<size_t>(slash, 1));
  }
  const uint64_t free = uint64_t{about.f_bavail} * about.f_frsize;
  const bool usable = access(asked.c_str(), W_OK) == 0;
  Finding finding = {.name = name,
                     .text = StrCat(folder, ": ", FormatBytes(free), " free, for ", use),
                     .values = {{"path", folder}, {"free_bytes", free}}};
  if (!usable || free < kEnoughBytes) {
    finding.health = Health::kOptional;
    finding.advice =
        StrCat(usable ? StrCat("make room in ", folder) : StrCat(asked, " is not writable"),
               ", or name another folder in ", variable);
  }
  return finding;
}

std::string GetTemporaryFolder() {
  const char* const named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

Finding ExamineTls() {
  const net::TlsLibrary library = net::GetTlsLibrary();
  const bool kernel = net::transport::KernelChangesTlsKeys();
  return {.name = "tls",
          .text = StrCat(
              library.version,
              library.newer_is_faster ? "; 3.1 or later encrypts faster on this processor" : "",
              kernel ? "; the kernel can encrypt, too (MUSTER_KERNEL_TLS=1)"
                     : "; the kernel cannot encrypt, so MUSTER_KERNEL_TLS is refused"),
          .values = {{"library", library.version},
                     {"newer_is_faster", library.newer_is_faster},
                     {"kernel", kernel}}};
}

Finding ExamineSsh() {
  if (const auto version = AskProgram({"ssh", "-V"})) return {.name = "ssh", .text = *version};
  return {.name = "ssh",
          .health = Health::kOptional,
          .text = "not found; --hosts needs it",
          .advice = "install an ssh client, such as the package openssh-client"};
}

}  // namespace

std::vector<Finding> ExamineMachine() {
  const auto jobs = control::JobsFolder();
  std::vector<Finding> findings = {
      ExamineTraining(),
      ExamineCores(),
      ExamineInstructions(),
      ExamineMemory(),
      ExamineHugePages(),
      ExamineGpus(),
      ExamineTensorFlow(),
      ExamineTensorBoard(),
      ExaminePorts(),
      ExamineClock(),
      ExamineFiles(),
      ExamineDisk("jobs_folder", jobs.value_or("/"), "the records and logs of jobs", "MUSTER_HOME",
                  /*is_made=*/true),
      ExamineDisk("temporary_folder", GetTemporaryFolder(), "temporary files", "TMPDIR",
                  /*is_made=*/false),
      ExamineTls(),
      ExamineSsh()};
  std::ranges::move(ExamineClusters(), std::back_inserter(findings));
  return findings;
}

}  // namespace muster::cli
