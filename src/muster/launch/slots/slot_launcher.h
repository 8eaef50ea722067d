// SlotLauncher: a control::Launcher for platforms that give processes through a program in another
// language (YARN's ApplicationMaster, Spark's driver), its provider. The provider asks the
// coordinator's service again and again, by POST /v1/slots, what is wanted (docs/formats/slots.md).
// slot_table.h decides; this file adds a clock and a file of what must outlive a coordinator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/launcher.h"
#include "muster/control/service.h"
#include "muster/io/file_system.h"
#include "muster/launch/slots/slot_table.h"

namespace muster::launch::slots {

struct SlotLauncherOptions {
  io::FileSystem* files = nullptr;  // this and the clock must outlive the launcher
  const Clock* clock = nullptr;
  std::string record_path = {};  // the file with who may run
  int64_t started_up_to = 0;     // the highest incarnation in the job's journal
  // A file that is there while the record is this coordinator's (shared_state.h); "": it always is.
  std::string journal_path = {};
  // The shortest lease that the platform allows; agents get at least that.
  double lease_seconds = 10;
};

// One owner thread, or calls that do not overlap, as those of control::Service.
class SlotLauncher : public control::Launcher {
 public:
  // Reads the record, if there is one.
  static absl::StatusOr<std::unique_ptr<SlotLauncher>> Create(const SlotLauncherOptions& options);

  // The route by which the provider reports; the launcher must outlive the service. If the record
  // cannot be written, the answer is that error, and nobody is let in by it.
  control::ServiceRoute Route();

  // Call it when the job has ended, with how it ended: every slot must end, and then the provider.
  void SetFinal(const std::string& final) { table_.SetFinal(final); }
  // Whether the provider has received this and has no slot any more.
  bool emptied() const { return table_.emptied(); }

  control::LauncherTraits traits() const override;
  void Start(const control::StartRequest& request) override;
  void Kill(job::TaskId task, int64_t incarnation) override { table_.Kill(task, incarnation); }
  control::Admission Admits(job::TaskId task, int64_t incarnation, const std::string& slot,
                            bool runs) override {
    return table_.Admits(task, incarnation, slot, runs);
  }
  std::string GetPlace(job::TaskId task, int64_t incarnation) const override {
    return table_.GetHost(task, incarnation);
  }
  bool LacksProcess(job::TaskId task, int64_t incarnation) const override {
    return table_.LacksProcess(task, incarnation);
  }
  std::string DescribeProcess() const override {
    return table_.gives().empty() ? Launcher::DescribeProcess() : table_.gives();
  }
  std::vector<job::TaskObservation> Observe() override { return table_.Observe(now()); }

 private:
  SlotLauncher(const SlotLauncherOptions& options, const MayRun& before);
  double now() const { return static_cast<double>(options_.clock->MonotonicNanos()) * 1e-9; }
  absl::StatusOr<Json> Take(const Json& body);
  absl::Status Keep();

  const SlotLauncherOptions options_;
  SlotTable table_;
};

}  // namespace muster::launch::slots
