// Tamper: the bugs that are planted in a simulated history. For tests of this layer only.
#pragma once

namespace muster::ps {

// Each field plants one bug around the production code.
struct Tamper {
  bool numbers_pushes_itself = false;   // a server treats each push as that of the next batch
  bool accepts_any_generation = false;  // a server accepts pulls and pushes of any generation
  bool ignores_incarnations = false;    // all incarnations of a replica have the same number
  bool others_count_at_once = false;    // servers other than the lead do not wait for its word
  bool drops_breaks = false;            // the lead is not told that another server lost its state
  bool leads_first = false;             // the lead gets a push before the other servers
  bool saves_without_waiting = false;   // a hold is released as soon as it was answered
  bool drops_a_position = false;        // a loaded state lacks the chief's position
  bool allows_one_more = false;         // the bound on staleness is one too high
  bool waits_for_nobody = false;        // the chief ends when its own data has ended
  bool drops_counts = false;            // a loaded state lacks its counts
  bool misses_a_batch = false;          // servers other than the lead miss a batch that counts
  bool accepts_stale = false;           // stale gradients count as those of the present step
  bool scales_nothing = false;          // servers other than the lead do not scale the sum
  bool settles_alone = false;           // the lead gets no other server's squares
  bool gives_up_soon = false;           // servers wait 5 s for a replica that others need
  bool never_gives_up = false;          // servers wait indefinitely for such a replica
};

}  // namespace muster::ps
