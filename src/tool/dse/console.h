// The output of the tasks: whole lines go to standard output and standard error.
//
// A part of a line waits for the rest, so that lines of several tasks do not mix; a pause, the end
// of the stream or a long line end that. Nothing here waits: the owner polls, and writes while
// there is room.
#pragma once

#include <poll.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shima::tool {

class Console {
 public:
  static constexpr int pause_ms = 200;

  explicit Console(bool has_tags) : has_tags_(has_tags) {}
  // `stream`: 1 or 2. No data: the end of the stream.
  void add(int task, int stream, std::string_view data);
  // After a pause.
  void release_parts();
  [[nodiscard]] bool has_parts() const { return !parts_.empty(); }
  [[nodiscard]] std::size_t backlog_bytes() const { return outs_[0].size() + outs_[1].size(); }
  void watch(std::vector<pollfd>& watched) const;
  // Writes what the two files take, as poll() has said.
  void write(const std::vector<pollfd>& watched);
  // Writes all, and waits where that is necessary.
  void finish();

 private:
  using Key = std::pair<int, int>;  // task, stream
  void put_line(const Key& key, std::string_view line);
  [[nodiscard]] bool write_some(int stream, std::size_t most);

  bool has_tags_;
  std::map<Key, std::string> parts_;  // of lines
  std::array<std::string, 2> outs_;
};

}  // namespace shima::tool
