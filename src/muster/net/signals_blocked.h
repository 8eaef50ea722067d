// Threads that block signals, so that signals go to the threads that expect them.
#pragma once

#include <pthread.h>

#include <csignal>

namespace muster::net::internal {

// While an object of this class exists, the thread that made it blocks all signals; threads that it
// starts meanwhile block them permanently.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace muster::net::internal
