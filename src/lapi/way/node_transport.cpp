#include "lapi/way/node_transport.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/process/cpu_mask.h"
#include "ipc/process_vm.h"

namespace shima::lapi {
namespace {

// Moves one piece with one call; the common case needs no lists.
bool copied_at_once(pid_t pid, Direction direction, const Piece& here, const Piece& there) {
  const iovec local{here.data(), here.len_bytes};
  const iovec remote{there.data(), there.len_bytes};
  const auto call = direction == Direction::read ? process_vm_readv : process_vm_writev;
  const ssize_t moved = call(pid, &local, 1, &remote, 1, 0);
  return moved >= 0 && static_cast<std::uint64_t>(moved) == here.len_bytes;
}

}  // namespace

NodeTransport::NodeTransport(const JobMemory& memory, int task, const NodeOptions& options)
    : memory_(memory),
      task_(task),
      options_(options),
      peers_(static_cast<std::size_t>(memory.tasks())) {
  for (int other = 0; other < memory.tasks(); ++other) {
    Peer& made = peer(other);
    made.mailbox = &memory.mailbox(other);
    made.to = &memory.ring(task, other);
    made.from = &memory.ring(other, task);
  }
}

Result<std::unique_ptr<NodeTransport>> NodeTransport::join(const JobMemory& memory, int task,
                                                           const NodeOptions& options) {
  std::unique_ptr<NodeTransport> made(new NodeTransport(memory, task, options));
  SHIMA_TRY(made->appear());
  return made;
}

Status NodeTransport::appear() {
  Mailbox& own = memory_.mailbox(task_);
  if (own.standing.load(std::memory_order_seq_cst) != 0)
    return fail(Code::not_same,
                fmt::format("process {} is task {} of this job already", own.process.pid, task_));
  if (::getrandom(&nonce_, sizeof nonce_, 0) != sizeof nonce_)
    return fail_errno(errno, "creating a nonce");
  own.process = ProcessIdentity::own();
  own.place = own_space_place();
  own.nonce = nonce_;
  own.nonce_address = reinterpret_cast<std::uint64_t>(&nonce_);
  own.bell.interrupts.store(1, std::memory_order_seq_cst);
  allow_reach();
  memory_.change(task_, Standing::running);
  return {};
}

NodeTransport::~NodeTransport() { leave(); }

void NodeTransport::leave() {
  stopping_ = true;
  look_again();
  if (watcher_.joinable()) watcher_.join();
  show_left();
}

void NodeTransport::show_left() {
  peer(task_).mailbox->core.store(0, std::memory_order_relaxed);
  if (memory_.mailbox(task_).standing.load() == static_cast<std::uint32_t>(Standing::running))
    memory_.change(task_, Standing::left);
}

void NodeTransport::give_up(int task, std::string_view what) {
  log(LogLevel::error, "LAPI: task {} {}; it is ignored from now", task, what);
  peer(task).broken = true;
  look_again();
}

bool NodeTransport::shares_core() {
  const auto own = static_cast<std::uint32_t>(::sched_getcpu()) + 1;
  std::atomic<std::uint32_t>& shown = peer(task_).mailbox->core;
  if (shown.load(std::memory_order_relaxed) != own) shown.store(own, std::memory_order_relaxed);
  return std::ranges::any_of(peers_, [&](const Peer& other) {
    return &other.mailbox->core != &shown &&
           other.mailbox->core.load(std::memory_order_relaxed) == own;
  });
}

// Only the task with the lowest number stays, so that two do not change places. The kernel moves
// the thread at once. Afterwards it may run where it could before; CPUs that are added later to all
// processes of its group (cpuset) are not added for it.
void NodeTransport::leave_shared_core() {
  const auto own = static_cast<std::uint32_t>(::sched_getcpu()) + 1;
  const CpuMask allowed = CpuMask::own();
  CpuMask free = allowed;
  bool must_leave = false;
  for (int task = 0; task < memory_.tasks(); ++task) {
    const std::uint32_t core = peer(task).mailbox->core.load(std::memory_order_relaxed);
    must_leave |= task < task_ && core == own;
    if (core != 0 && core <= CpuMask::most_cpus) free.remove(static_cast<int>(core) - 1);
  }
  if (!must_leave || free.count() == 0) return;
  free.bind_thread();
  allowed.bind_thread();
}

Standing NodeTransport::standing(int task) {
  const Peer& other = peer(task);
  const auto shown = static_cast<Standing>(other.mailbox->standing.load(std::memory_order_seq_cst));
  if (other.broken.load()) return Standing::lost;
  const bool lost = other.lost.load(std::memory_order_seq_cst);
  return lost && shown != Standing::left ? Standing::lost : shown;
}

std::size_t NodeTransport::push(int task, std::span<const iovec> pieces) {
  ByteRing& ring = *peer(task).to;
  const std::size_t sent = ring.write(pieces);
  // Full, or there has been room only for a part: then the caller tries the rest.
  if (sent == 0 && ring.ask_for_room()) return ring.write(pieces);
  return sent;
}

std::size_t NodeTransport::pull(int task, std::span<const iovec> pieces) {
  ByteRing& ring = *peer(task).from;
  const std::size_t taken = ring.read(pieces);
  if (taken > 0 && ring.take_request()) peer(task).mailbox->bell.ring();
  return taken;
}

Reach NodeTransport::reach(int task) {
  std::atomic<int>& known = peer(task).reach;
  if (const int value = known.load(std::memory_order_acquire); value >= 0)
    return static_cast<Reach>(value);
  if (standing(task) != Standing::running) return Reach::none;
  const std::lock_guard hold(finding_);
  const Reach found = std::min(find_reach(task), options_.most);
  known.store(static_cast<int>(found), std::memory_order_release);
  return found;
}

Reach NodeTransport::find_reach(int task) {
  const Mailbox& peer = memory_.mailbox(task);
  if (task == task_ || options_.same_process || held_.hold(peer.place, peer.process.pid))
    return Reach::pointer;
  return prove_reach(peer.process.pid, peer.nonce_address, peer.nonce) ? Reach::copy : Reach::none;
}

Status NodeTransport::copy(int task, Direction direction, std::span<const Piece> here,
                           std::span<const Piece> there) {
  const pid_t pid = memory_.mailbox(task).process.pid;
  if (here.size() == 1 && there.size() == 1 && here[0].len_bytes == there[0].len_bytes &&
      copied_at_once(pid, direction, here[0], there[0]))
    return {};
  RemoteTransfer transfer(pid, direction, false);  // local memory may not be mapped
  Status status;
  for_each_pair(here, there, [&](std::uint64_t local, std::uint64_t remote, std::uint64_t len) {
    if (status) status = transfer.add(local, remote, len);
  });
  if (!status) return status;
  return transfer.flush();
}

}  // namespace shima::lapi
