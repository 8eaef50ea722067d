// Which bugs a simulated history has planted. For tests of this layer only.
#pragma once

namespace muster::ps {

// A bug planted around the production code.
struct Tamper {
  bool numbers_pushes_itself = false;  // a server takes each push for the next batch
  bool takes_any_generation = false;   // whatever its batches are
  bool ignores_incarnations = false;
  bool others_count_at_once = false;   // servers that do not lead wait for no word of the lead
  bool keeps_breaks = false;           // the lead does not hear that another has lost its state
  bool leads_first = false;            // the lead gets a push before the others
  bool saves_without_waiting = false;  // a hold is released as soon as it was answered
  bool forgets_a_position = false;     // the chief's, in a state that is loaded
  bool lets_one_more_pass = false;     // than the bound on staleness
  bool waits_for_nobody = false;       // the chief ends when its own data has
  bool forgets_counts = false;         // in a state that is loaded
  bool passes_one_over = false;        // of those that count, on servers that do not lead
  bool takes_stale = false;            // gradients, for those of the present step
  bool scales_nothing = false;         // on servers that do not lead
  bool settles_alone = false;          // the lead hears of no other's squares
};

}  // namespace muster::ps
