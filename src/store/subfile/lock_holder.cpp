#include "store/subfile/lock_holder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace shima {
namespace {

namespace fs = std::filesystem;

std::string name_of(const std::string& pid) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::ifstream in("/proc/" + pid + "/comm");
  std::string program;
  std::getline(in, program);
  for (char& c : program)
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  return fmt::format("process {} ({}) on {}", pid, program, host.data());
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

// A line of fdinfo: "lock: 1: OFDLCK ADVISORY WRITE -1 08:01:1234 0 EOF".
bool conflicts(const std::string& line, const struct flock& wanted) {
  std::istringstream words(line);
  std::string head, number, kind, how, access, pid, file, first, last;
  words >> head >> number >> kind >> how >> access >> pid >> file >> first >> last;
  if (head != "lock:" || kind == "FLOCK" || kind == "LEASE") return false;
  const auto value = [](const std::string& text) {
    std::int64_t found = std::numeric_limits<std::int64_t>::max();  // EOF
    std::from_chars(text.data(), text.data() + text.size(), found);
    return found;
  };
  const std::int64_t end =
      wanted.l_len == 0 ? std::numeric_limits<std::int64_t>::max() : wanted.l_start + wanted.l_len;
  return (access == "WRITE" || wanted.l_type == F_WRLCK) && value(first) < end &&
         value(last) >= wanted.l_start;
}

bool holds_lock(const fs::path& process, const struct stat& file, const struct flock& wanted) {
  return std::ranges::any_of(entries_of(process / "fd"), [&](const fs::path& descriptor) {
    struct stat facts{};
    if (::stat(descriptor.c_str(), &facts) != 0 || facts.st_dev != file.st_dev ||
        facts.st_ino != file.st_ino)
      return false;
    std::ifstream in(process / "fdinfo" / descriptor.filename());
    for (std::string line; std::getline(in, line);)
      if (conflicts(line, wanted)) return true;
    return false;
  });
}

}  // namespace

std::string holder_of_lock(int fd, const struct flock& wanted) {
  struct flock found = wanted;
  struct stat file{};
  if (::fcntl(fd, F_OFD_GETLK, &found) != 0 || ::fstat(fd, &file) != 0)
    return std::string(unknown_lock_holder);
  if (found.l_type != F_UNLCK && found.l_pid > 0) return name_of(std::to_string(found.l_pid));
  for (const fs::path& process : entries_of("/proc")) {
    const std::string pid = process.filename();
    if (std::isdigit(static_cast<unsigned char>(pid.front())) != 0 &&
        holds_lock(process, file, wanted))
      return name_of(pid);
  }
  return std::string(unknown_lock_holder);
}

}  // namespace shima
