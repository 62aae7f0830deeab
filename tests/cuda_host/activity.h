#pragma once

#include <cstdint>

// What the runtime was asked to do, for tests of how the engine talks to a device.

namespace switchyard::cuda_host {

struct Activity {
  int64_t uploads = 0;    // copies to the device
  int64_t downloads = 0;  // copies from it
  int64_t launches = 0;   // of kernels, those of graphs left out
  int64_t graphs_recorded = 0;
  int64_t graph_launches = 0;
  int64_t allocations = 0;  // of device memory
  int64_t waits = 0;        // calls that had something to wait for

  bool operator==(const Activity&) const = default;
};

// Since the last call.
Activity TakeActivity();

// Where the runtime counts. Requires: RuntimeMutex().
Activity& CurrentActivity();

}  // namespace switchyard::cuda_host
