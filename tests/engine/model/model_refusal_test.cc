#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/model/safetensors.h"
#include "tests/engine/model/model_load.h"

// What is refused, whichever tensor, number or option it is.

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MissingTensor : public ModelLoad, public testing::WithParamInterface<const char*> {
 protected:
  // Stored constants and statistics, which no model needs.
  static bool IsIgnored(const std::string& name) {
    return name.ends_with(".mask") || name.ends_with(".cum_weight") || name.ends_with(".iter") ||
           name.ends_with(".kv_sel_counts_100");
  }
};

TEST_P(MissingTensor, IsNamedWithItsFileWhicheverItIs) {
  Copy(GetParam());
  const auto whole = SafetensorsFile::Open(Golden(GetParam()) / "model.safetensors");
  ASSERT_TRUE(whole.ok());
  for (const auto& [missing, unused] : (*whole)->tensors()) {
    const bool is_of_another_layer =
        missing.find(".1.") != std::string::npos || missing.find(".2.") != std::string::npos;
    if (IsIgnored(missing) || is_of_another_layer) {
      continue;
    }
    std::vector<TensorToWrite> others;
    for (const auto& [name, tensor] : (*whole)->tensors()) {
      if (name != missing) {
        others.push_back({name, tensor.dtype, tensor.shape, tensor.data, tensor.bytes});
      }
    }
    ASSERT_TRUE(WriteSafetensors(folder_.path() / "model.safetensors", others).ok());

    EXPECT_THAT(LoadMessage(), HasSubstr("model.safetensors: tensor " + missing)) << missing;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    MissingTensor,
    testing::Values(
        "jetmoe",
        "moa_lm",
        "moduleformer",
        "moduleformer_gates",
        "moeut",
        "moeut_att1",
        "moeut_train",
        "switchall_rope",
        "switchhead_xl",
        "switchhead_xl_qkvo"
    ),
    [](const testing::TestParamInfo<const char*>& test) { return test.param; }
);

struct BadNumber {
  const char* golden;
  const char* field;
  double value;
  const char* complaint;
};

class ConfigNumber : public ModelLoad, public testing::WithParamInterface<BadNumber> {};

TEST_P(ConfigNumber, ThatMakesEveryLogitANanIsRefused) {
  Copy(GetParam().golden);
  Change({{GetParam().field, GetParam().value}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr(GetParam().complaint)));
}

INSTANTIATE_TEST_SUITE_P(
    Numbers,
    ConfigNumber,
    testing::Values(
        BadNumber{"jetmoe", "rms_norm_eps", -1, "the epsilon of a norm is -1"},
        BadNumber{"jetmoe", "rms_norm_eps", 1e39, "the epsilon of a norm is inf"},
        BadNumber{"jetmoe", "rope_theta", 0, "the rotary base is 0"},
        BadNumber{"jetmoe", "rope_theta", -10000, "the rotary base is -10000"},
        BadNumber{
            "moeut_train", "transformer.embedding_scale", 1e39, "scale of the embedding is inf"}
    ),
    [](const testing::TestParamInfo<BadNumber>& test) {
      return Concat(
          test.param.field == std::string("rope_theta") ? "RotaryBase" : "Other", test.index
      );
    }
);

struct Option {
  const char* name;
  Json value;
};

class SwitchHeadOption : public ModelLoad, public testing::WithParamInterface<Option> {};

TEST_P(SwitchHeadOption, ThatIsNotSupportedIsRefusedByName) {
  Copy("switchall_rope");
  Change({{GetParam().name, GetParam().value}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr(GetParam().name)));
}

INSTANTIATE_TEST_SUITE_P(
    Options,
    SwitchHeadOption,
    testing::Values(
        Option{"moe.att.norm_qk", 1},
        Option{"moe.att.shared_experts", 1},
        Option{"moe.att.qside_n_experts", "4"},
        Option{"moe.att.kq_n_experts", "4"},
        Option{"moe.att.norm_ret", 1},
        Option{"moe.sel_norm", "cos"},
        Option{"moe.topk_mode", "l1_approx"},
        Option{"moe.selection_mode", "mul"},
        Option{"moe.norm_keys", 1},
        Option{"lm.trafo.last_layer_context", 1},
        Option{"transformer.activation", "topk"},
        Option{"moe.att.selection_mode", "sinkhorn"},
        Option{"rope.rotate_fraction", 1.5}
    ),
    [](const testing::TestParamInfo<Option>& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    }
);

}  // namespace
}  // namespace switchyard
