#include "group/node/node_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fault_point.h"
#include "base/unique_fd.h"
#include "group/liveness/liveness.h"
#include "ipc/process_vm.h"

namespace shima {
namespace {

constexpr std::size_t spare_slots = 64;  // for files that were just closed
constexpr unsigned look_again_us = 100;
constexpr unsigned looks_between_checks = 1000;  // checks of the other processes: every 100 ms

// The first offset at or after `bytes` that is aligned for a T.
template <class T>
std::size_t next_place(std::size_t bytes) {
  return (bytes + alignof(T) - 1) / alignof(T) * alignof(T);
}

std::size_t slots_of_chunk(std::size_t chunk) {
  return chunk == 0 ? 1 : std::size_t{1} << (chunk - 1);
}

void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value)) {
  }
}

constexpr std::int32_t unknown_session = 0;  // its first process is in another namespace

// sched(7), "The autogroup feature".
bool sessions_have_groups() {
  const UniqueFd setting(::open("/proc/sys/kernel/sched_autogroup_enabled", O_RDONLY | O_CLOEXEC));
  char value = '0';
  return setting && ::read(setting.get(), &value, 1) == 1 && value != '0';
}

std::unexpected<Error> given_up() {
  return fail(Code::peer_lost, "meeting the other members: the process of one has exited");
}

}  // namespace

Result<Rendezvous::Maxima> Rendezvous::arrive(Maxima mine, std::uint32_t member_count,
                                              const WaitHooks& hooks, WaitLength length,
                                              FunctionRef<void(Maxima&)> before_release) {
  const std::uint64_t before = generation.load(std::memory_order_acquire);
  if ((before & broken) != 0) return given_up();
  raise_to(first, mine.first);
  raise_to(second, mine.second);
  Maxima& result = released[(before + 1) % 2];
  const std::uint32_t here = arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (here == member_count) {
    fault_point(FaultPhase::release);
    result = {first.exchange(0), second.exchange(0)};
    before_release(result);
    arrived.store(0, std::memory_order_relaxed);
    std::uint64_t expected = before;
    if (!generation.compare_exchange_strong(expected, before + 1)) return given_up();
    event.post();
    return result;
  }
  if (here + 1 == member_count) gathered.post();
  fault_point(FaultPhase::arrive);
  SHIMA_TRY(wait_or_break(event, before, hooks, length,
                          [&] { return generation.load(std::memory_order_acquire) != before; }));
  // This meeting took place even if the next one is already broken.
  if (generation.load(std::memory_order_acquire) == (before | broken)) return given_up();
  return result;
}

Result<Rendezvous::Maxima> Rendezvous::gather(Maxima mine, std::uint32_t member_count,
                                              const WaitHooks& hooks) {
  const std::uint64_t before = generation.load(std::memory_order_acquire);
  if ((before & broken) != 0) return given_up();
  raise_to(first, mine.first);
  raise_to(second, mine.second);
  arrived.fetch_add(1, std::memory_order_acq_rel);
  fault_point(FaultPhase::arrive);
  SHIMA_TRY(wait_or_break(gathered, before, hooks, WaitLength::unknown, [&] {
    return arrived.load(std::memory_order_acquire) == member_count ||
           generation.load(std::memory_order_acquire) != before;
  }));
  if (generation.load(std::memory_order_acquire) != before) return given_up();
  return Maxima{first.load(), second.load()};
}

// Breaks the barrier if the wait fails; an error unless the meeting has ended otherwise meanwhile.
Status Rendezvous::wait_or_break(Event& on, std::uint64_t before, const WaitHooks& hooks,
                                 WaitLength length, FunctionRef<bool()> ready) {
  const Status waited = caught([&] { return wait_until(on, hooks, ready, length); });
  std::uint64_t now = before;
  if (waited || !generation.compare_exchange_strong(now, before | broken)) return {};
  event.post();
  gathered.post();
  return waited;
}

NodeSegment::Places NodeSegment::places(int member_count) {
  const auto members = static_cast<std::size_t>(member_count);
  Places at;
  at.peers = next_place<Peer>(sizeof(Header));
  at.slots = next_place<Slot>(at.peers + members * sizeof(Peer));
  at.members = next_place<SlotMember>(at.slots + slot_count * sizeof(Slot));
  at.end = at.members + members * sizeof(SlotMember);
  return at;
}

Result<SharedBuffer> NodeSegment::make(int member_count) {
  return SharedBuffer::make(places(member_count).end, "shima-node");
}

Result<std::shared_ptr<NodeSegment>> NodeSegment::attach(const SharedRef& ref, int member_count,
                                                         int index) {
  SHIMA_TRY_ASSIGN(Mapping mapping, map_shared(ref));
  return std::shared_ptr<NodeSegment>(new NodeSegment(std::move(mapping), member_count, index));
}

NodeSegment::NodeSegment(Mapping mapping, int member_count, int index)
    : mapping_(std::move(mapping)), member_count_(member_count), index_(index) {
  members_[0] =
      reinterpret_cast<SlotMember*>(mapping_.bytes().data() + places(member_count).members);
}

NodeSegment::Header& NodeSegment::header() const {
  return *reinterpret_cast<Header*>(mapping_.bytes().data());
}

NodeSegment::Peer& NodeSegment::peer(int index) const {
  return reinterpret_cast<Peer*>(mapping_.bytes().data() + places(member_count_).peers)[index];
}

Slot* NodeSegment::slots() const {
  return reinterpret_cast<Slot*>(mapping_.bytes().data() + places(member_count_).slots);
}

bool NodeSegment::has_members(const Slot* slot) const {
  return members_[static_cast<std::size_t>(std::bit_width(place_of(slot)))] != nullptr;
}

SlotMember& NodeSegment::member(const Slot* slot, int index) const {
  const std::size_t place = place_of(slot);
  SlotMember* const first = members_[static_cast<std::size_t>(std::bit_width(place))];
  return first[(place - std::bit_floor(place)) * static_cast<std::size_t>(member_count_) +
               static_cast<std::size_t>(index)];
}

Status NodeSegment::introduce(const WaitHooks& hooks) {
  allow_reach();
  std::uint64_t nonce = 0;
  if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)
    nonce = static_cast<std::uint64_t>(::getpid());
  nonce_ = nonce;
  Peer& me = peer(index_);
  me.process = ProcessIdentity::own();
  me.place = own_space_place();
  me.nonce_address = reinterpret_cast<std::uintptr_t>(&nonce_);
  me.nonce.store(nonce);
  me.cores = CpuMask::own();
  me.session = ::getsid(0);

  Rendezvous& meeting = header().introduction;
  const auto count = static_cast<std::uint32_t>(member_count_);
  SHIMA_TRY(meeting.arrive({}, count, hooks));
  bool one_session = true;
  for (int i = 0; i < member_count_; ++i) {
    cores_.add(peer(i).cores);
    if (peer(i).session != me.session || me.session == unknown_session) one_session = false;
  }
  one_group_ = one_session || !sessions_have_groups();
  const auto is_held = caught([&]() -> Result<bool> { return hold_all(); });
  SHIMA_TRY_ASSIGN(
      const Rendezvous::Maxima unreachable,
      meeting.arrive({reach_all() ? 0U : 1U, is_held.value_or(false) ? 0U : 1U}, count, hooks));
  one_space_ = unreachable.second == 0;
  can_pull_ = one_space_ || unreachable.first == 0;
  if (!one_space_) held_.release();
  return {};
}

void NodeSegment::use_all_cores() const { cores_.bind_thread(); }

bool NodeSegment::reach_all() const {
  for (int i = 0; i < member_count_; ++i) {
    const Peer& other = peer(i);
    if (i != index_ && !prove_reach(other.process.pid, other.nonce_address, other.nonce.load()))
      return false;
  }
  return true;
}

bool NodeSegment::hold_all() {
  for (int i = 0; i < member_count_; ++i) {
    const Peer& other = peer(i);
    if (!held_.hold(other.place, other.process.pid) ||
        *reinterpret_cast<const std::atomic<std::uint64_t>*>(other.nonce_address) !=
            other.nonce.load())
      return false;
  }
  return true;
}

Status NodeSegment::check_peer(int index) const {
  return index == index_ ? Status{} : check_alive(peer(index).process);
}

Status NodeSegment::check_peers() const {
  constexpr int most_checks = 64;
  SHIMA_TRY(check_lost(header().lost));
  for (int i = 0; i < std::min(member_count_, most_checks); ++i)
    SHIMA_TRY(check_peer(
        static_cast<int>(next_check_.fetch_add(1) % static_cast<unsigned>(member_count_))));
  return {};
}

// Fails if the holder's process has ended: it may have left the table in an invalid state.
Status NodeSegment::lock() {
  constexpr unsigned yields = 3;
  for (unsigned looks = 1;; ++looks) {
    std::uint32_t holder = 0;
    if (header().lock.compare_exchange_strong(holder, static_cast<std::uint32_t>(index_) + 1,
                                              std::memory_order_acquire))
      break;
    if (looks % looks_between_checks == 0) SHIMA_TRY(check_peer(static_cast<int>(holder) - 1));
    if (looks <= yields) {
      sched_yield();
    } else {
      ::usleep(look_again_us);
    }
  }
  fault_point(FaultPhase::lock);
  return {};
}
void NodeSegment::unlock() { header().lock.store(0, std::memory_order_release); }

// All members must decide identically whether there is room: by the number of files this one has
// open, not by the table, where slower members still hold slots that faster ones have left. Members
// leave slots without waiting for each other, and there are spare slots for some of them.
Result<Slot*> NodeSegment::enter(std::uint64_t key) {
  constexpr std::size_t most_entered = slot_count - spare_slots;
  if (entered_.fetch_add(1) >= most_entered) {
    entered_.fetch_sub(1);
    return fail(
        Code::no_memory,
        fmt::format("opening a file: {} files are open on this communicator already; close some",
                    most_entered));
  }
  for (unsigned looks = 1;; ++looks) {
    auto slot = find_slot(key);
    if (slot && *slot == nullptr && looks % looks_between_checks == 0)
      if (const Status alive = check_peers(); !alive) slot = std::unexpected(alive.error());
    if (!slot) entered_.fetch_sub(1);
    if (!slot || *slot != nullptr) return slot;
    ::usleep(look_again_us);
  }
}

Result<Slot*> NodeSegment::find_slot(std::uint64_t key) {
  SHIMA_TRY(lock());
  Header& table = header();
  const std::uint32_t used = table.used_slots.load(std::memory_order_relaxed);
  std::size_t place = slot_count;
  for (std::size_t i = 0; i < used; ++i) {
    if (table.keys[i] == key) {
      place = i;
      break;
    }
    if (table.keys[i] == 0 && place == slot_count) place = i;
  }
  if (place == slot_count && used < slot_count) {
    place = used;
    table.used_slots.store(used + 1, std::memory_order_relaxed);
  }
  if (place < slot_count) table.keys[place] = key;
  unlock();
  return place < slot_count ? slots() + place : nullptr;
}

void NodeSegment::leave(Slot* slot) {
  entered_.fetch_sub(1);
  const std::lock_guard hold(opening_);
  if (!lock()) return;  // no member can use the table any more
  if (slot->departed.fetch_add(1) + 1 == static_cast<std::uint32_t>(member_count_)) {
    slot->departed.store(0);
    slot->quit.store(0);
    for (auto& word : slot->shared_pointer) word.store(0);
    header().keys[place_of(slot)] = 0;
  }
  close_shared_chunks();
  unlock();
}

Status NodeSegment::open_members(const Slot* slot) {
  const auto chunk = static_cast<std::size_t>(std::bit_width(place_of(slot)));
  if (members_[chunk].load(std::memory_order_acquire) != nullptr) return {};
  const std::lock_guard hold(opening_);
  if (members_[chunk].load(std::memory_order_relaxed) != nullptr) return {};
  SHIMA_TRY(lock());
  const Status opened = caught([&] { return open_chunk(chunk); });
  unlock();
  return opened;
}

// Called with the table's lock held, so that one member creates the chunk.
Status NodeSegment::open_chunk(std::size_t chunk) {
  Chunk& shown = header().chunks[chunk];
  std::span<std::byte> bytes;
  if (shown.memory.kind == SharedRef::Kind::none) {
    const std::size_t members = slots_of_chunk(chunk) * static_cast<std::size_t>(member_count_);
    SHIMA_TRY_ASSIGN(made_chunks_[chunk],
                     SharedBuffer::make(members * sizeof(SlotMember), "shima-files"));
    shown.memory = made_chunks_[chunk].ref();
    bytes = made_chunks_[chunk].bytes();
  } else {
    SHIMA_TRY_ASSIGN(mapped_chunks_[chunk], map_shared(shown.memory));
    bytes = mapped_chunks_[chunk].bytes();
  }
  ++shown.mapped_count;
  members_[chunk].store(reinterpret_cast<SlotMember*>(bytes.data()), std::memory_order_release);
  return {};
}

// Closes descriptors of chunks that all members have mapped.
void NodeSegment::close_shared_chunks() {
  for (std::size_t i = 0; i < chunk_count; ++i)
    if (header().chunks[i].mapped_count == static_cast<std::uint32_t>(member_count_))
      made_chunks_[i].close_descriptor();
}

}  // namespace shima
