#include "tests/support/test_devices.h"

namespace switchyard {

std::vector<std::string> BackendNames() {
  return {"reference", "cpu", SWITCHYARD_TEST_CUDA};
}

std::vector<std::string> FastBackendNames() {
  return {"cpu", SWITCHYARD_TEST_CUDA};
}

std::vector<std::string> HostBackendNames() {
  return {"reference", "cpu"};
}

std::string DeviceOf(const std::string& backend) {
  return backend == SWITCHYARD_TEST_CUDA ? "cuda" : backend;
}

}  // namespace switchyard
