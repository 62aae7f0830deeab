#pragma once

#include <string>
#include <vector>

// The backends that tests run on, by the names that test reports use.

namespace switchyard {

// reference, cpu, and the CUDA backend: cuda_host under the stand-in of tests/cuda_host, or cuda on
// a device.
std::vector<std::string> BackendNames();
// All but reference.
std::vector<std::string> FastBackendNames();
// Those that read their arguments on the host and CHECK the values in them.
std::vector<std::string> HostBackendNames();

// What MakeOps calls the backend.
std::string DeviceOf(const std::string& backend);

}  // namespace switchyard
