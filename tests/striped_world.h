// Striped files for tests: three targets and two directories, in the test's working directory.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "store/check/check.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"

namespace shima {

using Bytes = std::vector<char>;
using Regions = std::vector<StripedRegion>;

inline const Regions three{{{0}, 4096, {"a", "b", "c"}}};
inline const Regions cut{{{0}, 512, {"b"}}, {{8192}, 4096, {"c", "a"}}};
inline const Regions beside{{{0}, 4096, {"beside", "beside"}}};
inline const Regions mixed{{{0}, 4096, {"beside", "a", "beside"}}};

inline Bytes some_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(random() | 1U);  // no zeros: no holes
  return bytes;
}

inline void require(const Status& status) {
  ASSERT_TRUE(status.has_value()) << describe(status.error());
}
class StripedWorld : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::current_path() / "world";
    ::setenv("SHIMA_TARGETS", (place("a") + ":" + place("b") + ":" + place("c")).c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string place(const std::string& name) const {
    return name + "=" + (root_ / ("target-" + name)).string();
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void new_world() {
    std::filesystem::remove_all(root_);
    for (const char* directory : {"target-a", "target-b", "target-c", "d", "e"})
      std::filesystem::create_directories(root_ / directory);
  }
  void make(const std::string& name, const Regions& regions, const Bytes& bytes) {
    require(create_striped({.path = path(name), .regions = regions}));
    auto file = LogicalFile::open({.path = path(name), .write = true});
    ASSERT_TRUE(file.has_value());
    require(file->write(FileOffset{0}, bytes.data(), bytes.size()));
  }

  // Nothing if the file does not exist.
  std::optional<Bytes> contents(const std::string& name) {
    auto file = LogicalFile::open({.path = path(name), .read = true});
    if (!file) {
      EXPECT_EQ(file.error().code, Code::no_such_file) << file.error().what;
    }
    if (!file) return {};
    Bytes bytes(static_cast<std::size_t>(file->size().value().value));
    EXPECT_EQ(file->read(FileOffset{0}, bytes.data(), bytes.size()).value(), bytes.size());
    return bytes;
  }

  // Findings that remain, as text.
  std::string findings(bool repair) {
    const auto report = check_files({path("."), repair, repair});
    if (!report) return describe(report.error());
    std::string left;
    for (const Finding& finding : report->findings)
      if (!finding.is_note() && !finding.repaired)
        left += finding.path + ": " + std::string(name_of(finding.problem)) + ": " + finding.what +
                "\n";
    return left;
  }

  // After a repair: every part belongs to a file, and no other file is left.
  void expect_tidy() {
    const std::string left = findings(true);
    if (!may_be_left_) {
      EXPECT_EQ(left, "");
    }
    const std::string again = findings(false);
    EXPECT_EQ(again, left);
    std::set<std::string> ids;
    std::set<std::string> beside_files;  // directory and id
    for (const char* directory : {"d", "e"})
      for (const auto& entry : std::filesystem::directory_iterator(root_ / directory)) {
        if (entry.path().filename() == ".shima") continue;
        const auto master = read_master(entry.path().string());
        if (master.has_value() && *master) ids.insert((*master)->id.hex);
        if (master.has_value() && *master)
          beside_files.insert((root_ / directory / ".shima" / (*master)->id.hex).string());
        EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
      }
    if (!left.empty()) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      const std::string directory = entry.path().parent_path().filename().string();
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file() || (directory != ".shima" && !directory.starts_with("target-")))
        continue;
      if (name == ".lock" || name.find(".shima-target") != std::string::npos)
        continue;  // also of one that did not become a target
      EXPECT_TRUE(ids.contains(name.substr(0, 32))) << entry.path();
      if (directory == ".shima") {
        EXPECT_TRUE(
            beside_files.contains((entry.path().parent_path() / name.substr(0, 32)).string()))
            << entry.path() << " is not beside its file";
      }
    }
  }

  std::filesystem::path root_;
  bool may_be_left_ = false;  // after a repair: an unfinished restripe
};

}  // namespace shima
