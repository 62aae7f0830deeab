#include "tests/golden/golden_set.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "kernels/backend.h"
#include "tests/support/test_devices.h"

namespace switchyard {
namespace {

// The longest prompt and its continuation; some sets have a config with less, which the reference
// does not enforce.
constexpr int64_t kContextTokens = 128;

std::string KeyOf(int prompt, const std::string& key) {
  return Concat("p", prompt, ".", key);
}

template <typename Element>
std::vector<Element> Elements(const StoredTensor& tensor) {
  std::vector<Element> elements(static_cast<size_t>(tensor.bytes) / sizeof(Element));
  std::memcpy(elements.data(), tensor.data, static_cast<size_t>(tensor.bytes));
  return elements;
}

}  // namespace

GoldenSet::GoldenSet(const std::string& name, const std::string& backend) {
  const std::filesystem::path folder = std::filesystem::path(SWITCHYARD_TEST_DATA_DIR) / name;
  StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = DeviceOf(backend), .threads = 2});
  CHECK(ops.ok()) << MessageOf(ops.status());
  ops_ = *std::move(ops);
  StatusOr<std::unique_ptr<Model>> model =
      Model::Load(folder, {.context_tokens = kContextTokens}, *ops_);
  CHECK(model.ok()) << MessageOf(model.status());
  model_ = *std::move(model);
  StatusOr<std::unique_ptr<SafetensorsFile>> expected =
      SafetensorsFile::Open(folder / "expected.safetensors");
  CHECK(expected.ok()) << MessageOf(expected.status());
  expected_ = *std::move(expected);
}

const StoredTensor& GoldenSet::Expected(
    int prompt, const std::string& key, const std::string& dtype
) const {
  const auto found = expected_->tensors().find(KeyOf(prompt, key));
  CHECK(found != expected_->tensors().end() && found->second.dtype == dtype)
      << KeyOf(prompt, key) << " " << dtype;
  return found->second;
}

std::vector<float> GoldenSet::Floats(int prompt, const std::string& key) const {
  return Elements<float>(Expected(prompt, key, "F32"));
}

std::vector<int32_t> GoldenSet::Int32s(int prompt, const std::string& key) const {
  return Elements<int32_t>(Expected(prompt, key, "I32"));
}

std::vector<int32_t> GoldenSet::Ids(int prompt, const std::string& key) const {
  std::vector<int32_t> ids;
  for (const int64_t id : Elements<int64_t>(Expected(prompt, key, "I64"))) {
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<std::string> GoldenSet::Routers(int prompt) const {
  const std::string prefix = KeyOf(prompt, "");
  const std::string suffix = ".ids";
  std::vector<std::string> routers;
  for (const auto& [key, tensor] : expected_->tensors()) {
    if (key.starts_with(prefix) && key.ends_with(suffix)) {
      routers.push_back(key.substr(prefix.size(), key.size() - prefix.size() - suffix.size()));
    }
  }
  return routers;
}

}  // namespace switchyard
