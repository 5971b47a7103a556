// Lists of hosts as launchers write them.
#include <gtest/gtest.h>

#include "base/process/host_list.h"
#include "base/process/launcher.h"

namespace shima {
namespace {

using Names = std::vector<std::string>;

TEST(HostList, Expands) {
  EXPECT_EQ(expand_hosts("", 9), Names{});
  EXPECT_EQ(expand_hosts("a,b.example.org,a", 9), (Names{"a", "b.example.org"}));
  EXPECT_EQ(expand_hosts("n[08-10,12],login", 9), (Names{"n08", "n09", "n10", "n12", "login"}));
  EXPECT_EQ(expand_hosts("r[1-2]n[3-4]x", 9), (Names{"r1n3x", "r1n4x", "r2n3x", "r2n4x"}));
  EXPECT_EQ(expand_hosts("n[1-1000000000]", 3), (Names{}));  // more digits than a number may have
  EXPECT_EQ(expand_hosts("n[1-900000000]", 3), (Names{"n1", "n2", "n3"}));
  std::string again = "n";  // 4^100 times the same name
  for (int i = 0; i < 100; ++i) again += "[1,1,1,1]";
  EXPECT_EQ(expand_hosts(again, 9).size(), 1U);
  // Numbers without a name behind them.
  EXPECT_EQ(expand_hosts("n[1-900000000][1-900000000]x[]", 9), Names{});
  EXPECT_EQ(expand_hosts("n[1-900000000][1-900000000]x[2-1]", 9), Names{});
  EXPECT_EQ(expand_hosts("10.0.0.1,fe80::1", 9), (Names{"10.0.0.1", "fe80::1"}));
}

TEST(HostList, EndsAtWhatIsNoHost) {
  for (const char* bad :
       {"-oProxyCommand=x", "a b", "$(x)", "n[", "n[1", "n[x]", "n[1-]", "n[]", "n[2-1]", "n]1;"})
    EXPECT_EQ(expand_hosts(std::string("a,") + bad + ",b", 9), Names{"a"}) << bad;
}

TEST(HostList, IsCutBetweenEntries) {
  EXPECT_EQ(first_hosts("abc,de", 6), "abc,de");
  EXPECT_EQ(first_hosts("abc,de", 5), "abc");
  EXPECT_EQ(first_hosts("abc,n[1,2],x", 8), "abc");
  EXPECT_EQ(first_hosts("abc,n[1,2],x", 10), "abc,n[1,2]");
  EXPECT_EQ(first_hosts("abc", 2), "");
}

TEST(HostList, ComparesNamesWithAndWithoutADomain) {
  EXPECT_TRUE(are_same_host("a", "a.example.org"));
  EXPECT_FALSE(are_same_host("a.example.com", "a.example.org"));
  EXPECT_FALSE(are_same_host("a", "b"));
}

TEST(HostList, OfLaunchers) {
  const auto hosts = [](std::vector<std::pair<std::string, std::string>> set) {
    return launcher_hosts([set](const char* name) -> std::optional<std::string> {
      for (const auto& [one, value] : set)
        if (one == name) return value;
      return std::nullopt;
    });
  };
  EXPECT_EQ(hosts({}), "");
  EXPECT_EQ(hosts({{"SHIMA_DSE_HOSTS", "a,b"}, {"SLURM_JOB_NODELIST", "n[1-4]"}}), "a,b");
  const std::pair<std::string, std::string> allocation{"SLURM_JOB_NODELIST", "n[1-4]"};
  const std::pair<std::string, std::string> step{"SLURM_STEP_NODELIST", "n[1-2]"};
  EXPECT_EQ(hosts({allocation}), "n[1-4]");
  EXPECT_EQ(hosts({allocation, step, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "1"}}),
            "n[1-2]");
  // A launcher's daemons are the step.
  EXPECT_EQ(hosts({allocation,
                   step,
                   {"SLURM_STEP_NUM_TASKS", "2"},
                   {"SLURM_PROCID", "1"},
                   {"OMPI_COMM_WORLD_RANK", "5"},
                   {"OMPI_COMM_WORLD_SIZE", "8"}}),
            "n[1-4]");
}

}  // namespace
}  // namespace shima
