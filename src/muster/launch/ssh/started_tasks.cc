#include "muster/launch/ssh/started_tasks.h"

#include <cstdint>
#include <limits>
#include <string>

#include "muster/files/file_systems.h"
#include "muster/formats/json_fields.h"
#include "muster/io/private_file_system.h"

namespace muster::launch::ssh {
namespace {

constexpr uint64_t kMaxStartedBytes = uint64_t{16} << 20;
constexpr int64_t kMaxNumber = std::numeric_limits<int>::max();

std::string StartedPath(const control::JobFolder& folder) { return folder.path + "/started.json"; }

}  // namespace

absl::Status WriteStarted(const control::JobFolder& folder, const StartedTasks& tasks) {
  formats::Json json = formats::Json::object();
  for (const auto& [id, task] : tasks) {
    json[job::TaskName(id)] = {{"incarnation", task.incarnation},
                               {"host", task.place.host},
                               {"first_gpu", task.place.first_gpu},
                               {"stays", task.stays}};
  }
  return io::WriteFileAtomically(*io::NewPrivateFileSystem(), StartedPath(folder),
                                 formats::PrintJson({{"tasks", std::move(json)}}));
}

absl::StatusOr<StartedTasks> ReadStarted(const control::JobFolder& folder) {
  const std::string path = StartedPath(folder);
  const auto text = io::ReadFile(*files::OpenFileSystems(), path, kMaxStartedBytes);
  if (absl::IsNotFound(text.status())) return StartedTasks();
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(const formats::Json json, formats::ParseJsonObject(*text, path));
  formats::JsonFields fields(json, path);
  StartedTasks tasks;
  for (const auto& [name, each] : fields.Object("tasks").items()) {
    const auto id = job::ParseTaskName(name);
    if (!id) fields.Fail(StrCat("'", name, "' is no task"));
    formats::JsonFields task(each, StrCat(path, ": ", name));
    StartedTask& started = tasks[id.value_or(job::TaskId{})];
    started.incarnation = task.Int("incarnation", 0, 0, std::numeric_limits<int64_t>::max());
    started.place.host = static_cast<size_t>(task.Int("host", 0, 0, kMaxNumber));
    started.place.first_gpu = static_cast<int>(task.Int("first_gpu", 0, 0, kMaxNumber));
    started.stays = task.Bool("stays", false);
    fields.Update(task.status());
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return tasks;
}

}  // namespace muster::launch::ssh
