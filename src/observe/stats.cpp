#include "observe/stats.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace shima {
namespace {

const char* stats_path() {
  const char* path = std::getenv("SHIMA_STATS");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

nlohmann::json to_json(const std::vector<SubfileStats>& subfiles) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [target, tally] : subfiles)
    rows.push_back({{"target", target.empty() ? "(plain file)" : target},
                    {"writes", tally.writes},
                    {"reads", tally.reads},
                    {"bytes_written", tally.bytes_written},
                    {"bytes_read", tally.bytes_read}});
  return rows;
}

// How many of the requested pieces reached a target as part of another piece's run.
std::uint64_t pieces_merged(const FileStats& stats) {
  std::uint64_t runs = 0;
  for (const SubfileStats& each : stats.subfiles) runs += each.tally.writes + each.tally.reads;
  return stats.sum.file_pieces - std::min(runs, stats.sum.file_pieces);
}

// The rows that have decided.
nlohmann::json decided_by(const FileStats& stats) {
  nlohmann::json rows = nlohmann::json::object();
  for (std::size_t i = 0; i < stats.reasons.size(); ++i)
    if (stats.sum.decided[i] > 0) rows[stats.reasons[i]] = stats.sum.decided[i];
  return rows;
}

nlohmann::json to_json(const FileStats& stats) {
  nlohmann::json counters;
  nlohmann::json times_us;
  for (const CounterField& field : counter_fields) {
    const std::uint64_t value = stats.sum.*field.value;
    if (field.name.ends_with("_ns")) {
      times_us[std::string(field.name.substr(0, field.name.size() - 3))] = value / 1000;
    } else {
      counters[std::string(field.name)] = value;
    }
  }
  counters["pieces_merged"] = pieces_merged(stats);
  nlohmann::json hints = nlohmann::json::object();
  for (const auto& [key, value] : stats.hints) hints[key] = value;
  return {{"file", stats.path},
          {"comm_size", stats.member_count},
          {"counters", counters},
          {"times_us", times_us},
          {"decided", decided_by(stats)},
          {"hints", hints},
          {"subfiles", to_json(stats.subfiles)},
          {"advice", advice_for(stats)}};
}

}  // namespace

bool stats_wanted() { return stats_path() != nullptr; }

void append_stats(const FileStats& stats) {
  const char* path = stats_path();
  if (path == nullptr) return;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0)
    return log(LogLevel::warn,
               "cannot write statistics: opening {} failed; set SHIMA_STATS to a writable file",
               path);
  const std::string line =
      to_json(stats).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    log(LogLevel::warn, "statistics in {} are incomplete", path);
  ::close(fd);
}

std::vector<std::string> advice_for(const FileStats& stats) {
  constexpr std::uint64_t many_calls = 1000;
  constexpr std::uint64_t small_bytes = 64 * 1024;
  const Counters& sum = stats.sum;
  std::vector<std::string> advice;
  const auto small_calls = [&](std::uint64_t calls, std::uint64_t all_bytes, const char* verb,
                               const char* call) {
    if (calls < many_calls || all_bytes / calls > small_bytes) return;
    advice.push_back(fmt::format(
        "{} independent calls {} {} bytes each on average: describe the whole access with "
        "MPI_File_set_view and make one {} call",
        calls, verb, all_bytes / calls, call));
  };
  if (sum.collective_writes == 0)
    small_calls(sum.writes, sum.bytes_written, "wrote", "MPI_File_write_all");
  if (sum.collective_reads == 0)
    small_calls(sum.reads, sum.bytes_read, "read", "MPI_File_read_all");
  return advice;
}

}  // namespace shima
