#include "program/text_table.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

TEST(TextTable, AlignsTheFirstColumnLeftAndTheOthersRight) {
  TextTable table({"layer", "tokens", "share"});
  table.AddRow({"0", "1234", "9.5%"});
  table.AddRow({"1 head 10", "7", "100.0%"});

  EXPECT_EQ(
      table.ToString(),
      "layer      tokens   share\n"
      "0            1234    9.5%\n"
      "1 head 10       7  100.0%\n"
  );
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({"a", "b"});
  table.AddRow({"é", "▁x"});

  EXPECT_EQ(table.ToString(), "a   b\né  ▁x\n");
}

TEST(TextTable, EndsLinesWithoutSpaces) {
  TextTable table({"a", "bb", ""});
  table.AddRow({"c", "d", ""});

  EXPECT_EQ(table.ToString(), "a  bb\nc   d\n");
}

TEST(ShortCount, KeepsThreeDigitsAndTheLargestUnit) {
  EXPECT_EQ(ShortCount(0), "0");
  EXPECT_EQ(ShortCount(999), "999");
  EXPECT_EQ(ShortCount(1000), "1.00 k");
  EXPECT_EQ(ShortCount(4194304), "4.19 M");
  EXPECT_EQ(ShortCount(8522000000), "8.52 G");
  EXPECT_EQ(ShortCount(98304), "98.3 k");
}

TEST(ShortBytes, CountsIn1024) {
  EXPECT_EQ(ShortBytes(1023), "1023 B");
  EXPECT_EQ(ShortBytes(8388608), "8.00 MiB");
  EXPECT_EQ(ShortBytes(3145728000), "2.93 GiB");
}

}  // namespace
}  // namespace switchyard
