#include "muster/formats/dates.h"

#include <gtest/gtest.h>

namespace muster::formats {
namespace {

TEST(DatesTest, AllFormsOfOneMomentAreRead) {
  constexpr int64_t kMoment = 1795525509;  // 2026-11-24 13:05:09 UTC
  for (const char* text :
       {"2026-11-24 13:05:09", "2026-11-24T13:05:09Z", "2026/11/24 13:05:09", "24.11.2026 13:05:09",
        "2026-11-24T13:05:09.999", "2026-11-24T15:05:09+02:00", "2026-11-24T08:35:09-0430",
        "2026-11-24 13:05:09 UTC", "2026-11-24 15:05:09 +0200", "2026-11-24 9:05:09 -04:00"}) {
    EXPECT_EQ(ParseDate(text), kMoment) << text;
  }
  EXPECT_EQ(ParseDate("2026-11-24 13:05"), kMoment - 9);
  EXPECT_EQ(ParseDate("2026-11-24"), kMoment - 9 - (13 * 60 + 5) * 60);
}

TEST(DatesTest, DaysAreCountedFrom1970) {
  EXPECT_EQ(ParseDate("1970-01-01"), 0);
  EXPECT_EQ(ParseDate("1969-12-31"), -86400);
  EXPECT_EQ(ParseDate("2000-02-29"), 951782400);
}

TEST(DatesTest, OtherTextsAreNotDates) {
  for (const char* text :
       {"", "2026", "2026-11", "2026-13-01", "2026-02-29", "20261124", "11/24/2026", "2026-11/24",
        "2026-11-24 ", "2026-11-24T", "2026-11-24 25:00", "2026-11-24 13:05:09 CET", "24.11.26",
        "2026-1-1", "x026-11-24", "2026-11-24T13:05+2", "2026-11-24 13:05 ",
        "2026-11-24 13:05 UTCX", "2026-11-24 13:05 U"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
  }
}

TEST(DatesTest, ACellMayHoldADateWithoutSeparators) {
  EXPECT_EQ(ParseDateCell("20261124"), ParseDate("2026-11-24"));
  EXPECT_EQ(ParseDateCell("19991231"), ParseDate("1999-12-31"));
  EXPECT_EQ(ParseDateCell("2026-11-24"), ParseDate("2026-11-24"));
  for (const char* text : {"20261324", "21000101", "2026112", "202611240", "2026112x", ""}) {
    EXPECT_EQ(ParseDateCell(text), std::nullopt) << text;
  }
}

TEST(DatesTest, TimesAreSecondsSinceMidnight) {
  EXPECT_EQ(ParseTime("13:05"), (13 * 60 + 5) * 60);
  EXPECT_EQ(ParseTime("9:05"), (9 * 60 + 5) * 60);
  EXPECT_EQ(ParseTime("00:00:09.75"), 9);
  EXPECT_EQ(ParseDate("9:05"), (9 * 60 + 5) * 60) << "a column of dates may be one of times";
  for (const char* text : {"", ":", "13", "24:00", "13:60", "13:5", "113:05", "13:05 ", "1:05 PM",
                           "13:05Z", "13:05+02:00", "2026-11-24", "2026-11-24 13:05"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::formats
