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
#include <string>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/process/launcher.h"
#include "group/job_processes.h"
#include "mpiio/comm/introduction/answer_memory.h"
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

// The exchanges of all rounds. In each, a member sends one word to another directly, and receives
// one: not by an allgather, in which a missing rank would delay what others sent. All memory is
// taken before the first, so that a member that has it makes all of them.
class Exchanges {
 public:
  static constexpr std::size_t most = 2 * 31;

  Exchanges(MPI_Comm comm, int size)
      : comm_(comm), size_(static_cast<std::size_t>(size)), memory_(len_bytes()) {
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
    std::memset(memory_.data(), 0, len_bytes());
    ones()[size_ - 1] = sizeof(std::uint64_t);
    return {};
  }
  [[nodiscard]] Status start(int to, int from, std::uint64_t mine) {
    const std::size_t at = begun_++;
    std::uint64_t* const sent = words() + 2 * at;
    *sent = mine;
    // The only length that is not 0 is at the place of the one member.
    const int* const sent_lens = ones() + (size_ - 1 - static_cast<std::size_t>(to));
    const int* const lens = ones() + (size_ - 1 - static_cast<std::size_t>(from));
    const Status started =
        checked(PMPI_Ialltoallv(sent, sent_lens, nowhere(), MPI_BYTE, sent + 1, lens, nowhere(),
                                MPI_BYTE, comm_, &requests_[at]),
                doing);
    if (!started) is_kept_ = true;
    return started;
  }
  // Waits for the word of the last exchange, until `check` fails.
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
  [[nodiscard]] std::size_t len_bytes() const {
    return 2 * most * sizeof(std::uint64_t) + (3 * size_ - 1) * sizeof(int);
  }
  [[nodiscard]] std::uint64_t* words() const {
    return reinterpret_cast<std::uint64_t*>(memory_.data());
  }
  [[nodiscard]] int* ones() const { return reinterpret_cast<int*>(words() + 2 * most); }
  [[nodiscard]] int* nowhere() const { return ones() + 2 * size_ - 1; }
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
  std::array<MPI_Request, most> requests_{};
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

// What a member awaits in a round: a word of member `from` that tells of it and of members before
// it.
struct Awaited {
  int round = 0;
  int from = 0;
  int told = 1;     // members of which the word tells
  int unheard = 1;  // members of which no word has told yet, those of this word first
};

// Looks for missing members while a word is awaited.
class Watch {
 public:
  // What stays from round to round.
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
    // In a later round the rank may itself wait for another.
    if (awaited_.round == 0 && now >= name_at_ && !named_) {
      named_ = true;
      log(LogLevel::warn,
          "opening a file: after {} s rank {} of the communicator is missing, perhaps with others",
          name_after.count(), awaited_.from);
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

  // The limit counts from the open, but the last of many late ranks has some time of its own. Those
  // that await the missing rank itself are to give up first: they can name it.
  [[nodiscard]] Clock::time_point give_up_at() const {
    constexpr seconds own_time(10);
    return std::max(pass_.start + limit_, start_ + std::min(limit_, own_time)) +
           2 * awaited_.round * look_period;
  }

  // Any member without Shima is an error, also if another is only late.
  [[nodiscard]] Status check_processes() {
    std::map<int, int> members;  // by the rank in the world
    for (int i = 0; i < awaited_.unheard; ++i) {
      const int rank = (awaited_.from - i + size_) % size_;
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
    const auto before =
        awaited_.told == 1
            ? std::string()
            : fmt::format(", or one of the {} before it, which it waits for,", awaited_.told - 1);
    return fail(Code::timed_out,
                fmt::format("opening a file: rank {} of the communicator{} did not come within {} "
                            "s: it does not run under Shima, or it is late; set SHIMA_OPEN_TIMEOUT "
                            "to a larger number of seconds if it is late",
                            awaited_.from, before, limit_.count()));
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

// A member's part. In each of two passes it goes through the rounds: in round k it hears the member
// 2^k before it, and tells the one 2^k after it what it has heard so far.
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
    Watch::Pass whole;
    int round = 0;
    for (int distance = 1; distance < size_; distance *= 2, ++round) {
      const int unheard = size_ - distance;
      const Awaited awaited{.round = round,
                            .from = (rank_ + unheard) % size_,
                            .told = std::min(distance, unheard),
                            .unheard = unheard};
      Watch watch(comm_, size_, awaited, whole);
      const Status heard =
          hear((rank_ + distance) % size_, awaited.from, [&] { return check(watch); });
      if (outcome_) outcome_ = heard;
    }
  }

  // After a failure it only tells: the others may come late, or never.
  Status hear(int to, int from, const Peers& check) {
    if (const Status started = exchanges_.start(to, from, word_); !started) {
      if (word_ == came) word_ = word_of(failed_mark, rank_);
      return started;
    }
    if (!outcome_) return {};
    const auto word = exchanges_.finish(check);
    const Status heard = word ? caught([&] { return status_of_word(*word, from); })
                              : Status(std::unexpected(word.error()));
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
