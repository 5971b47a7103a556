// I/O nodes for tests: two daemons in this process, on loopback, and striped files over them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "iod/daemon.h"
#include "striped_world.h"

namespace shima {

// Targets a and b are on two I/O nodes, c is a directory of this machine.
class IodWorld : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    write_key("key", "0123456789abcdef0123456789abcdef");
    ::setenv("SHIMA_IOD_KEY", path("key").c_str(), 1);
    ::setenv("SHIMA_NODE_TIMEOUT", "2", 1);
    start(0);
    start(1);
    set_list();
  }
  void TearDown() override {
    for (auto& node : nodes_) node.reset();
    StripedWorld::TearDown();
  }

  void write_key(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text << "\n";
    ::chmod(path(name).c_str(), 0600);
  }

  [[nodiscard]] iod::DaemonOptions options(std::size_t index) const {
    const std::string name(1, static_cast<char>('a' + index));
    return {.listen = {"127.0.0.1", ports_[index]},
            .targets = {{name, path("target-" + name)}},
            .directories = {},
            .key_file = path("key"),
            .keys_file = {}};
  }
  // At the same port as before.
  void start(std::size_t index) {
    auto started = iod::Daemon::start(options(index));
    ASSERT_TRUE(started.has_value()) << describe(started.error());
    nodes_[index] = *std::move(started);
    ports_[index] = nodes_[index]->address().port;
  }
  void stop(std::size_t index) { nodes_[index].reset(); }

  [[nodiscard]] std::string place_of(std::size_t index) const {
    return "iod://127.0.0.1:" + ports_[index] + "/" +
           std::string(1, static_cast<char>('a' + index));
  }
  void set_list() const {
    ::setenv("SHIMA_TARGETS", ("a=" + place_of(0) + ":b=" + place_of(1) + ":" + place("c")).c_str(),
             1);
  }

  std::array<std::unique_ptr<iod::Daemon>, 2> nodes_;
  std::array<std::string, 2> ports_{"0", "0"};
};

}  // namespace shima
