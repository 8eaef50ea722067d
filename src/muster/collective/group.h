// Group: the ranks of one generation, a channel to each, and the error that ended the group.
//
// Every rank calls the same collectives in the same order with the same sizes. The first error ends
// the group for all ranks: the rank that meets it tells the others which rank failed and why, and
// the present call and all later calls of every rank return that error. The values that were being
// reduced are then invalid. The caller makes a new group, of a later generation.
//
// Error contract, modelled on gloo's (docs/errors.md in its repository): no call waits longer than
// the group's timeout without a byte moving, and none outlives the Interrupt.
//   ABORTED      "rank 2 (worker-1): ... (seen by rank 1 (worker-0))": that rank failed, in the
//                words of the rank that saw it first; "rank 2 (worker-1): ...": in its own words
//                (rank_failure.h parses this form)
//   the Interrupt's status, if it was set before any other error
//   (sizes that differ between ranks are such a failure too, with DATA_LOSS in its text)
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/math/aligned_buffer.h"
#include "muster/net/transport/channel.h"

namespace muster::collective {

using net::transport::Channel;
using net::transport::ConstBytes;
using net::transport::Interrupt;
using net::transport::MutableBytes;
using net::transport::Take;

struct GroupOptions {
  // A peer that computes for longer than this between two collectives counts as failed; membership
  // notices lost peers much earlier.
  double timeout_seconds = 3600;
  // Names of the ranks, for messages; empty: "rank 2".
  std::vector<std::string> names = {};
  // Makes the channel to a rank that has none, when both ranks first exchange something; an error
  // ends the group. The thread that uses the group calls it. Empty: all channels are there.
  std::function<absl::StatusOr<std::unique_ptr<Channel>>(int rank)> connect = {};
  // Gets the channel to each rank when the group is destroyed, for a later generation
  // (Channel::Renew). After an error the rank has been told of it, as far as the connection took
  // that at once. It must not refer to what may be destroyed before the group. Empty: the channels
  // are closed as soon as the group ends.
  std::function<void(int rank, std::unique_ptr<Channel> channel)> retire = {};
};

// One owner thread.
class Group {
 public:
  // `channels`: by rank, all of one generation; null for this rank itself, for a rank that was not
  // reached, and for one that options.connect reaches later. `interrupt` must outlive the group.
  Group(int rank, std::vector<std::unique_ptr<Channel>> channels, const Interrupt& interrupt,
        GroupOptions options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(channels_.size()); }
  // "rank 2 (worker-1)"
  std::string GetName(int rank) const;
  // The names of the ranks, by rank; empty if they have none.
  const std::vector<std::string>& names() const { return options_.names; }
  // OK until a call failed.
  const absl::Status& status() const { return status_; }
  // Called between two steps. Like status(), but also returns an error if the group was
  // interrupted, which a group of one rank does not notice in its collectives, or if an interrupt
  // is planned: a rank that has begun a step ends it, so that all ranks stop after the same one.
  absl::Status Check();

  // The calls that collectives are made of: Exchange sends a message to one rank and receives one
  // from another at the same time. An error ends the group.
  absl::Status Exchange(int to, ConstBytes out, int from, size_t in_bytes, Take take);
  absl::Status Exchange(int to, ConstBytes out, int from, MutableBytes in);
  // For a message whose size only its sender knows. *in becomes that large; a message of more than
  // `max_bytes` ends the group, and no memory is taken for it.
  absl::Status Exchange(int to, ConstBytes out, int from, uint64_t max_bytes,
                        std::vector<std::byte>* in);
  absl::Status Send(int to, ConstBytes out);
  absl::Status Receive(int from, size_t in_bytes, Take take);

  // Ends the group with an error of this rank (its data cannot be read, its loss is not finite):
  // the other ranks get it with this rank's name. Returns the error that they get.
  absl::Status Fail(const absl::Status& why);
  // Ends the group because `rank` has sent invalid data. Returns DATA_LOSS with that rank's name,
  // since the rank would send the same again; the other ranks get ABORTED.
  absl::Status Accuse(int rank, std::string_view what);

  // Ends the group if this rank could not connect to `rank`, whose channel is null: the ranks that
  // have a channel get ABORTED with both names, and do not regard this rank as the one that failed.
  absl::Status Unreached(int rank, const absl::Status& why);

  // Memory for a collective, kept from call to call.
  float* Scratch(size_t floats) { return scratch_.Reserve(floats); }
  // Other memory, for what a collective passes on.
  MutableBytes Relayed(size_t bytes) {
    return std::as_writable_bytes(
               std::span(relayed_.Reserve(bytes / sizeof(float) + 1), bytes / sizeof(float) + 1))
        .first(bytes);
  }
  // And for messages whose size is not known before.
  std::vector<std::byte>& sent_message() { return sent_message_; }
  std::vector<std::byte>& received_message() { return received_message_; }

 private:
  absl::StatusOr<Channel*> GetChannel(int rank);
  absl::Status End(absl::Status why);
  void Tell(const absl::Status& why, double seconds);
  absl::Status Lost(int rank, std::string_view cause);
  // The error of a call with `to` and `from`, each of which may be -1.
  absl::Status Blame(const absl::Status& error, int to, int from);
  process::Deadline NextDeadline() const;

  const int rank_;
  std::vector<std::unique_ptr<Channel>> channels_;
  const Interrupt& interrupt_;
  const GroupOptions options_;
  math::AlignedBuffer scratch_, relayed_;
  std::vector<std::byte> sent_message_, received_message_;
  absl::Status status_;
  bool told_ = false;  // the other ranks know that the group is over
};

}  // namespace muster::collective
