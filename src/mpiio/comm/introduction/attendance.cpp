#include "mpiio/comm/introduction/attendance.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/log.h"
#include "base/process/launcher.h"
#include "group/job_processes.h"
#include "mpiio/comm/introduction/answer_memory.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/private_comm.h"

namespace shima {
namespace {

using std::chrono::seconds;

constexpr const char* doing = "meeting the members of a communicator";
// The words that members send: none of them occurs in an MPI's own message.
constexpr std::uint64_t arrival_mark = 0x5348494d41434152;
constexpr std::uint64_t verdict_all_came = arrival_mark + 1;
constexpr std::uint64_t verdict_gave_up = arrival_mark + 2;

// Sends one word to every member and receives one from each. It is not an allgather, in which a
// missing rank would delay what others sent.
class Exchange {
 public:
  explicit Exchange(std::size_t size)
      : size_(size), memory_(sizeof(std::uint64_t) * (size + 1) + 3 * sizeof(int) * size) {}

  Status start(MPI_Comm comm, std::uint64_t mine) {
    std::byte* const memory = memory_.data();
    if (memory == nullptr) return fail(Code::no_memory, "meeting the members of a communicator");
    words_ = reinterpret_cast<std::uint64_t*>(memory);
    std::uint64_t* const sent = words_ + size_;
    int* const lens = reinterpret_cast<int*>(sent + 1);
    int* const nowhere = lens + size_;
    int* const places = nowhere + size_;
    *sent = mine;
    for (std::size_t i = 0; i < size_; ++i) {
      words_[i] = 0;
      lens[i] = sizeof(std::uint64_t);
      nowhere[i] = 0;
      places[i] = static_cast<int>(i * sizeof(std::uint64_t));
    }
    return checked(PMPI_Ialltoallv(sent, lens, nowhere, MPI_BYTE, words_, lens, places, MPI_BYTE,
                                   comm, &request_),
                   doing);
  }
  // Waits until all words have arrived, or until `check` fails.
  Status finish(const Peers& check) {
    Status done = caught([&] { return await(request_, doing, check); });
    if (!done) memory_.keep();
    return done;
  }
  // Returns at once; the words may be sent and received later.
  void abandon() { memory_.keep(); }

  [[nodiscard]] int size() const { return static_cast<int>(size_); }
  // The word of a member; 0 if it has not arrived. MPI may be writing it.
  [[nodiscard]] std::uint64_t word_of(int rank) const {
    return static_cast<const volatile std::uint64_t*>(words_)[rank];
  }

 private:
  std::size_t size_;
  AnswerMemory memory_;
  std::uint64_t* words_ = nullptr;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// The rank in MPI_COMM_WORLD of a member of `comm`; MPI_UNDEFINED for a rank of another job.
int rank_in_world(MPI_Comm comm, int rank) {
  if (!has_world()) return MPI_UNDEFINED;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int found = MPI_UNDEFINED;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, 1, &rank, world, &found);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return found;
}

// Finds missing members while an exchange of marks is pending.
class Watch {
 public:
  Watch(MPI_Comm comm, const Exchange& marks) : comm_(comm), marks_(marks) {}

  // If there is no memory, the check finds nothing and the wait continues.
  Status check() {
    const Status found = caught([this] { return check_missing(); });
    return found || found.error().code != Code::no_memory ? found : Status{};
  }

  [[nodiscard]] Status check_all_came() const {
    for (int rank = 0; rank < marks_.size(); ++rank)
      if (is_missing(rank))
        return fail(Code::peer_lost,
                    fmt::format("opening a file: rank {} of the communicator does not run under "
                                "Shima: it answered with a message of its own MPI",
                                rank));
    return {};
  }

 private:
  static constexpr seconds name_after{10};
  static constexpr seconds look_period{1};

  [[nodiscard]] bool is_missing(int rank) const { return marks_.word_of(rank) != arrival_mark; }

  Status check_missing() {
    const auto now = Clock::now();
    if (now >= name_at_ && !named_) {
      named_ = true;
      log_missing();
    }
    if (now < look_at_) return {};
    look_at_ = now + look_period;
    for (int rank = 0; rank < marks_.size(); ++rank)
      if (is_missing(rank)) SHIMA_TRY(check_process(rank));
    if (!limit_known_) {
      limit_known_ = true;
      limit_ = seconds_setting("SHIMA_OPEN_TIMEOUT", seconds(300));
    }
    return now < start_ + limit_ ? Status{} : check_late();
  }

  void log_missing() const {
    std::string ranks;
    for (int rank = 0; rank < marks_.size(); ++rank)
      if (is_missing(rank)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    log(LogLevel::warn,
        "opening a file: after {} s these ranks of the communicator are missing: {}",
        name_after.count(), ranks);
  }

  [[nodiscard]] RankProcess process_of(int rank) const {
    const int in_world = rank_in_world(comm_, rank);
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

  // The time limit has expired for missing ranks that are not known to run under Shima on this
  // node.
  [[nodiscard]] Status check_late() const {
    const auto of_other_job = [this](int rank) {
      return rank_in_world(comm_, rank) == MPI_UNDEFINED;
    };
    int others = 0;
    for (int rank = 0; rank < marks_.size(); ++rank)
      if (is_missing(rank) && of_other_job(rank)) ++others;
    const bool others_late = others != 0 && related_jobs_under_shima(others);
    for (int rank = 0; rank < marks_.size(); ++rank) {
      if (!is_missing(rank)) continue;
      if (of_other_job(rank) ? others_late : process_of(rank).under_shima == UnderShima::yes)
        continue;
      return fail(
          Code::timed_out,
          fmt::format("opening a file: rank {} of the communicator did not come within {} "
                      "s: it does not run under Shima, or it is late; set SHIMA_OPEN_TIMEOUT "
                      "to a larger number of seconds if it is late",
                      rank, limit_.count()));
    }
    return {};
  }

  MPI_Comm comm_;
  const Exchange& marks_;
  seconds limit_{0};
  bool limit_known_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point name_at_ = start_ + name_after;
  Clock::time_point look_at_ = start_ + look_period;
  bool named_ = false;
};

// Tells the other members how the exchange of marks ended, and collects their results.
Status compare_verdicts(MPI_Comm comm, Exchange& verdicts, const Status& mine) {
  SHIMA_TRY(verdicts.start(comm, mine ? verdict_all_came : verdict_gave_up));
  if (!mine) {
    verdicts.abandon();  // the others may arrive late, or never
    return mine;
  }
  const auto check = [&]() -> Status {
    for (int rank = 0; rank < verdicts.size(); ++rank)
      if (verdicts.word_of(rank) == verdict_gave_up)
        return fail_settled(Code::timed_out, 0, [rank] {
          return fmt::format(
              "opening a file: rank {} of the communicator has given up waiting for "
              "the others; its own message names the missing rank",
              rank);
        });
    return {};
  };
  SHIMA_TRY(verdicts.finish(check));
  return check();
}

// Whether every member is a rank of this process's job. Allocates nothing, so that no single rank
// fails here and takes another path.
bool all_in_world(MPI_Comm comm, int size) {
  for (int rank = 0; rank < size; ++rank)
    if (rank_in_world(comm, rank) == MPI_UNDEFINED) return false;
  return true;
}

// Whether the launcher started all members under Shima. The same on all members.
bool all_started_under_shima(MPI_Comm comm, int size) {
  const char* const whole_job = std::getenv("SHIMA_WHOLE_JOB");
  return size == 1 ||
         (whole_job != nullptr && std::strcmp(whole_job, "1") == 0 && all_in_world(comm, size));
}

}  // namespace

Status check_attendance(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  if (all_started_under_shima(comm, size)) return {};
  Exchange marks(static_cast<std::size_t>(size));
  Exchange verdicts(static_cast<std::size_t>(size));
  Watch watch(comm, marks);
  Status came = marks.start(comm, arrival_mark);
  if (came) came = marks.finish([&] { return watch.check(); });
  if (came) came = caught([&] { return watch.check_all_came(); });
  return compare_verdicts(comm, verdicts, came);
}

}  // namespace shima
