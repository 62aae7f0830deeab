#include "server/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/hand_clock.h"
#include "tests/support/captured_log.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kKey = "sy_" + std::string(43, 'a');
const std::string kOther = "sy_" + std::string(43, 'b');

std::string Entry(const std::string& name, const std::string& key, const std::string& more = "") {
  return "{\"name\": \"" + name + "\", \"sha256\": \"" + HexOf(HashKey(key)) + "\"" + more + "}";
}

class AccessControlTest : public ::testing::Test {
 protected:
  void Write(const std::string& entries) {
    path_ = folder_.Write("keys.json", "{\"keys\": [" + entries + "]}");
  }
  std::unique_ptr<AccessControl> Open() {
    auto access = AccessControl::Open(path_, [this] { return clock_.Now(); });
    EXPECT_TRUE(access.ok()) << access.status();
    return *std::move(access);
  }

  CapturedLog log_;
  HandClock clock_;
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

TEST_F(AccessControlTest, KnowsWhoseAKeyIs) {
  Write(Entry("ann", kKey) + "," + Entry("bob", kOther));
  const auto access = Open();

  EXPECT_EQ((*access->Authenticate("Bearer " + kKey))->key().name, "ann");
  EXPECT_EQ((*access->Authenticate("bearer " + kOther))->key().name, "bob");
}

TEST_F(AccessControlTest, OpensToNothingElse) {
  // The hash of a password, which is no key, and of nothing.
  Write(Entry("ann", kKey) + "," + Entry("weak", "password") + "," + Entry("none", ""));
  const auto access = Open();

  for (const std::string& authorization :
       {std::string(),
        kKey,
        "Basic " + kKey,
        std::string("Bearer"),
        std::string("Bearer "),
        "Bearer  " + kKey,
        "Bearer " + kKey + " ",
        "Bearer " + kOther,
        std::string("Bearer password"),
        "Bearer " + HexOf(HashKey(kKey))}) {
    EXPECT_EQ(access->Authenticate(authorization).status().code(), StatusCode::kUnauthenticated)
        << authorization;
  }
  EXPECT_THAT(MessageOf(access->Authenticate("").status()), HasSubstr("authorization: Bearer KEY"));
}

TEST_F(AccessControlTest, SaysWhenALimitAllowsTheNextRequest) {
  Write(Entry("ann", kKey, ", \"requests_per_minute\": 2"));
  const auto access = Open();
  KeyAccount& account = **access->Authenticate("Bearer " + kKey);
  ASSERT_TRUE(account.TakeRequest().ok());
  ASSERT_TRUE(account.TakeRequest().ok());

  const Status status = account.TakeRequest();

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(
      MessageOf(status),
      HasSubstr("API key \"ann\" has used its 2 requests a minute; try again in 30 seconds")
  );
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(account.TakeRequest().ok());
}

TEST_F(AccessControlTest, GivesTokensBackThatWereNotUsed) {
  Write(Entry("ann", kKey, ", \"tokens_per_minute\": 100"));
  const auto access = Open();
  KeyAccount& account = **access->Authenticate("Bearer " + kKey);

  ASSERT_TRUE(account.TakeTokens(80).ok());
  EXPECT_FALSE(account.TakeTokens(60).ok());
  account.ReturnTokens(40);
  EXPECT_TRUE(account.TakeTokens(60).ok());

  const Status never = account.TakeTokens(101);
  EXPECT_THAT(MessageOf(never), HasSubstr("may take 101 tokens; API key \"ann\" has 100 a minute"));
  EXPECT_FALSE(never.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
}

TEST_F(AccessControlTest, FollowsTheFileAndKeepsWhatWasUsed) {
  Write(Entry("ann", kKey, ", \"requests_per_minute\": 1"));
  const auto access = Open();
  ASSERT_TRUE((*access->Authenticate("Bearer " + kKey))->TakeRequest().ok());

  Write(Entry("ann", kKey, ", \"requests_per_minute\": 1") + "," + Entry("bob", kOther));
  access->Reload();
  EXPECT_FALSE((*access->Authenticate("Bearer " + kKey))->TakeRequest().ok());
  EXPECT_TRUE(access->Authenticate("Bearer " + kOther).ok());

  Write(Entry("bob", kOther));
  access->Reload();
  EXPECT_FALSE(access->Authenticate("Bearer " + kKey).ok());
}

TEST_F(AccessControlTest, KeepsTheKeysWhenTheFileTurnsBadAndSaysSoOnce) {
  Write(Entry("ann", kKey));
  const auto access = Open();

  folder_.Write("keys.json", "{\"keys\": [");
  access->Reload();
  access->Reload();
  EXPECT_TRUE(access->Authenticate("Bearer " + kKey).ok());
  EXPECT_THAT(log_.Lines(), SizeIs(2));
  EXPECT_THAT(
      log_.WaitFor("event=api_keys_not_reloaded"), HasSubstr("keys.json is not valid JSON")
  );

  std::filesystem::remove(path_);
  access->Reload();
  access->Reload();
  EXPECT_TRUE(access->Authenticate("Bearer " + kKey).ok());
  EXPECT_THAT(log_.Lines(), SizeIs(3));
}

TEST_F(AccessControlTest, NeedsAFileThatIsThere) {
  const Status status = AccessControl::Open(folder_.path() / "none").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("none: cannot be read: No such file"));
  EXPECT_THAT(
      MessageOf(AccessControl::Open(folder_.path()).status()), HasSubstr("is no regular file")
  );
}

}  // namespace
}  // namespace switchyard
