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
  for (const char* text : {"",
                           "2026",
                           "2026-11",
                           "2026-13-01",
                           "2026-02-29",
                           "20261124",
                           "11/24/2026",
                           "2026-11/24",
                           "2026-11-24 ",
                           "2026-11-24T",
                           "2026-11-24 25:00",
                           "2026-11-24 13:05:09 CET",
                           "24.11.26",
                           "2026-111-1",
                           "2026-1-",
                           "x026-11-24",
                           "2026-11-24T13:05+2",
                           "2026-11-24 13:05 ",
                           "2026-11-24 13:05 UTCX",
                           "2026-11-24 13:05 U",
                           "2026 11 24",
                           "24 11 2026",
                           "024.11.2026"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
  }
}

TEST(DatesTest, DaysAndMonthsMayHaveOneDigitAndMonthsANameOfTheirOwn) {
  constexpr int64_t kDay = 1786233600;  // 2026-08-09
  for (const char* text : {"2026-08-09", "2026-8-9", "2026/8/09", "2026.08.09", "9.8.2026",
                           "09.08.2026", "9 Aug 2026", "09-Aug-2026", "9-AUG-26", "Aug 9, 2026",
                           "August 9 2026", "Aug. 09, 2026", "9 august 2026", "9 Aug. 2026"}) {
    EXPECT_EQ(ParseDate(text), kDay) << text;
  }
  EXPECT_EQ(ParseDate("Sept 1, 2026 1:05 PM"), ParseDate("2026-09-01 13:05"));
  EXPECT_EQ(ParseDate("9-Aug-69"), ParseDate("1969-08-09"));
  EXPECT_EQ(ParseDate("9-Aug-68"), ParseDate("2068-08-09"));
  for (const char* text : {"Au 9, 2026", "Augu 9, 2026", "Aug 9, 26", "Aug 9", "9 Aug 26", "Aug",
                           "31 Feb 2026", "9/Aug/2026", "Aug  9, 2026", "9Aug2026", "9-Aug 2026"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
  }
}

// As HTTP (RFC 9110) and mail (RFC 5322) write dates, and a date that stands for "never".
TEST(DatesTest, ADayOfTheWeekMayComeFirst) {
  constexpr int64_t kDay = 1672531200;  // 2023-01-01
  for (const char* text :
       {"Sun, 01 Jan 2023 00:00:00 GMT", "sun, 1 Jan 2023", "Sunday, January 1, 2023",
        "Sun, 01 Jan 2023 02:00:00 +0200", "Sunday, 01-Jan-23 00:00:00 GMT"}) {
    EXPECT_EQ(ParseDate(text), kDay) << text;
  }
  for (const char* text : {"Sun", "Sun, ", "Su, 1 Jan 2023", "Sun 1 Jan 2023", "Day, 1 Jan 2023",
                           "Sun, Sun, 1 Jan 2023", "Sun, 01 Jan 2023 00:00:00 GMTX"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseDate("9999-12-31"), 253402214400);
}

TEST(DatesTest, AnOrderReadsDatesWhoseMonthAndDayCouldBeExchanged) {
  const auto expected = ParseDate("2026-08-09");
  for (const char* text : {"8/9/2026", "08/09/2026", "8-9-2026", "08/09/26"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
    EXPECT_EQ(ParseDate(text, DateOrder::kMonthFirst), expected) << text;
    EXPECT_EQ(ParseDate(text, DateOrder::kDayFirst), ParseDate("2026-09-08")) << text;
  }
  EXPECT_EQ(ParseDate("8/9/2026 9:05:07 PM", DateOrder::kMonthFirst),
            ParseDate("2026-08-09 21:05:07"));
  EXPECT_EQ(ParseDate("13/9/2026", DateOrder::kMonthFirst), std::nullopt);
  EXPECT_EQ(ParseDate("9.8.26", DateOrder::kDayFirst), expected);
  EXPECT_EQ(ParseDate("9.8.26", DateOrder::kMonthFirst), std::nullopt);
  for (const DateOrder order : {DateOrder::kMonthFirst, DateOrder::kDayFirst}) {
    EXPECT_EQ(ParseDate("2026-08-09", order), expected);
    EXPECT_EQ(ParseDate("9.8.2026", order), expected);
    EXPECT_EQ(ParseDate("Aug 9, 2026", order), expected);
    EXPECT_EQ(FindDateOrder(DateOrderName(order)), order);
  }
  EXPECT_EQ(FindDateOrder(""), std::nullopt);
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
  EXPECT_EQ(ParseTime("1:05 PM"), (13 * 60 + 5) * 60);
  EXPECT_EQ(ParseTime("01:05:09pm"), ParseTime("13:05:09"));
  EXPECT_EQ(ParseTime("12:30 AM"), 30 * 60);
  EXPECT_EQ(ParseTime("12:30 PM"), (12 * 60 + 30) * 60);
  EXPECT_EQ(ParseTime("0 days 01:50:31"), ParseTime("1:50:31"));
  EXPECT_EQ(ParseTime("1 day, 2:03:04"), 86400 + *ParseTime("2:03:04"));
  EXPECT_EQ(ParseTime("-1 days +23:00:00"), -3600);
  for (const char* text : {"",         ":",           "13",           "24:00",
                           "13:60",    "13:5",        "113:05",       "13:05 ",
                           "13:05 PM", "0:05 AM",     "1:05 P",       "1:05 PMX",
                           "1 day",    "days 1:05",   "1 dayss 1:05", "1234567890 days 1:05",
                           "13:05Z",   "13:05+02:00", "2026-11-24",   "2026-11-24 13:05"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::formats
