#include "engine/model/weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void WriteShard(const TemporaryFolder& folder, const std::string& file, const std::string& tensor) {
  const float value = 1;
  const Status status = WriteSafetensors(folder.path() / file, {{tensor, "F32", {1}, &value, 4}});
  ASSERT_TRUE(status.ok()) << MessageOf(status);
}

void WriteIndex(const TemporaryFolder& folder, const std::string& weight_map) {
  folder.Write(
      "model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + weight_map + "}"
  );
}

std::string MessageOfOpening(const TemporaryFolder& folder) {
  const auto files = WeightFiles::Open(folder.path());
  return files.ok() ? "opened" : MessageOf(files.status());
}

TEST(WeightFiles, ReadsASingleFile) {
  const TemporaryFolder folder;
  WriteShard(folder, "model.safetensors", "a");

  const auto files = WeightFiles::Open(folder.path());

  ASSERT_TRUE(files.ok()) << MessageOf(files.status());
  EXPECT_THAT((*files)->Names(), ElementsAre("a"));
  EXPECT_EQ((*files)->bytes(), 4);
  EXPECT_EQ((*files)->Find("b"), nullptr);
}

TEST(WeightFiles, ReadsTheShardsThatTheIndexNames) {
  const TemporaryFolder folder;
  WriteShard(folder, "one.safetensors", "a");
  WriteShard(folder, "two.safetensors", "b");
  WriteIndex(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");

  const auto files = WeightFiles::Open(folder.path());

  ASSERT_TRUE(files.ok()) << MessageOf(files.status());
  EXPECT_THAT((*files)->Names(), ElementsAre("a", "b"));
  EXPECT_THAT((*files)->FileOf("b"), HasSubstr("two.safetensors"));
}

TEST(WeightFiles, SaysWhatAFolderWithoutWeightsLacks) {
  const TemporaryFolder folder;

  EXPECT_THAT(
      MessageOfOpening(folder),
      HasSubstr("neither model.safetensors nor model.safetensors.index.json")
  );
}

TEST(WeightFiles, NamesAMissingShard) {
  const TemporaryFolder folder;
  WriteShard(folder, "one.safetensors", "a");
  WriteIndex(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");

  EXPECT_THAT(
      MessageOfOpening(folder),
      AllOf(HasSubstr("two.safetensors"), HasSubstr("model.safetensors.index.json"))
  );
}

TEST(WeightFiles, NamesATensorThatIsInAnotherShardThanTheIndexSays) {
  const TemporaryFolder folder;
  WriteShard(folder, "one.safetensors", "a");
  WriteShard(folder, "two.safetensors", "b");
  WriteIndex(folder, R"({"a":"two.safetensors","b":"one.safetensors"})");

  EXPECT_THAT(
      MessageOfOpening(folder),
      AllOf(HasSubstr("one.safetensors: tensor a"), HasSubstr("does not say that it is here"))
  );
}

TEST(WeightFiles, NamesATensorThatIsInNoShard) {
  const TemporaryFolder folder;
  WriteShard(folder, "one.safetensors", "a");
  WriteIndex(folder, R"({"a":"one.safetensors","c":"one.safetensors"})");

  EXPECT_THAT(MessageOfOpening(folder), AllOf(HasSubstr("tensor c"), HasSubstr("it is not")));
}

TEST(WeightFiles, RefusesAnIndexThatLeadsOutOfTheFolder) {
  for (const char* file : {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "..", ""}) {
    const TemporaryFolder folder;
    WriteIndex(folder, Concat(R"({"a":")", file, R"("})"));

    EXPECT_THAT(MessageOfOpening(folder), HasSubstr("not a plain file name")) << file;
  }
}

TEST(WeightFiles, RefusesALinkThatLeadsOutOfTheFolder) {
  const TemporaryFolder elsewhere;
  WriteShard(elsewhere, "model.safetensors", "a");
  const TemporaryFolder folder;
  std::filesystem::create_symlink(
      elsewhere.path() / "model.safetensors", folder.path() / "model.safetensors"
  );

  EXPECT_THAT(
      MessageOfOpening(folder),
      AllOf(
          HasSubstr((folder.path() / "model.safetensors").string()),
          HasSubstr("leads out of the model folder, to " + elsewhere.path().string())
      )
  );
}

TEST(WeightFiles, FollowsALinkInsideTheFolder) {
  const TemporaryFolder folder;
  WriteShard(folder, "weights.safetensors", "a");
  std::filesystem::create_symlink("weights.safetensors", folder.path() / "model.safetensors");

  EXPECT_EQ(MessageOfOpening(folder), "opened");
}

TEST(WeightFiles, RefusesAnIndexWithoutTensors) {
  const TemporaryFolder folder;
  WriteIndex(folder, "{}");

  EXPECT_THAT(
      MessageOfOpening(folder),
      AllOf(HasSubstr("model.safetensors.index.json"), HasSubstr("weight_map names no tensor"))
  );
}

TEST(WeightFiles, RefusesAnIndexThatNestsTooDeep) {
  const TemporaryFolder folder;
  WriteIndex(folder, std::string(1'000'000, '[') + std::string(1'000'000, ']'));

  EXPECT_THAT(
      MessageOfOpening(folder),
      AllOf(HasSubstr("model.safetensors.index.json"), HasSubstr("nests deeper"))
  );
}

TEST(WeightFiles, RefusesAnIndexAboveTheSizeLimit) {
  const TemporaryFolder folder;
  WriteIndex(folder, "{}");
  // A hole in the file system: it takes no space on the disk.
  std::filesystem::resize_file(folder.path() / "model.safetensors.index.json", (100 << 20) + 1);

  EXPECT_THAT(MessageOfOpening(folder), HasSubstr("has 104857601 bytes"));
}

TEST(WeightFiles, RefusesAnIndexThatIsNone) {
  for (const char* text : {"", "[]", "{\"weight_map\":3}", "{\"weight_map\":{\"a\":3}}"}) {
    const TemporaryFolder folder;
    folder.Write("model.safetensors.index.json", text);

    EXPECT_THAT(MessageOfOpening(folder), HasSubstr("model.safetensors.index.json")) << text;
  }
}

}  // namespace
}  // namespace switchyard
