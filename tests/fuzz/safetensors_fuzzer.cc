#include "engine/model/weight_files.h"
#include "engine/model/weights.h"
#include "kernels/reference/reference_ops.h"
#include "tests/fuzz/input_files.h"

// The weights of a model folder: headers, the index and its shards. Every byte of every tensor that
// an accepted file has can be read, and every name can be asked for.

namespace switchyard {
namespace {

uint64_t SumOfBytes(const StoredTensor& tensor) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < tensor.bytes; ++i) {
    sum += static_cast<const uint8_t*>(tensor.data)[i];
  }
  return sum;
}

void Load(WeightFiles& files, const std::string& name) {
  ReferenceOps ops;
  WeightLoader weights(files, {.dtype = DType::kBF16}, ops);
  const std::vector<int64_t> shape = weights.ShapeOf(name);
  static_cast<void>(weights.RowsOf(name));
  weights.WarnUnlessFinite(name);
  if (!shape.empty() && shape.size() <= 3) {
    static_cast<void>(weights.Floats(name, shape));
  }
  if (shape.size() == 2 && shape[0] > 0 && shape[1] > 0) {  // as a config's sizes are
    static_cast<void>(weights.Dense(name, WeightLayout::kOutIn, shape[1], shape[0]));
  }
  static_cast<void>(weights.CheckAllUsed());
}

void ReadWeights(const uint8_t* data, size_t bytes) {
  const TemporaryFolder& folder = EmptyInputFolder();
  WriteWeights(folder, FilesOf(data, bytes));
  const StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(folder.path());
  if (!files.ok()) {
    const std::string message = MessageOf(files.status());
    Expect(message.find(folder.path().string()) != std::string::npos, "no file in: " + message);
    return;
  }
  static volatile uint64_t sum = 0;
  for (const std::string& name : (*files)->Names()) {
    Expect(!(*files)->FileOf(name).empty(), "a tensor without a file");
    sum = sum + SumOfBytes(*(*files)->Find(name));
    Load(**files, name);
  }
  Load(**files, "no such tensor");
}

}  // namespace
}  // namespace switchyard

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::ReadWeights(data, bytes);
  return 0;
}
