#include "tests/engine/model/model_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

// Loading a model folder, with the golden checkpoints as good ones and every fault made on a copy
// of them.

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(ModelLoad, ReadsEveryDimensionOfAJetMoeConfig) {
  Copy("jetmoe");

  const auto model = Load();

  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  const ModelConfig& config = (*model)->config();
  EXPECT_EQ(config.family, "jetmoe");
  EXPECT_EQ(config.vocabulary_size, 97);
  EXPECT_EQ(config.model_dim, 40);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.context_tokens, 4096);
  EXPECT_EQ(config.attention.kv_heads, 3);
  EXPECT_EQ(config.attention.key_dim, 8);
  EXPECT_EQ(config.attention.QueryGroups(), 2);
  EXPECT_EQ(config.attention.router.experts, 5);
  EXPECT_EQ(config.feed_forward.hidden_dim, 28);
  EXPECT_TRUE(config.feed_forward.gated);
  EXPECT_FLOAT_EQ(config.norm.block_epsilon, 1e-6F);
  EXPECT_FLOAT_EQ(config.norm.final_epsilon, 1e-3F);
  EXPECT_TRUE(config.tied_head);
  EXPECT_EQ(config.bos_id, 1);
}

TEST_F(ModelLoad, CountsParametersAndKeyValueBytes) {
  Copy("jetmoe");

  const auto model = Load();

  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  // By hand: embedding 97*40; per layer q and o experts 2*5*24*40, kv 48*40, two routers 2*5*40,
  // feed-forward 5*(56*40 + 40*28), two norms and two biases 4*40; final norm 40.
  EXPECT_EQ(
      (*model)->summary().parameters_total, 3880 + 3 * (9600 + 1920 + 400 + 16800 + 160) + 40
  );
  // Of the stacks 2 of 5 experts; the tied head counts, the embedding look-up does not.
  EXPECT_EQ(
      (*model)->summary().parameters_active, 3880 + 3 * (3840 + 1920 + 400 + 6720 + 160) + 40
  );
  // 3 layers, 3 heads, 8 channels of key and of value, 4 bytes.
  EXPECT_EQ((*model)->kv_layout().BytesPerToken(), 3 * 3 * 16 * 4);
}

TEST_F(ModelLoad, ReadsTheTransformersSpellingOfAJetMoeConfig) {
  Copy("jetmoe");
  Rename("moe_num_experts", "num_local_experts");
  Rename("moe_top_k", "num_experts_per_tok");
  Rename("ffn_hidden_size", "intermediate_size");
  Rename("kv_channels", "head_dim");

  const auto model = Load();

  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ((*model)->config().feed_forward.hidden_dim, 28);
}

TEST_F(ModelLoad, ReadsTheRotaryBaseInsideRopeParameters) {
  Copy("jetmoe");
  Change({{"rope_parameters", {{"rope_theta", 5000.0}, {"rope_type", "default"}}}});

  const auto model = Load();

  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ((*model)->config().attention.rotary_base, 5000.0);
}

TEST_F(ModelLoad, ReadsEveryDimensionOfASwitchHeadConfig) {
  Copy("switchall_rope");

  const auto model = Load();

  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  const ModelConfig& config = (*model)->config();
  EXPECT_EQ(config.family, "switchhead");
  EXPECT_EQ(config.vocabulary_size, 103);  // from the embedding
  EXPECT_EQ(config.model_dim, 38);
  EXPECT_EQ(config.context_tokens, 200);  // unroll 100 and one memory block
  EXPECT_EQ(config.attention.kv_heads, 2);
  EXPECT_EQ(config.attention.key_dim, 13);
  EXPECT_EQ(config.attention.rotary_dims, 6);  // half of 13, rounded down to pairs
  EXPECT_EQ(config.feed_forward.router.experts, 9);
  EXPECT_EQ(config.feed_forward.router.top_k, 3);
  EXPECT_FALSE(config.bos_id.has_value());
}

TEST_F(ModelLoad, ConvertsWeightsWhenAsked) {
  Copy("jetmoe_bf16_sharded");

  EXPECT_TRUE(Load({.dtype = DType::kF32}).ok());
  EXPECT_TRUE(Load({.dtype = DType::kBF16}).ok());
}

TEST_F(ModelLoad, NamesAnUnknownFamilyAndTheKnownOnes) {
  folder_.Write("config.json", R"({"model_type": "llama"})");

  EXPECT_THAT(
      LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr("llama"), HasSubstr("jetmoe, moeut"))
  );
}

TEST_F(ModelLoad, NamesTensorAndBothShapesWhenTheConfigContradictsTheFile) {
  Copy("jetmoe");
  Change({{"ffn_hidden_size", 29}});

  EXPECT_THAT(
      LoadMessage(),
      AllOf(
          HasSubstr("model.safetensors"),
          HasSubstr("model.layers.0.mlp.input_linear.weight"),
          HasSubstr("[5, 56, 40]"),
          HasSubstr("[5, 58, 40]")
      )
  );
}

TEST_F(ModelLoad, NamesATensorThatIsMissing) {
  Copy("switchhead_rope");
  Change({{"transformer.encoder_n_layers", 4}});

  EXPECT_THAT(LoadMessage(), HasSubstr("tensor unique_layers.3.norm1.weight is missing"));
}

TEST_F(ModelLoad, NamesATensorThatBelongsToNothing) {
  Copy("switchhead_rope");
  Change({{"transformer.encoder_n_layers", 2}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("unique_layers.2."), HasSubstr("belongs to nothing")));
}

// The config says which tensors there are: one that it asks for and the file lacks is an error, and
// so is one that the file has and the config does not ask for. Both ways, for each tensor that is
// an option.
TEST_F(ModelLoad, RefusesAnOptionalTensorThatTheConfigAsksForAndTheFileLacks) {
  Copy("jetmoe");
  std::string weights = ReadWholeFile(folder_.path() / "model.safetensors");
  const std::string name = "model.layers.1.mlp.bias";
  weights.replace(weights.find(name), name.size(), "model.layers.1.mlp.bi_s");
  folder_.Write("model.safetensors", weights);
  EXPECT_THAT(LoadMessage(), HasSubstr("tensor model.layers.1.mlp.bias is missing"));

  Copy("switchall_rope");
  Change({{"moe.bias", 1}});
  EXPECT_THAT(LoadMessage(), HasSubstr("tensor unique_layers.0.pkm.bias is missing"));

  Copy("switchall_rope");
  Change({{"moe.sel_bias", 1}});
  EXPECT_THAT(LoadMessage(), HasSubstr("tensor unique_layers.0.pkm.sel_bias is missing"));

  Copy("moeut_train_postln");
  Change({{"lm.trafo.force_out_norm", 1}});
  EXPECT_THAT(LoadMessage(), HasSubstr("tensor out_norm.weight is missing"));
}

TEST_F(ModelLoad, RefusesAnOptionalTensorThatTheFileHasAndTheConfigDoesNotAskFor) {
  Copy("jetmoe");
  Change({{"bias", false}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("mlp.bias"), HasSubstr("belongs to nothing")));
}

TEST_F(ModelLoad, RefusesQueryHeadsThatAreNotKvHeadsTimesExpertsPerToken) {
  Copy("jetmoe");
  Change({{"num_attention_heads", 5}});

  EXPECT_THAT(LoadMessage(), HasSubstr("num_attention_heads is 5; it must be"));
}

TEST_F(ModelLoad, RefusesMoreExpertsPerTokenThanThereAre) {
  Copy("jetmoe");
  Change({{"moe_top_k", 6}, {"num_attention_heads", 18}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr("6 of only 5 experts")));
}

TEST_F(ModelLoad, RefusesSizesThatMultiplyBeyondMemory) {
  Copy("jetmoe");
  Change({{"hidden_size", 2147483647}, {"ffn_hidden_size", 2147483647}});

  EXPECT_THAT(LoadMessage(), HasSubstr("elements"));
}

TEST_F(ModelLoad, RefusesMoreExecutedLayersThanCanRunHoweverFewAreStored) {
  Copy("moeut");
  Change({{"n_layers", 2'000'000'000}});

  EXPECT_THAT(LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr("2000000000 layers")));
}

TEST_F(ModelLoad, RefusesAWidthThatComesOutAsNothing) {
  Copy("switchhead_rope");
  Change({{"transformer.ff_multiplier", 0.001}});
  EXPECT_THAT(LoadMessage(), HasSubstr("hidden width of the feed-forward comes out as 0"));

  Copy("moeut");
  Change({{"n_heads", 1000}, {"d_head", nullptr}});
  EXPECT_THAT(LoadMessage(), HasSubstr("width of a key comes out as 0"));
}

TEST_F(ModelLoad, WarnsOfARouterThatIsNotFiniteAndNamesItsTensor) {
  Copy("jetmoe");
  const std::string router = "model.layers.1.mlp.router.layer.weight";
  Overwrite(router, 3, std::numeric_limits<float>::infinity());

  testing::internal::CaptureStdout();
  const bool loaded = Load().ok();
  const std::string log = testing::internal::GetCapturedStdout();

  EXPECT_TRUE(loaded);
  EXPECT_THAT(
      log,
      AllOf(
          HasSubstr("event=router_not_finite"),
          HasSubstr("tensor=" + router),
          HasSubstr("element=3")
      )
  );
}

TEST_F(ModelLoad, NamesFileAndTensorOfATrainedScaleThatIsNone) {
  for (const float scale : {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    Copy("moa_lm");
    Overwrite("unique_layers.1.self_attn.scale", 0, scale);

    EXPECT_THAT(
        LoadMessage(),
        AllOf(
            HasSubstr("model.safetensors: tensor unique_layers.1.self_attn.scale is"),
            HasSubstr("not a positive number")
        )
    );
  }
}

TEST_F(ModelLoad, RefusesAConfigThatIsALinkOutOfTheFolder) {
  const TemporaryFolder elsewhere;
  const auto config = elsewhere.Write("config.json", R"({"model_type": "jetmoe"})");
  std::filesystem::create_symlink(config, folder_.path() / "config.json");

  EXPECT_THAT(
      LoadMessage(), AllOf(HasSubstr("config.json"), HasSubstr("leads out of the model folder"))
  );
}

}  // namespace
}  // namespace switchyard
