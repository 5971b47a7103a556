#include "mpiio/comm/introduction/attendance.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/process/launcher.h"
#include "group/job_processes.h"
#include "group/member_tree.h"
#include "mpiio/comm/introduction/answer_memory.h"
#include "mpiio/comm/introduction/pair_exchange.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/private_comm.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

using std::chrono::seconds;

constexpr const char* doing = "meeting the members of a communicator";
// The words that members send: none of them occurs in an MPI's own message. Those of failure name
// the rank that has failed or given up, and are passed on.
constexpr std::uint64_t came = 0x5348494d41434152;
constexpr std::uint64_t gave_up_mark = 0x5348494e;
constexpr std::uint64_t failed_mark = 0x5348494f;
constexpr std::uint64_t word_of(std::uint64_t mark, int rank) {
  return mark << 32 | static_cast<std::uint32_t>(rank);
}
constexpr bool is_failure(std::uint64_t word) {
  return word >> 32 == gave_up_mark || word >> 32 == failed_mark;
}

constexpr std::size_t most_exchanges = std::size_t{2} * 2 * 31;  // two passes, up and down

constexpr std::size_t len_bytes(std::size_t size) {
  return 2 * most_exchanges * sizeof(std::uint64_t) + PairExchange::memory_bytes(size);
}
static_assert(len_bytes(2500) <= AnswerMemory::reserve_bytes);

// The exchanges of both passes, of a word each: not an allgather, in which a missing rank would
// delay what others sent. All memory is taken before the first, so that a member that has it makes
// all of them.
class Exchanges {
 public:
  Exchanges(MPI_Comm comm, int size)
      : comm_(comm), size_(static_cast<std::size_t>(size)), memory_(len_bytes(size_)) {
    requests_.fill(MPI_REQUEST_NULL);
  }
  Exchanges(const Exchanges&) = delete;
  Exchanges& operator=(const Exchanges&) = delete;
  // The memory stays in use if an exchange is under way.
  ~Exchanges() {
    for (std::size_t i = 0; i < begun_; ++i)
      if (requests_[i] != MPI_REQUEST_NULL) is_kept_ = true;
    if (is_kept_) memory_.keep();
  }

  [[nodiscard]] Status begin() {
    if (!memory_.take_within(seconds(10))) return fail(Code::no_memory, doing);
    std::memset(memory_.data(), 0, len_bytes(size_));
    return {};
  }
  [[nodiscard]] Status start(const Partners& partners, std::uint64_t mine) {
    const std::size_t at = begun_++;
    std::uint64_t* const sent = words() + 2 * at;
    *sent = mine;
    PairExchange pairs(comm_, size_, {lens(), PairExchange::int_count(size_)});
    const Status started = checked(
        pairs.start(partners, {sent, sent + 1, sizeof(std::uint64_t)}, &requests_[at]), doing);
    if (!started) is_kept_ = true;
    return started;
  }
  // Waits for the word of the last exchange, until `check` fails. 0: it has brought none.
  [[nodiscard]] Result<std::uint64_t> finish(const Peers& check) {
    const std::size_t at = begun_ - 1;
    const Status done = caught([&] { return await(requests_[at], doing, check); });
    if (done) return words()[2 * at + 1];
    is_kept_ = true;
    return std::unexpected(done.error());
  }
  // Gives the MPI time to send what has been started.
  void send_all() {
    const auto until = Clock::now() + seconds(1);
    while (is_under_way() && Clock::now() < until) ::usleep(500);
  }

 private:
  [[nodiscard]] std::uint64_t* words() const {
    return reinterpret_cast<std::uint64_t*>(memory_.data());
  }
  [[nodiscard]] int* lens() const { return reinterpret_cast<int*>(words() + 2 * most_exchanges); }
  [[nodiscard]] bool is_under_way() {
    bool any = false;
    for (std::size_t i = 0; i < begun_; ++i) {
      int done = 0;
      if (SHIMA_REAL(Test)(&requests_[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) is_kept_ = true;
      any = any || done == 0;
    }
    return any;
  }

  MPI_Comm comm_;
  std::size_t size_;
  AnswerMemory memory_;
  std::array<MPI_Request, most_exchanges> requests_{};
  std::size_t begun_ = 0;
  bool is_kept_ = false;
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

// What a member awaits in an exchange.
struct Awaited {
  int from = 0;
  bool from_one = true;   // the word is of that member alone
  bool is_logged = true;  // that it is missing: one of all that await the end is enough
  int turn = 0;           // those of an earlier turn are to give up first
  int heard_begin = 0;    // members of which words have told: these, and this one
  int heard_count = 1;
};

// Looks for missing members while a word is awaited.
class Watch {
 public:
  // What stays in a pass.
  struct Pass {
    Clock::time_point start = Clock::now();
    std::set<int> under_shima;  // ranks in the world whose processes have been seen
  };

  Watch(MPI_Comm comm, int size, const Awaited& awaited, Pass& pass)
      : comm_(comm), size_(size), awaited_(awaited), pass_(pass) {}

  // If there is no memory, the check finds nothing and the wait continues.
  Status check() {
    const Status found = caught([this] { return check_missing(); });
    return found || found.error().code != Code::no_memory ? found : Status{};
  }

 private:
  static constexpr seconds name_after{10};
  static constexpr seconds look_period{1};

  Status check_missing() {
    const auto now = Clock::now();
    if (now >= name_at_ && awaited_.is_logged && !named_) {
      named_ = true;
      log(LogLevel::warn, "opening a file: after {} s rank {} of the communicator{} is missing",
          name_after.count(), awaited_.from, or_others());
    }
    if (now < look_at_) return {};
    look_at_ = now + look_period;
    SHIMA_TRY(check_processes());
    if (!limit_known_) {
      limit_ = seconds_setting("SHIMA_OPEN_TIMEOUT", seconds(300));
      limit_known_ = true;
    }
    return now < give_up_at() ? Status{} : check_late();
  }

  [[nodiscard]] const char* or_others() const {
    return awaited_.from_one ? "" : ", or another that it waits for,";
  }

  // The limit counts from the open, but the last of many late ranks has some time of its own. The
  // one that awaits the missing rank itself is to give up first: it can name it.
  [[nodiscard]] Clock::time_point give_up_at() const {
    constexpr seconds own_time(10);
    return std::max(pass_.start + limit_, start_ + std::min(limit_, own_time)) +
           2 * awaited_.turn * look_period;
  }

  // Any member without Shima is an error, also if another is only late.
  [[nodiscard]] Status check_processes() {
    std::map<int, int> members;  // by the rank in the world
    for (int i = awaited_.heard_count; i < size_; ++i) {
      const int rank = (awaited_.heard_begin + i) % size_;
      const int in_world = rank_in_world(comm_, rank);
      if (in_world != MPI_UNDEFINED) members.emplace(in_world, rank);
    }
    const auto stock = find_rank_without_shima(
        [&](int in_world) { return members.contains(in_world); }, pass_.under_shima);
    if (!stock) return {};
    return fail(Code::peer_lost,
                fmt::format("opening a file: rank {} of the communicator, process {}, does not "
                            "run under Shima; start all ranks with shima run or shima exec",
                            members.at(stock->rank), stock->pid));
  }

  // The time limit has expired for a rank, unless it is known to run under Shima on this node.
  [[nodiscard]] Status check_late() const {
    const int in_world = rank_in_world(comm_, awaited_.from);
    if (in_world == MPI_UNDEFINED ? related_jobs_under_shima(1)
                                  : find_rank_process(in_world).under_shima == UnderShima::yes)
      return {};
    return fail(Code::timed_out,
                fmt::format("opening a file: rank {} of the communicator{} did not come within {} "
                            "s: it does not run under Shima, or it is late; set SHIMA_OPEN_TIMEOUT "
                            "to a larger number of seconds if it is late",
                            awaited_.from, or_others(), limit_.count()));
  }

  MPI_Comm comm_;
  int size_;
  Awaited awaited_;
  Pass& pass_;
  seconds limit_{0};
  bool limit_known_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point name_at_ = start_ + name_after;
  Clock::time_point look_at_ = start_ + look_period;
  bool named_ = false;
};

Status status_of_word(std::uint64_t word, int from) {
  if (word == came) return {};
  if (!is_failure(word))
    return fail(Code::peer_lost,
                fmt::format("opening a file: rank {} of the communicator does not run under Shima: "
                            "it answered with a message of its own MPI",
                            from));
  return fail_settled(Code::timed_out, 0, [word] {
    return fmt::format(
        "opening a file: rank {} of the communicator has {}; its own message says why",
        static_cast<std::uint32_t>(word),
        word >> 32 == gave_up_mark ? "given up waiting for the others" : "failed");
  });
}

// A member's part. In each of two passes it hears the members below it in the tree, tells the one
// above it what it has heard, and hears from there how it ended for all.
class Attendance {
 public:
  Attendance(MPI_Comm comm, int size) : comm_(comm), size_(size), exchanges_(comm, size) {
    PMPI_Comm_rank(comm, &rank_);
  }

  [[nodiscard]] Status meet() {
    SHIMA_TRY(exchanges_.begin());
    // All come; then they learn whether one gave up before the last had come.
    pass([](Watch& watch) { return watch.check(); });
    pass([](Watch&) { return Status{}; });
    if (!outcome_) exchanges_.send_all();  // others wait for it
    return outcome_;
  }

 private:
  void pass(FunctionRef<Status(Watch&)> check) {
    const MemberTree tree(rank_, size_);
    const int levels = tree.levels();
    Watch::Pass whole;
    for (int turn = 0; turn < 2 * levels; ++turn) {
      const bool is_up = turn < levels;
      const int level = is_up ? turn : 2 * levels - 1 - turn;
      const Partners partners = is_up ? tree.up(level) : tree.down(level);
      const bool hears = partners.from != Partners::none;
      const int partner = hears ? partners.from : partners.to;
      const int heard = tree.subtree(rank_, level);
      Watch watch(
          comm_, size_,
          {.from = partner,
           .from_one = is_up && hears ? tree.subtree(partner, level) == 1 : heard + 1 == size_,
           .is_logged = is_up ? hears : rank_ == 1,
           .turn = turn,
           .heard_begin = rank_,
           .heard_count = heard},
          whole);
      const Status done = exchange(partners, [&] { return check(watch); });
      if (outcome_) outcome_ = done;
    }
  }

  // After a failure it only tells: the others may come late, or never.
  Status exchange(const Partners& partners, const Peers& check) {
    if (const Status started = exchanges_.start(partners, word_); !started) {
      if (word_ == came) word_ = word_of(failed_mark, rank_);
      return started;
    }
    if (!outcome_) return {};
    const auto word = exchanges_.finish(check);
    Status heard = status_of(word);
    if (word && partners.from != Partners::none)
      heard = caught([&] { return status_of_word(*word, partners.from); });
    if (word && is_failure(*word)) word_ = *word;
    if (!heard && word_ == came) word_ = word_of(gave_up_mark, rank_);
    return heard;
  }

  MPI_Comm comm_;
  int size_;
  int rank_ = 0;
  Exchanges exchanges_;
  std::uint64_t word_ = came;
  Status outcome_;
};

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
  return Attendance(comm, size).meet();
}

}  // namespace shima
