#include "server/access/api_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/access/api_key_file.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

// printf abc | sha256sum
constexpr char kHashOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(ApiKey, IsHashedWithSha256) {
  EXPECT_EQ(HexOf(HashKey("abc")), kHashOfAbc);
  EXPECT_EQ(ParseKeyHash(kHashOfAbc), HashKey("abc"));
}

TEST(ApiKey, HasAFormThatNoPasswordHas) {
  const StatusOr<std::string> key = MakeApiKey();

  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_TRUE(HasKeyForm(*key));
  EXPECT_NE(*key, *MakeApiKey());
  EXPECT_TRUE(HasKeyForm("sy_" + std::string(43, '-')));
  for (const std::string& text :
       {std::string(),
        std::string("secret"),
        std::string(46, 'a'),
        "sy_" + std::string(42, 'a'),
        "sy_" + std::string(44, 'a'),
        "sy_" + std::string(42, 'a') + "=",
        "sy_" + std::string(42, 'a') + std::string(1, '\0')}) {
    EXPECT_FALSE(HasKeyForm(text)) << text;
  }
}

TEST(ApiKey, ReadsNoOtherHash) {
  for (const std::string& hex :
       {std::string(),
        std::string(63, 'a'),
        std::string(65, 'a'),
        std::string(64, 'A'),
        std::string(64, 'g')}) {
    EXPECT_FALSE(ParseKeyHash(hex).has_value()) << hex;
  }
}

std::string File(const std::string& fields) {
  return R"({"keys": [{"name": "a", "sha256": ")" + std::string(kHashOfAbc) + "\"" + fields + "}]}";
}

TEST(ApiKeyFile, HasWhatAKeyMayDo) {
  const auto keys = ParseApiKeys(
      File(R"(, "requests_per_minute": 60, "tokens_per_minute": 100000000, "priority": -3,
            "admin": true)"),
      "keys.json"
  );

  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 1U);
  EXPECT_EQ(keys->front().name, "a");
  EXPECT_EQ(keys->front().hash, HashKey("abc"));
  EXPECT_EQ(keys->front().requests_per_minute, 60);
  EXPECT_EQ(keys->front().tokens_per_minute, 100'000'000);
  EXPECT_EQ(keys->front().priority, -3);
  EXPECT_TRUE(keys->front().admin);
}

TEST(ApiKeyFile, LimitsNothingUnlessItSaysSo) {
  const auto keys = ParseApiKeys(File(""), "keys.json");

  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->front().requests_per_minute, 0);
  EXPECT_EQ(keys->front().tokens_per_minute, 0);
  EXPECT_EQ(keys->front().priority, std::nullopt);
  EXPECT_FALSE(keys->front().admin);
}

TEST(ApiKeyFile, SaysWhereItIsWrong) {
  const std::string hash = kHashOfAbc;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "keys.json is not valid JSON"},
      {"[]", "is not of the form {\"keys\": [...]}"},
      {R"({"keys": []})", "has 0 keys"},
      {R"({"keys": [7]})", "keys.json: keys[0]: is no object"},
      {R"({"keys": [], "more": 1})", "is not of the form"},
      {R"({"keys": [{"name": "a"}]})", "keys[0]: has no sha256"},
      {R"({"keys": [{"sha256": ")" + hash + "\"}]}", "keys[0]: has no name"},
      {R"({"keys": [{"name": "a b", "sha256": ""}]})", "keys[0]: name: is no name"},
      {R"({"keys": [{"name": "a", "sha256": "abc"}]})", "sha256: is not 64 lower-case hex digits"},
      {File(R"(, "request_per_minute": 5)"), "request_per_minute: is no field of a key"},
      {File(R"(, "requests_per_minute": 0)"), "is no whole number in [1, 100000000]"},
      {File(R"(, "requests_per_minute": 1.5)"), "requests_per_minute: is no whole number"},
      {File(R"(, "tokens_per_minute": 18446744073709551615)"), "is no whole number"},
      {File(R"(, "tokens_per_minute": "9")"), "is no whole number"},
      {File(R"(, "priority": 101)"), "is no whole number in [-100, 100]"},
      {File(R"(, "admin": 1)"), "admin: is neither true nor false"},
      {R"({"keys": [{"name": "a", "sha256": ")" + hash + R"("}, {"name": "b", "sha256": ")" + hash +
           "\"}]}",
       "keys[1] (b) has the name or the sha256 of another"},
  };
  for (const auto& [text, complaint] : cases) {
    const auto keys = ParseApiKeys(text, "keys.json");
    EXPECT_EQ(keys.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(keys.status()), HasSubstr(complaint)) << text;
  }
}

}  // namespace
}  // namespace switchyard
