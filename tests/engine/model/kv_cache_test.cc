#include "engine/model/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "kernels/backend.h"

namespace switchyard {
namespace {

TEST(KvLayout, BytesPerTokenCountsKeysAndValuesOfEveryLayer) {
  const KvLayout layout = {.layers = 24, .kv_heads = 16, .key_dim = 128, .value_dim = 128};

  EXPECT_EQ(layout.BytesPerToken(), 98304 * 4);  // JetMoE-8B: 98304 values
}

TEST(KvCache, GivesEveryLayerMemoryOfItsOwn) {
  const std::unique_ptr<Ops> ops = *MakeOps({.device = "reference", .threads = 1});
  const KvLayout layout = {.layers = 2, .kv_heads = 3, .key_dim = 5, .value_dim = 7};

  const StatusOr<KvCache> cache = KvCache::Create(*ops, layout, /*blocks=*/4, /*block_tokens=*/2);

  ASSERT_TRUE(cache.ok()) << MessageOf(cache.status());
  EXPECT_EQ(cache->Layer(0).key.ToString(), "f32 [4, 2, 3, 5]");
  EXPECT_EQ(cache->Layer(1).value.ToString(), "f32 [4, 2, 3, 7]");
  EXPECT_EQ(cache->Layer(1).key.f32() - cache->Layer(0).key.f32(), 4 * 2 * 3 * 5);
  EXPECT_EQ(cache->Layer(1).value.f32() - cache->Layer(0).value.f32(), 4 * 2 * 3 * 7);
}

}  // namespace
}  // namespace switchyard
