// The NUMA domain of a set of CPUs, on machines that files describe as Linux does.
#include "base/process/numa_domain.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>
#include <vector>

namespace shima {
namespace {

CpuMask listed(std::string_view text) { return parse_cpu_list(text).value(); }

class NumaDomain : public testing::Test {
 protected:
  NumaDomain() {
    std::string pattern = "/tmp/numa-domain-XXXXXX";
    domains_ = ::mkdtemp(pattern.data());
  }
  ~NumaDomain() override { std::filesystem::remove_all(domains_); }

  void write(const std::string& name, const std::string& line) {
    std::filesystem::create_directories((domains_ / name).parent_path());
    std::ofstream(domains_ / name) << line << '\n';
  }

  std::filesystem::path domains_;
};

TEST_F(NumaDomain, IsTheOneThatHasAllCpus) {
  write("online", "0,3");
  write("node0/cpulist", "0-15,32-47");
  write("node3/cpulist", "16-31,48-63");
  EXPECT_EQ(numa_domain_of(listed("0-15"), domains_), 0);
  EXPECT_EQ(numa_domain_of(listed("47"), domains_), 0);
  EXPECT_EQ(numa_domain_of(listed("16,63"), domains_), 3);
  EXPECT_EQ(numa_domain_of(listed("15-16"), domains_), std::nullopt);
  EXPECT_EQ(numa_domain_of(listed("100"), domains_), std::nullopt);
  EXPECT_EQ(numa_domain_of(CpuMask{}, domains_), std::nullopt);
}

TEST_F(NumaDomain, IsNoneOnAMachineWithOne) {
  write("online", "0");
  write("node0/cpulist", "0-1");
  EXPECT_EQ(numa_domain_of(listed("0"), domains_), std::nullopt);
}

TEST_F(NumaDomain, IsNoneWhereLinuxDescribesNone) {
  EXPECT_EQ(numa_domain_of(listed("0"), domains_), std::nullopt);
  write("online", "what");
  EXPECT_EQ(numa_domain_of(listed("0"), domains_), std::nullopt);
  write("online", "0-1");
  EXPECT_EQ(numa_domain_of(listed("0"), domains_), std::nullopt);
}

TEST(CpuList, IsReadAsLinuxWritesIt) {
  EXPECT_EQ(listed("").count(), 0);
  EXPECT_EQ(listed("7").count(), 1);
  EXPECT_EQ(listed("0-3,8,8190-8191").count(), 7);
  EXPECT_TRUE(listed("0-3,8,8190-8191").has(8191));
  const std::vector<std::string> wrong = {"x", "1-", "-1", "3-1", "1,,2", "1 2", "0-8192", "1-2-3"};
  for (const std::string& text : wrong) EXPECT_EQ(parse_cpu_list(text), std::nullopt) << text;
}

}  // namespace
}  // namespace shima
