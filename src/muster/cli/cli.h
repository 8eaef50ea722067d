// The command line: `muster VERB ...`. Each verb is in the room of what it is about.
// Exit codes: 0 done, 1 failed, 2 wrong use.
#pragma once

namespace muster::cli {

int Main(int argc, char** argv);

}  // namespace muster::cli
