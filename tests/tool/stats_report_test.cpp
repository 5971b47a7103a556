// The report shows every counter of the library, with units, and skips lines that it cannot parse.
#include "tool/report/stats_report.h"

#include <gtest/gtest.h>

namespace shima::tool {
namespace {

TEST(StatsReport, ShowsEverythingWithUnits) {
  const std::string text = format_stats_line(
      R"({"file":"/data/x.nc","comm_size":8,"counters":{"calls":12,"bytes_written":1073741824},)"
      R"("times_us":{"disk":123456},"hints":{"cb_nodes":"2"},"advice":["set a view"]})");
  EXPECT_EQ(text,
            "  /data/x.nc  (comm_size 8)\n"
            "    counters\n"
            "      calls                  12\n"
            "      bytes_written  1073741824  1.0 GiB\n"
            "    times\n"
            "      disk  123.456  ms\n"
            "    hints\n"
            "      cb_nodes  2\n"
            "    advice: set a view\n");
}

TEST(StatsReport, ShowsObjectsInARowAsATable) {
  EXPECT_EQ(format_stats_line(
                R"({"file":"x","subfiles":[{"writes":7,"target":"d0","bytes_written":1048576},)"
                R"({"target":"fast","writes":1234,"bytes_written":3}]})"),
            "  x\n"
            "    subfiles\n"
            "      target  writes  bytes_written\n"
            "      d0           7        1.0 MiB\n"
            "      fast      1234            3 B\n");
}

TEST(StatsReport, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(format_stats_line(R"({"file":"x","counters":{},"advice":[]})"), "  x\n");
}

TEST(StatsReport, PassesOverTornLines) {
  EXPECT_EQ(format_stats_line(R"({"file":"x","coun)"), "");
  EXPECT_EQ(format_stats_line("[]"), "");
  EXPECT_EQ(format_stats_line(""), "");
}

}  // namespace
}  // namespace shima::tool
