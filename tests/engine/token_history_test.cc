#include "engine/token_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace switchyard {
namespace {

using ::testing::ElementsAre;

TEST(TokenHistory, CountsPromptTokensAsSeenButNotGenerated) {
  TokenHistory history;

  history.Start(std::vector<int32_t>{9, 4, 9, 1}, 3);

  EXPECT_THAT(history.ids(), ElementsAre(1, 4, 9));
  EXPECT_THAT(history.output_counts(), ElementsAre(0, 0, 0));
}

TEST(TokenHistory, CountsEachGeneratedToken) {
  TokenHistory history;
  history.Start(std::vector<int32_t>{4}, 4);

  for (const int32_t id : {7, 4, 7, 2}) {
    history.AddOutputToken(id);
  }

  EXPECT_THAT(history.ids(), ElementsAre(2, 4, 7));
  EXPECT_THAT(history.output_counts(), ElementsAre(1, 1, 2));
}

TEST(TokenHistory, GrowsInPlaceUpToTheLengthItWasToldAtTheStart) {
  TokenHistory history;
  history.Start(std::vector<int32_t>{5, 6}, 3);
  const int32_t* const ids = history.ids().data();
  const int32_t* const counts = history.output_counts().data();

  for (const int32_t id : {1, 2, 3}) {
    history.AddOutputToken(id);
  }

  EXPECT_EQ(history.ids().data(), ids);
  EXPECT_EQ(history.output_counts().data(), counts);
}

}  // namespace
}  // namespace switchyard
