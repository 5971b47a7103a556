// How a shared memory is opened and closed.
//
// Each step of opening ends in an exchange of all tasks, so that a task that fails makes the others
// fail too. The last step is a barrier: no task accesses memory before every task can serve and
// note changes.
#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include "capi/dsm/handle.h"
#include "capi/dsm/lapi_way.h"
#include "dsm/socket/socket_way.h"
#include "net/job_network.h"
#include "observe/board.h"
#include "observe/trace_log.h"
#include "shima/dsm.h"

namespace shima::capi {
namespace {

using shima::dsm::Memory;
using shima::dsm::Segment;
using shima::dsm::SegmentRef;
using shima::dsm::SocketOptions;
using shima::dsm::SocketWay;

constexpr int most_socket_tasks = 64;

// The open memories, so that a process that exits leaves them. Never destroyed.
struct Opened {
  std::mutex mutex;
  std::set<Memory*> all;
};
Opened& opened() {
  static auto* const made = [] {
    pthread_atfork(nullptr, nullptr, [] { detour::reasons = detour::forked_child; });
    std::atexit([] {
      if (is_forked_child()) return;
      const std::lock_guard hold(opened().mutex);
      for (Memory* const memory : opened().all) memory->show_left();
    });
    return new Opened;
  }();
  return *made;
}

// Which kernel runs; zero if it does not say.
using Kernel = std::array<std::uint64_t, 2>;
Kernel own_kernel() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  std::erase(text, '-');
  Kernel kernel{};
  for (std::size_t i = 0; i < kernel.size() && text.size() == 32; ++i)
    std::from_chars(text.data() + 16 * i, text.data() + 16 * i + 16, kernel[i], 16);
  return kernel;
}

// What a task tells the others first.
struct Introduction {
  std::int64_t way = 0;
  Kernel kernel{};
  SegmentRef segment;
};

Status check_same_way(std::span<const Introduction> all, int own_way) {
  for (std::size_t task = 0; task < all.size(); ++task)
    if (all[task].way != own_way)
      return fail(Code::not_same,
                  fmt::format("dsm_open: task {} has asked for way {}, this one for way {}; they "
                              "must be equal",
                              task, all[task].way, own_way));
  return {};
}

// Where this task serves: at the loopback address if all tasks are near, else where the tasks of
// other hosts reach it.
Result<std::vector<SocketAddress>> own_places(LapiJob& job, const Memory& memory) {
  const std::vector<OwnAddress> own = own_addresses();
  SHIMA_TRY_ASSIGN(const auto shown_by_all, job.gather(shown(own)));
  std::vector<NodeAddresses> others;
  for (int task = 0; task < memory.tasks(); ++task)
    if (!memory.is_near(task)) others.push_back(shown_by_all[static_cast<std::size_t>(task)]);
  std::uint64_t is_alone = others.empty() ? 1 : 0;
  SHIMA_TRY_ASSIGN(const auto alone, job.gather(is_alone));
  for (const std::uint64_t one : alone) is_alone &= one;
  std::vector<SocketAddress> places;
  if (is_alone == 0) places = listening_addresses(own, others);
  return places.empty() ? shared_with(own, {}) : places;
}

Result<std::unique_ptr<SocketWay>> serve_sockets(LapiJob& job, const Memory& memory, int way) {
  SHIMA_TRY_ASSIGN(const auto places, own_places(job, memory));
  SocketOptions options{.task = job.task(),
                        .spins = way != DSM_WAY_TCP,
                        .is_lost = [&job](int task) { return job.is_lost(task); }};
  const auto serve = way == DSM_WAY_UDP ? shima::dsm::serve_by_udp : shima::dsm::serve_by_tcp;
  auto served = serve(memory.own(), job.tasks(), std::move(options), places);
  SHIMA_TRY(job.agree(status_of(served), "opening sockets"));
  SHIMA_TRY_ASSIGN(const auto addresses, job.gather((*served)->address()));
  SHIMA_TRY(job.agree((*served)->connect(addresses), "connecting to the others"));
  return served;
}

Status prepare_way(::dsm& made, std::span<const Introduction> all, int way) {
  if (way == DSM_WAY_BEST || way == DSM_WAY_LAPI) {
    const Kernel here = own_kernel();
    std::vector<Target> targets;
    targets.reserve(all.size());
    for (const Introduction& one : all)
      targets.push_back({one.segment.data_address,
                         one.kernel == here || one.kernel == Kernel{} || here == Kernel{}});
    made.memory->set_way(make_lapi_way(*made.job, std::move(targets)));
    return {};
  }
  if (made.job->tasks() > most_socket_tasks)
    return fail(Code::bad_argument,
                fmt::format("dsm_open: the job has {} tasks, and TCP and UDP are for at most {}",
                            made.job->tasks(), most_socket_tasks));
  SHIMA_TRY_ASSIGN(auto served, serve_sockets(*made.job, *made.memory, way));
  made.memory->set_way(std::move(served));
  return {};
}

// This task accesses the memory no more.
void leave(::dsm& memory) {
  memory.memory->show_left();
  {
    const std::lock_guard hold(opened().mutex);
    opened().all.erase(memory.memory.get());
  }
  memory.job->inform(nullptr);
}

// The tasks that have not mapped this task's segment; this one may have mapped theirs.
Result<std::vector<int>> find_far_tasks(LapiJob& job, const Memory& memory) {
  constexpr int bits = 64;
  std::vector<int> far;
  for (int first = 0; first < memory.tasks(); first += bits) {
    std::uint64_t unmapped = 0;
    for (int i = 0; i < bits && first + i < memory.tasks(); ++i)
      if (!memory.is_near(first + i)) unmapped |= std::uint64_t{1} << i;
    SHIMA_TRY_ASSIGN(const auto all, job.gather(unmapped));
    const int own_bit = job.task() - first;
    if (own_bit < 0 || own_bit >= bits) continue;
    for (int task = 0; task < memory.tasks(); ++task)
      if ((all[static_cast<std::size_t>(task)] >> own_bit & 1) != 0) far.push_back(task);
  }
  return far;
}

Status prepare_changes(::dsm& made) {
  SHIMA_TRY_ASSIGN(const std::vector<int> far, find_far_tasks(*made.job, *made.memory));
  if (far.empty()) return {};
  made.memory->set_tell(
      [job = made.job.get(), far](dsm::Granules range, dsm::Protection protection) {
        return job->tell(far, range, protection);
      });
  return {};
}

}  // namespace

Result<std::unique_ptr<::dsm>> open_memory(const Status& arguments, std::uint64_t size_bytes,
                                           int way) {
  // For tests: as if each task had a host of its own.
  const bool apart = std::getenv("SHIMA_DSM_APART") != nullptr;
  auto made = std::make_unique<::dsm>();
  SHIMA_TRY_ASSIGN(made->job, LapiJob::join());
  show_board({.kind = BoardKind::dsm, .rank = made->job->task(), .tasks = made->job->tasks()});
  start_trace(made->job->task(), made->job->tasks());
  if (is_traced()) detour::reasons |= detour::traced;
  SHIMA_TRY(made->job->agree(arguments, "checking its arguments"));
  auto segment = Segment::make(size_bytes);
  SHIMA_TRY(made->job->agree(status_of(segment), "donating memory"));
  SHIMA_TRY_ASSIGN(const auto all,
                   made->job->gather(Introduction{way, own_kernel(), segment->ref()}));
  SHIMA_TRY(check_same_way(all, way));
  std::vector<SegmentRef> refs;
  refs.reserve(all.size());
  for (const Introduction& one : all) refs.push_back(one.segment);
  made->memory = std::make_unique<Memory>(
      *std::move(segment), refs, Memory::Options{made->job->task(), way == DSM_WAY_BEST, apart});
  SHIMA_TRY(made->job->agree(made->memory->prepared(), "mapping protection tables"));
  SHIMA_TRY(prepare_way(*made, all, way));
  SHIMA_TRY(prepare_changes(*made));
  {
    const std::lock_guard hold(opened().mutex);
    opened().all.insert(made->memory.get());
  }
  made->job->inform(made->memory.get());
  const Status met = made->job->meet();
  if (met) return made;
  leave(*made);
  return std::unexpected(met.error());
}

Status close_memory(std::unique_ptr<::dsm> memory) {
  Status fenced = memory->memory->fence();
  if (!memory->job->meet()) memory->job->await_closing();
  leave(*memory);
  return fenced;
}

}  // namespace shima::capi
