// The number of files and sockets that a process may have open (getrlimit(2), RLIMIT_NOFILE).
//
// Most systems allow 1,024 until a process asks for more, because programs that use select(2) work
// with no more. A chief of some hundred workers and a coordinator of as many agents need more.
#pragma once

namespace muster::process {

// Lets this process open as many files as the system allows without privileges; does nothing where
// that cannot be had. Call it once, before threads start.
void RaiseFileLimit();

// Sets the limit that RaiseFileLimit found, for a program that is about to take this process's
// place. Async-signal-safe; does nothing without RaiseFileLimit.
void RestoreFileLimit();

}  // namespace muster::process
