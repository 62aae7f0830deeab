#include "program/model_flags.h"

namespace switchyard {

void AddComputeFlags(CLI::App& command, ModelFlags& flags) {
  command.add_option("--device", flags.device, "What to compute on; reference is slow and exact")
      ->check(CLI::Validator(
          [](const std::string& device) {
            return IsDeviceName(device) ? std::string() : "\"" + device + "\" is no device";
          },
          "auto, cpu, cuda, cuda:N or reference"
      ))
      ->capture_default_str();
  command
      .add_option(
          "--dtype",
          flags.dtype,
          "Convert all matrices while loading; stored keeps them as the files have them"
      )
      ->check(CLI::IsMember({"stored", "f32", "bf16"}))
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "Compute threads; 0 is one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_flag(
      "--cuda-graphs,!--no-cuda-graphs",
      flags.cuda_graphs,
      "On a GPU: replay decode steps that come again instead of queuing each kernel; the default"
  );
}

WeightOptions WeightOptionsOf(const ModelFlags& flags) {
  WeightOptions options;
  if (flags.dtype == "f32") {
    options.dtype = DType::kF32;
  } else if (flags.dtype == "bf16") {
    options.dtype = DType::kBF16;
  }
  return options;
}

BackendOptions BackendOptionsOf(const ModelFlags& flags) {
  return {.device = flags.device, .threads = flags.threads, .cuda_graphs = flags.cuda_graphs};
}

StatusOr<OfflineModel> OpenModel(const ModelFlags& flags) {
  OfflineModel opened;
  ASSIGN_OR_RETURN(opened.ops, MakeOps(BackendOptionsOf(flags)));
  ASSIGN_OR_RETURN(opened.model, Model::Load(flags.folder, WeightOptionsOf(flags), *opened.ops));
  return opened;
}

TokenizerDefaults TokenizerDefaultsOf(const ModelConfig& config) {
  TokenizerDefaults defaults;
  defaults.add_bos = config.adds_bos;
  defaults.bos_id = config.bos_id;
  if (!config.eos_ids.empty()) {
    defaults.eos_id = config.eos_ids[0];
  }
  return defaults;
}

}  // namespace switchyard
