// Processor time that was used.
#pragma once

namespace muster {

// Seconds of the calling thread. What it waits for, such as a disk, does not count.
double ThreadCpuSeconds();

}  // namespace muster
