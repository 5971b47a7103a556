#include "tool/dse/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace shima::tool {
namespace {

constexpr std::size_t most_part_bytes = std::size_t{64} << 10;

}  // namespace

void Console::put_line(const Key& key, std::string_view line) {
  std::string& out = outs_[static_cast<std::size_t>(key.second - 1)];
  if (has_tags_) out += fmt::format("[{}] ", key.first);
  out += line;
  if (has_tags_ && !line.ends_with('\n')) out += '\n';
}

void Console::add(int task, int stream, std::string_view data) {
  const Key key(task, stream);
  std::string& part = parts_[key];
  const bool is_end = data.empty();
  part += data;
  std::size_t begin = 0;
  for (auto end = part.find('\n'); end != std::string::npos; end = part.find('\n', begin)) {
    put_line(key, std::string_view(part).substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  part.erase(0, begin);
  if (!part.empty() && (is_end || part.size() >= most_part_bytes)) {
    put_line(key, part);
    part.clear();
  }
  if (part.empty()) parts_.erase(key);
}

void Console::release_parts() {
  for (const auto& [key, part] : parts_) put_line(key, part);
  parts_.clear();
}

void Console::watch(std::vector<pollfd>& watched) const {
  for (int stream = 1; stream <= 2; ++stream)
    if (!outs_[static_cast<std::size_t>(stream - 1)].empty())
      watched.push_back({stream, POLLOUT, 0});
}

// A pipe that is ready takes as much as this without waiting.
void Console::write(const std::vector<pollfd>& watched) {
  for (const pollfd& one : watched)
    if (one.revents != 0 && (one.events & POLLOUT) != 0 && (one.fd == 1 || one.fd == 2))
      std::ignore = write_some(one.fd, PIPE_BUF);
}

// False if nothing can be written there.
bool Console::write_some(int stream, std::size_t most) {
  std::string& out = outs_[static_cast<std::size_t>(stream - 1)];
  const ssize_t written = ::write(stream, out.data(), std::min(out.size(), most));
  if (written >= 0) out.erase(0, static_cast<std::size_t>(written));
  if (written >= 0 || errno == EINTR || errno == EAGAIN) return true;
  out.clear();
  return false;
}

void Console::finish() {
  release_parts();
  for (int stream = 1; stream <= 2; ++stream)
    while (!outs_[static_cast<std::size_t>(stream - 1)].empty()) {
      pollfd room{stream, POLLOUT, 0};
      ::poll(&room, 1, -1);
      if (!write_some(stream, PIPE_BUF)) break;
    }
}

}  // namespace shima::tool
