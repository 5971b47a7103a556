// Advice from a trace: which calls of the program should change, and how.
//
// The advice of the statistics (observe/stats.h) is about sums of a file; here the calls behind the
// sums are known.
#include <fmt/format.h>

#include <algorithm>

#include "observe/stats.h"
#include "tool/top/sample.h"
#include "tool/trace/trace_summary.h"

namespace shima::tool {
namespace {

constexpr std::size_t most_calls_named = 3;

std::string text_of(const CallSum& sum) {
  std::string text = call_name(sum.call);
  if (!sum.site.empty()) text += " at " + sum.site;
  return text + fmt::format(": {} calls of {}, {} bytes each", sum.calls, rank_list(sum.ranks),
                            sum.bytes / std::max<std::uint64_t>(sum.calls, 1));
}

using Calls = std::vector<const CallSum*>;

std::vector<std::string> name_calls(Calls calls) {
  std::ranges::stable_sort(calls, std::greater<>(), &CallSum::calls);
  std::vector<std::string> texts;
  for (const CallSum* const sum : calls)
    if (texts.size() < most_calls_named) texts.push_back(text_of(*sum));
  return texts;
}

template <class Wanted>
Calls calls_that(const Calls& calls, Wanted wanted) {
  Calls found;
  for (const CallSum* const sum : calls)
    if (wanted(*sum)) found.push_back(sum);
  return found;
}

std::uint64_t sum_of(const Calls& calls, std::uint64_t CallSum::* value) {
  std::uint64_t sum = 0;
  for (const CallSum* const one : calls) sum += one->*value;
  return sum;
}

// The rule of the statistics, for one direction. There, collective calls on the file are a reason
// to say nothing, because it is not known which calls are small.
void advise_collective(const std::string& file, const Calls& calls, bool write,
                       std::vector<Advice>& advice) {
  const Calls alone = calls_that(calls, [&](const CallSum& sum) {
    return call::is_data(sum.call) && call::is_write(sum.call) == write &&
           !call::is_together(sum.call);
  });
  FileStats stats{.path = file};
  (write ? stats.sum.writes : stats.sum.reads) = sum_of(alone, &CallSum::calls);
  (write ? stats.sum.bytes_written : stats.sum.bytes_read) = sum_of(alone, &CallSum::bytes);
  for (const std::string& text : advice_for(stats))
    advice.push_back({file + ": " + text, name_calls(alone)});
}

void advise_larger(const std::string& file, const Calls& calls, std::vector<Advice>& advice) {
  constexpr std::uint64_t many = 1000;
  constexpr std::uint64_t small_bytes = 4096;
  const Calls together = calls_that(calls, [](const CallSum& sum) {
    return call::is_together(sum.call) && sum.calls >= many && sum.bytes / sum.calls < small_bytes;
  });
  if (together.empty()) return;
  advice.push_back(
      {fmt::format("{}: {} collective calls move less than 4 KiB a rank: describe several steps by "
                   "one datatype, or collect them in memory, and make fewer, larger calls",
                   file, sum_of(together, &CallSum::calls)),
       name_calls(together)});
}

void advise_sync(const std::string& file, const Calls& calls, std::vector<Advice>& advice) {
  constexpr double large_part = 0.25;
  constexpr std::uint64_t least_ns = 100'000'000;
  const Calls syncs =
      calls_that(calls, [](const CallSum& sum) { return sum.call == call::file_sync; });
  const auto ns = sum_of(syncs, &CallSum::duration_ns);
  const auto all = sum_of(calls, &CallSum::duration_ns);
  if (ns < least_ns || static_cast<double>(ns) < large_part * static_cast<double>(all)) return;
  advice.push_back(
      {fmt::format("{}: {:.0f} % of the time in its calls is MPI_File_sync: sync only what must "
                   "survive a crash, or what another communicator reads",
                   file, 100.0 * static_cast<double>(ns) / static_cast<double>(all)),
       name_calls(syncs)});
}

void advise_open(const std::string& file, const Calls& calls, std::vector<Advice>& advice) {
  constexpr std::uint64_t many = 50;
  const Calls opens = calls_that(calls, [](const CallSum& sum) {
    return sum.call == call::file_open && sum.calls / sum.ranks.size() >= many;
  });
  if (opens.empty()) return;
  advice.push_back({fmt::format("{}: a rank opens the file {} times: keep it open", file,
                                opens.front()->calls / opens.front()->ranks.size()),
                    name_calls(opens)});
}

void advise_balance(const Lateness& late, std::vector<Advice>& advice) {
  constexpr double least_s = 0.1;
  constexpr std::uint64_t least_calls = 4;
  if (late.rank < 0 || late.calls < least_calls || late.last_in * 2 < late.calls ||
      late.waited_s < least_s)
    return;
  advice.push_back(
      {fmt::format("Rank {} comes last to {} of {} collective calls; the other ranks wait {:.1f} s "
                   "for it together: give it less work before the calls",
                   late.rank, late.last_in, late.calls, late.waited_s),
       {}});
}

}  // namespace

std::vector<Advice> advise(const std::vector<CallSum>& calls, const Lateness& lateness) {
  std::map<std::string, Calls> by_file;
  for (const CallSum& sum : calls)
    if (!sum.file.empty()) by_file[sum.file].push_back(&sum);
  std::vector<Advice> advice;
  for (const auto& [file, of_file] : by_file) {
    advise_collective(file, of_file, true, advice);
    advise_collective(file, of_file, false, advice);
    advise_larger(file, of_file, advice);
    advise_sync(file, of_file, advice);
    advise_open(file, of_file, advice);
  }
  advise_balance(lateness, advice);
  return advice;
}

Lateness find_lateness(const std::vector<Meeting>& meetings) {
  std::map<int, Lateness> by_rank;
  double all_s = 0;
  for (const Meeting& meeting : meetings) {
    double waited_s = 0;
    for (const Arrival& one : meeting.arrivals)
      waited_s += static_cast<double>(meeting.waited_ns(one)) / 1e9;
    all_s += waited_s;
    Lateness& late = by_rank[meeting.last_in().rank];
    late.rank = meeting.last_in().rank;
    ++late.last_in;
    late.waited_s += waited_s;
  }
  Lateness worst;
  for (const auto& [rank, late] : by_rank)
    if (late.waited_s > worst.waited_s || worst.rank < 0) worst = late;
  worst.calls = meetings.size();
  worst.all_waited_s = all_s;
  return worst;
}

}  // namespace shima::tool
