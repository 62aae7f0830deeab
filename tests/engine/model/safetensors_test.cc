#include "engine/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A file of this header and so many data bytes; `header_bytes` may lie.
std::string FileOf(const std::string& header, size_t data_bytes, int64_t header_bytes = -1) {
  const uint64_t claimed = header_bytes < 0 ? header.size() : static_cast<uint64_t>(header_bytes);
  std::string content(8, '\0');
  std::memcpy(content.data(), &claimed, 8);
  return content + header + std::string(data_bytes, '\1');
}

TEST(SafetensorsFile, ReadsDtypeShapeAndDataOfEachTensor) {
  const TemporaryFolder folder;
  const std::vector<float> weights = {1.5F, -2, 0, 3, 4, 5};
  const std::vector<int64_t> tokens = {7, 8};
  ASSERT_TRUE(WriteSafetensors(
                  folder.path() / "a.safetensors",
                  {{"w", "F32", {2, 3}, weights.data(), 24},
                   {"tokens", "I64", {2}, tokens.data(), 16}}
  ).ok());

  const auto file = SafetensorsFile::Open(folder.path() / "a.safetensors");

  ASSERT_TRUE(file.ok()) << MessageOf(file.status());
  const StoredTensor& tensor = (*file)->tensors().at("w");
  EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));
  EXPECT_EQ(std::memcmp(tensor.data, weights.data(), 24), 0);
  EXPECT_EQ(std::memcmp((*file)->tensors().at("tokens").data, tokens.data(), 16), 0);
}

TEST(SafetensorsFile, AcceptsScalarsAndEmptyTensors) {
  const TemporaryFolder folder;
  const auto path = folder.Write(
      "a.safetensors",
      FileOf(
          R"({"empty":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
          R"("one":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{"format":"pt"}})",
          4
      )
  );

  const auto file = SafetensorsFile::Open(path);

  ASSERT_TRUE(file.ok()) << MessageOf(file.status());
  EXPECT_EQ((*file)->tensors().size(), 2U);
  EXPECT_EQ((*file)->metadata().at("format"), "pt");
}

TEST(WriteSafetensors, LeavesNoPartialFileBehind) {
  const TemporaryFolder folder;
  const float value = 1;

  ASSERT_TRUE(WriteSafetensors(folder.path() / "a.safetensors", {{"w", "F32", {1}, &value, 4}}).ok()
  );

  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.safetensors.partial"));
}

TEST(WriteSafetensors, SaysWhichFileCannotBeWritten) {
  const Status status = WriteSafetensors("/nonexistent/folder/a.safetensors", {});

  EXPECT_THAT(MessageOf(status), HasSubstr("/nonexistent/folder/a.safetensors: cannot be written"));
}

struct BadFile {
  const char* name;
  std::string content;
  const char* complaint;
};

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedNamingTheFileAndTheFault) {
  const TemporaryFolder folder;
  const auto path = folder.Write("model.safetensors", GetParam().content);

  const auto file = SafetensorsFile::Open(path);

  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(
      MessageOf(file.status()), AllOf(HasSubstr(path.string()), HasSubstr(GetParam().complaint))
  );
}

std::string OneTensor(
    const std::string& dtype, const std::string& shape, const std::string& offsets
) {
  return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

INSTANTIATE_TEST_SUITE_P(
    Files,
    BadSafetensors,
    testing::Values(
        BadFile{"Empty", "", "has 0 bytes"},
        BadFile{"ShorterThanItsLength", "1234567", "has 7 bytes"},
        BadFile{"HeaderLongerThanTheFile", FileOf("{}", 0, 3), "claims 3 bytes"},
        BadFile{
            "HeaderOverTheLimit", FileOf("{}", 0, 100 * 1024 * 1024 + 1), "claims 104857601 bytes"},
        BadFile{
            "HeaderLengthNegative", std::string(16, '\xff'), "claims 18446744073709551615 bytes"},
        BadFile{"HeaderNotJson", FileOf("{\"w\":", 0), "its header is not valid JSON"},
        BadFile{
            "HeaderTooDeep",
            FileOf(std::string(65, '[') + std::string(65, ']'), 0),
            "nests deeper"},
        BadFile{
            "ShapeTooDeep",
            FileOf(
                OneTensor(
                    "F32", std::string(1'000'000, '[') + std::string(1'000'000, ']'), "[0,4]"
                ),
                4
            ),
            "nests deeper"},
        BadFile{"HeaderAnArray", FileOf("[]", 0), "not a JSON object"},
        BadFile{"EntryNotAnObject", FileOf(R"({"w":3})", 0), "tensor w: its header entry lacks"},
        BadFile{
            "ShapeMissing",
            FileOf(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4),
            "tensor w: its header entry lacks"},
        BadFile{"ShapeNotAList", FileOf(OneTensor("F32", "4", "[0,16]"), 16), "wrong type"},
        BadFile{"ShapeNegative", FileOf(OneTensor("F32", "[-1]", "[0,4]"), 4), "shape [-1]"},
        BadFile{"ShapeFractional", FileOf(OneTensor("F32", "[1.5]", "[0,6]"), 6), "shape [1.5]"},
        BadFile{
            "ShapeOverflows",
            FileOf(OneTensor("F32", "[4294967296,4294967296]", "[0,0]"), 0),
            "overflows"},
        BadFile{
            "ShapeOverflowsToFit",
            FileOf(OneTensor("F32", "[4611686018427387905]", "[0,4]"), 4),
            "overflows"},
        BadFile{
            "UnknownDtype",
            FileOf(OneTensor("F8_E4M3", "[4]", "[0,4]"), 4),
            "dtype F8_E4M3 is not supported"},
        BadFile{
            "OffsetsDoNotFitTheShape",
            FileOf(OneTensor("F32", "[2]", "[0,4]"), 4),
            "do not hold 8 bytes"},
        BadFile{
            "OffsetsBackwards", FileOf(OneTensor("F32", "[1]", "[4,0]"), 4), "do not hold 4 bytes"},
        BadFile{"OffsetsOneNumber", FileOf(OneTensor("F32", "[1]", "[4]"), 4), "wrong type"},
        BadFile{
            "Truncated",
            FileOf(OneTensor("F32", "[2]", "[0,8]"), 7),
            "tensor w: ends at byte 8 of a data section of 7"},
        BadFile{
            "OffsetsNearTheEndOfTheIntegers",
            FileOf(OneTensor("F32", "[1]", "[9223372036854775803,9223372036854775807]"), 4),
            "tensor w"},
        BadFile{"GapAtTheBegin", FileOf(OneTensor("F32", "[1]", "[4,8]"), 8), "leave a gap"},
        BadFile{
            "BytesAfterTheLast",
            FileOf(OneTensor("F32", "[1]", "[0,4]"), 5),
            "has 1 bytes after its last tensor"},
        BadFile{
            "Overlap",
            FileOf(
                R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                12
            ),
            "tensor b: begins at byte 4 where 8 was expected: tensors overlap"}
    ),
    [](const testing::TestParamInfo<BadFile>& test) { return test.param.name; }
);

TEST(SafetensorsFile, RefusesAFolder) {
  const TemporaryFolder folder;

  const auto file = SafetensorsFile::Open(folder.path());

  EXPECT_FALSE(file.ok());
}

TEST(SafetensorsFile, SurvivesEveryTruncationAndEveryFlippedByteOfTheHeader) {
  const TemporaryFolder folder;
  const std::string good = FileOf(
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})",
      22
  );
  const auto path = folder.Write("good.safetensors", good);
  ASSERT_TRUE(SafetensorsFile::Open(path).ok());

  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    folder.Write("cut.safetensors", good.substr(0, bytes));
    EXPECT_FALSE(SafetensorsFile::Open(folder.path() / "cut.safetensors").ok()) << bytes;
  }
  for (size_t index = 0; index + 22 < good.size(); ++index) {
    std::string flipped = good;
    flipped[index] = static_cast<char>(flipped[index] ^ 0x15);
    folder.Write("flipped.safetensors", flipped);
    // Opens or not (a tensor's name may change); never crashes, never reads outside the file.
    const auto file = SafetensorsFile::Open(folder.path() / "flipped.safetensors");
    if (!file.ok()) {
      EXPECT_THAT(MessageOf(file.status()), Not(HasSubstr("CHECK")));
    }
  }
}

}  // namespace
}  // namespace switchyard
