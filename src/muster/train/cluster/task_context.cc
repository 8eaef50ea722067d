#include "muster/train/cluster/task_context.h"

#include <utility>

namespace muster::train {

using net::transport::AcceptorOptions;
using net::transport::Identity;
using net::transport::Peer;

Identity GetIdentity(const TaskContext& context, int64_t generation) {
  return {.job = context.job,
          .role = std::string(job::TypeName(context.self.type)),
          .index = static_cast<uint32_t>(context.self.index),
          .incarnation = static_cast<uint64_t>(context.incarnation),
          .generation = static_cast<uint64_t>(generation)};
}

AcceptorOptions MakeAcceptorOptions(const TaskContext& context, const net::Token& key,
                                    std::function<bool(std::string_view service)> offers) {
  AcceptorOptions options = {.key = key};
  options.protection = context.protection;
  options.stall_seconds = context.stall_seconds;
  options.self = [&context] { return GetIdentity(context); };
  options.admit = [&context, offers = std::move(offers)](const Peer& peer) {
    if (offers(peer.service)) return absl::OkStatus();
    return absl::NotFoundError(
        StrCat(job::TaskName(context.self), " has no service '", peer.service, "'"));
  };
  options.on_refused = [&context](const absl::Status& why) {
    context.Note(StrCat("refused a connection: ", why.message()));
  };
  return options;
}

}  // namespace muster::train
