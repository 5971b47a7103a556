#include "mpiio/comm/attendance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/launcher.h"
#include "base/log.h"
#include "group/job_processes.h"
#include "mpiio/comm/await.h"
#include "mpiio/comm/private_comm.h"

namespace shima {
namespace {

using std::chrono::seconds;

constexpr const char* doing = "meeting the members of a communicator";
constexpr std::uint64_t arrival_mark =
    0x5348494d41434152;  // what an MPI's own message does not have

enum class Verdict : std::uint64_t {
  none = 0,
  all_came = arrival_mark + 1,
  gave_up = arrival_mark + 2
};

// Sends one value to every member and receives one of each. Not an allgather, in which a missing
// rank would keep back what others sent. Where the wait ends early, the MPI may still write to what
// is moved: then it is kept for ever.
template <class T>
struct Exchange {
  std::vector<T> all;
  T mine;
  std::vector<int> lens, nowhere, places;
  MPI_Request request = MPI_REQUEST_NULL;

  Exchange(std::size_t size, const T& value)
      : all(size), mine(value), lens(size, sizeof(T)), nowhere(size, 0), places(size) {
    std::exclusive_scan(lens.begin(), lens.end(), places.begin(), 0);
  }

  Status start(MPI_Comm comm) {
    return checked(PMPI_Ialltoallv(&mine, lens.data(), nowhere.data(), MPI_BYTE, all.data(),
                                   lens.data(), places.data(), MPI_BYTE, comm, &request),
                   doing);
  }
};

template <class T>
using Shared = std::unique_ptr<Exchange<T>>;

seconds time_limit() {
  constexpr seconds usual(300);
  const auto text = own_environment("SHIMA_OPEN_TIMEOUT");
  if (!text) return usual;
  char* end = nullptr;
  const long value = std::strtol(text->c_str(), &end, 10);
  if (end != text->c_str() && *end == '\0' && value > 0) return seconds(value);
  static const bool told = [&] {
    log(LogLevel::warn,
        "SHIMA_OPEN_TIMEOUT={}: not a positive number of seconds; write for example 300", *text);
    return true;
  }();
  static_cast<void>(told);
  return usual;
}

// Ranks in MPI_COMM_WORLD of the members of `comm`; MPI_UNDEFINED for those of other jobs.
std::vector<int> ranks_in_world(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  std::vector<int> members(static_cast<std::size_t>(size));
  std::vector<int> found(members.size(), MPI_UNDEFINED);
  if (!has_world()) return found;
  std::iota(members.begin(), members.end(), 0);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, members.data(), world, found.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return found;
}

// Finds missing members while an exchange of marks is pending.
class Watch {
 public:
  Watch(MPI_Comm comm, const std::vector<std::uint64_t>& marks)
      : marks_(marks), in_world_(ranks_in_world(comm)) {}

  Status check() {
    const auto now = Clock::now();
    const std::vector<int> missing = absent();
    if (now >= name_at_ && !named_) {
      named_ = true;
      log(LogLevel::warn,
          "opening a file: after {} s these ranks of the communicator are missing: {}",
          name_after.count(), fmt::join(missing, ", "));
    }
    if (now < look_at_) return {};
    look_at_ = now + look_period;
    for (const int rank : missing) SHIMA_TRY(check_process(rank));
    return now < give_up_at_ ? Status{} : check_late(missing);
  }

  [[nodiscard]] Status check_all_came() const {
    const std::vector<int> missing = absent();
    if (missing.empty()) return {};
    return fail(Code::peer_lost,
                fmt::format("opening a file: rank {} of the communicator does not run under Shima: "
                            "it answered with a message of its own MPI",
                            missing.front()));
  }

 private:
  static constexpr seconds name_after{10};
  static constexpr seconds look_period{1};

  [[nodiscard]] std::vector<int> absent() const {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < marks_.size(); ++i)
      if (*static_cast<const volatile std::uint64_t*>(&marks_[i]) != arrival_mark)
        ranks.push_back(static_cast<int>(i));
    return ranks;
  }

  [[nodiscard]] RankProcess process_of(int rank) const {
    const int in_world = in_world_[static_cast<std::size_t>(rank)];
    return in_world == MPI_UNDEFINED ? RankProcess{} : find_rank_process(in_world);
  }

  [[nodiscard]] Status check_process(int rank) const {
    const RankProcess process = process_of(rank);
    if (process.under_shima != UnderShima::no) return {};
    return fail(Code::peer_lost,
                fmt::format("opening a file: rank {} of the communicator, process {}, does not "
                            "run under Shima; start all ranks with shima run or shima exec",
                            rank, process.pid));
  }

  // Time is up for those that are not seen to run under Shima here.
  [[nodiscard]] Status check_late(const std::vector<int>& missing) const {
    const auto of_other_jobs = [this](int rank) {
      return in_world_[static_cast<std::size_t>(rank)] == MPI_UNDEFINED;
    };
    const auto others = static_cast<int>(std::ranges::count_if(missing, of_other_jobs));
    const bool others_late = others != 0 && related_jobs_under_shima(others);
    for (const int rank : missing) {
      if (of_other_jobs(rank) ? others_late : process_of(rank).under_shima == UnderShima::yes)
        continue;
      return fail(Code::timed_out,
                  fmt::format("opening a file: rank {} of the communicator did not come within {} "
                              "s: it does not run under Shima, or it is late; SHIMA_OPEN_TIMEOUT "
                              "sets the seconds",
                              rank, limit_.count()));
    }
    return {};
  }

  const std::vector<std::uint64_t>& marks_;
  std::vector<int> in_world_;
  seconds limit_ = time_limit();
  Clock::time_point start_ = Clock::now();
  Clock::time_point name_at_ = start_ + name_after;
  Clock::time_point look_at_ = start_ + look_period;
  Clock::time_point give_up_at_ = start_ + limit_;
  bool named_ = false;
};

// Waits for `exchange`, until `check` fails; then the exchange is kept for ever.
template <class T>
Status finish(Shared<T>& exchange, const Peers& check) {
  Status done = await(exchange->request, doing, check);
  if (!done) std::ignore = exchange.release();
  return done;
}

// Tells the other members how the exchange of marks ended, and collects their results.
Status compare_verdicts(MPI_Comm comm, std::size_t size, const Status& mine) {
  auto verdicts =
      std::make_unique<Exchange<Verdict>>(size, mine ? Verdict::all_came : Verdict::gave_up);
  SHIMA_TRY(verdicts->start(comm));
  if (!mine) {
    std::ignore = verdicts.release();  // nobody knows when the others come
    return mine;
  }
  const Exchange<Verdict>& seen = *verdicts;
  const auto check = [&]() -> Status {
    const auto who = std::ranges::find(seen.all, Verdict::gave_up);
    if (who == seen.all.end()) return {};
    return fail(Code::timed_out,
                fmt::format("opening a file: rank {} of the communicator has given up waiting for "
                            "the others",
                            who - seen.all.begin()));
  };
  SHIMA_TRY(finish(verdicts, check));
  return check();
}

// Whether every member is a rank of this process's job. Allocates nothing, so that no rank alone
// takes another way.
bool all_in_world(MPI_Comm comm, int size) {
  if (!has_world()) return false;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int in_world = 0;
  for (int rank = 0; rank < size && in_world != MPI_UNDEFINED; ++rank)
    PMPI_Group_translate_ranks(group, 1, &rank, world, &in_world);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return in_world != MPI_UNDEFINED;
}

// Whether the launcher started all members under Shima. The same on all members.
bool all_started_under_shima(MPI_Comm comm, int size) {
  return size == 1 || (own_environment("SHIMA_WHOLE_JOB") == "1" && all_in_world(comm, size));
}

}  // namespace

Status check_attendance(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  if (all_started_under_shima(comm, size)) return {};
  const auto count = static_cast<std::size_t>(size);
  auto marks = std::make_unique<Exchange<std::uint64_t>>(count, arrival_mark);
  Exchange<std::uint64_t>& seen = *marks;  // outlives an exchange that is given up
  Watch watch(comm, seen.all);
  Status came = marks->start(comm);
  if (came) came = finish(marks, [&] { return watch.check(); });
  if (came) came = watch.check_all_came();
  return compare_verdicts(comm, count, came);
}

}  // namespace shima
