#include "pvas/root/server/group.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "pvas/root/loader/lazy_map.h"
#include "pvas/root/loader/load.h"
#include "pvas/root/server/group_keeper.h"
#include "pvas/root/server/outlive.h"
#include "pvas/shared/local_socket.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds time_to_join{30};
constexpr std::chrono::seconds time_to_end{2};
constexpr std::chrono::seconds time_to_answer{10};
constexpr std::chrono::milliseconds between_tries{2};

constexpr MemoryRange shared_data{commons_data_begin, commons_data_bytes};

// Binds a name; retries while another process holds it.
Result<UniqueFd> take_name(const std::string& name, Clock::duration limit, const char* refusal) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    auto socket = bind_local(name);
    if (socket || socket.error().code != Code::file_exists) return socket;
    if (Clock::now() > deadline) return fail(Code::file_exists, refusal);
    std::this_thread::sleep_for(between_tries);
  }
}

struct Met {
  Peer peer;
  UniqueFd file;
};

// Asks the root of another slice for the group's memfd; nothing if there is no such root.
Result<std::optional<Met>> meet(const std::string& group, int slice) {
  auto socket = connect_local(group_memory_name(group, slice));
  if (!socket && socket.error().code == Code::no_such_file) return std::nullopt;
  if (!socket) return std::unexpected(socket.error());
  const timeval patience{.tv_sec = time_to_answer.count(), .tv_usec = 0};
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Message question;
  question.word = Word::memory;
  auto sent = send_message(socket->get(), question);
  auto answer = sent ? receive_message(socket->get()) : std::unexpected(sent.error());
  if (!answer && answer.error().code == Code::peer_lost) return std::nullopt;  // it has just exited
  if (!answer) return std::unexpected(answer.error());
  if (answer->message.word != Word::memory || answer->files.size() != 1)
    return fail(Code::not_same, "a root of the group sent an unexpected message");
  const auto incarnation = static_cast<std::uint32_t>(answer->message.other);
  return Met{{std::move(*socket), slice, incarnation}, std::move(answer->files[0])};
}

// Sealed against resizing; other processes cannot open it by name.
Result<UniqueFd> make_file() {
  UniqueFd file(::memfd_create("shima-pvas", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::ftruncate(file.get(), static_cast<off_t>(commons_bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno(errno, "creating the memory that a group of spaces shares");
  return file;
}

Status map_shared(int file, MemoryRange where, std::uint64_t offset) {
  constexpr int flags = MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  void* const wanted = reinterpret_cast<void*>(where.begin);
  void* const got =
      ::mmap(wanted, where.size, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(offset));
  if (got == MAP_FAILED) return fail_errno(errno, "mapping the memory of a group of spaces");
  if (got != wanted)
    return fail(Code::unsupported_operation,
                "this kernel does not map memory at a requested address");
  // The range is large, and a core dump would include its untouched pages.
  ::madvise(wanted, where.size, MADV_DONTDUMP);
  return {};
}

Result<Commons*> map_head(int file, Slice slice, bool is_new) {
  SHIMA_TRY(map_shared(file, {commons_begin, commons_head_bytes}, 0));
  // Never constructed: all zeros, most of which are never touched.
  auto* const commons = reinterpret_cast<Commons*>(commons_begin);
  if (is_new) {
    commons->slices = slice.count;
    commons->magic = commons_magic;
  }
  if (commons->magic != commons_magic)
    return fail(Code::not_same, "the group's spaces run another version of Shima");
  if (commons->slices != slice.count)
    return fail(Code::bad_argument, "the group has " + std::to_string(commons->slices) +
                                        " slices and not " + std::to_string(slice.count));
  return commons;
}

// Reserves the other slices, so that no memory of this space is mapped at the partitions of
// another.
Status reserve_other_slices(const SpaceState& space_state, Slice slice) {
  const std::uint64_t bytes = region_bytes / static_cast<std::uint64_t>(slice.count);
  const std::uint64_t end = space_state.first_partition + bytes;
  if (slice.index > 0)
    SHIMA_TRY(map_pages(region_begin, space_state.first_partition - region_begin, PROT_NONE));
  if (slice.index + 1 < slice.count) SHIMA_TRY(map_pages(end, commons_begin - end, PROT_NONE));
  return {};
}

// Nothing if all of it is mapped at once.
Result<std::unique_ptr<LazyMap>> map_data(SpaceState& space_state, int file, bool eager) {
  if (!eager) {
    auto lazy = LazyMap::make(file, shared_data, commons_head_bytes);
    if (lazy) {
      SHIMA_TRY(outlive_root());
      space_state.sharing = Sharing::lazy;
      return std::make_unique<LazyMap>(std::move(*lazy));
    }
  }
  SHIMA_TRY(map_shared(file, shared_data, commons_head_bytes));
  space_state.sharing = Sharing::eager;
  return nullptr;
}

Result<std::vector<Met>> meet_others(const std::string& group, Slice slice) {
  std::vector<Met> others;
  for (int other = 0; other < max_slices; ++other) {
    if (other == slice.index) continue;
    SHIMA_TRY_ASSIGN(auto met, meet(group, other));
    if (met) others.push_back(std::move(*met));
  }
  return others;
}

// After this, other spaces know this one.
void enter(SpaceState& space_state, Slice slice, const std::vector<Met>& others) {
  Commons& commons = *space_state.commons;
  GroupSpace& own = commons.members[static_cast<std::size_t>(slice.index)];
  if (const std::uint32_t before = own.incarnation; before != 0)
    forget_member(commons, slice.index, before);
  space_state.incarnation = commons.last_incarnation.fetch_add(1) + 1;
  own.root_pid = ::getpid();
  own.incarnation = space_state.incarnation;
  Message message;
  message.word = Word::joined;
  message.value = slice.index;
  message.other = static_cast<std::int32_t>(space_state.incarnation);
  for (const Met& other : others) {
    const Status sent = send_message(other.peer.socket.get(), message);
    static_cast<void>(sent);  // the keeper detects a root that has exited
  }
}

}  // namespace

Status join_group(SpaceState& space_state, Slice slice, const std::string& group, bool eager) {
  // The lock is held by binding its name. A killed root holds its names until it has exited.
  SHIMA_TRY_ASSIGN(const UniqueFd lock, take_name(group_lock_name(group), time_to_join,
                                                  "another space does not finish joining"));
  SHIMA_TRY_ASSIGN(
      UniqueFd listener,
      take_name(
          group_memory_name(group, slice.index), time_to_end,
          "the group already has a space with this slice, and with another number of slices"));
  SHIMA_TRY_ASSIGN(std::vector<Met> others, meet_others(group, slice));
  UniqueFd file;
  if (others.empty()) {
    SHIMA_TRY_ASSIGN(file, make_file());
  } else {
    file = std::move(others.front().file);
  }
  SHIMA_TRY_ASSIGN(Commons* const commons, map_head(file.get(), slice, others.empty()));
  SHIMA_TRY(reserve_other_slices(space_state, slice));
  SHIMA_TRY_ASSIGN(auto lazy, map_data(space_state, file.get(), eager));
  space_state.commons = commons;
  SHIMA_TRY(listen_local(listener));
  enter(space_state, slice, others);
  std::vector<Peer> peers;
  for (Met& other : others) peers.push_back(std::move(other.peer));
  keep_group({.file = std::move(file),
              .listener = std::move(listener),
              .lazy = std::move(lazy),
              .peers = std::move(peers),
              .space_state = &space_state});
  return {};
}

}  // namespace shima::pvas
