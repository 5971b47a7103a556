#include "dsm/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "lapi/direct_rmw.h"

namespace shima::dsm {
namespace {

// Zeros that take no memory until they are changed.
Result<Mapping> map_zeros(std::size_t len_bytes) {
  if (len_bytes == 0) return Mapping();
  void* const made = ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    return fail(Code::no_memory,
                fmt::format("mapping {} bytes for another task's protection table", len_bytes),
                errno);
  return Mapping(static_cast<std::byte*>(made), len_bytes);
}

}  // namespace

Memory::Memory(Segment own, std::span<const SegmentRef> refs, Options options)
    : options_(options),
      own_(std::move(own)),
      peers_(refs.size()),
      ranges_(own_.view().size_bytes()) {
  for (int task = 0; task < tasks() && prepared_; ++task)
    prepared_ = take_in(task, refs[static_cast<std::size_t>(task)]);
}

Status Memory::take_in(int task, const SegmentRef& ref) {
  Peer& it = peer(task);
  it.size_bytes = ref.size_bytes;
  SegmentView view = own();
  if (task != options_.task) {
    if (!options_.apart) it.mapping = map_segment(ref);
    if (it.mapping.bytes().empty()) {
      SHIMA_TRY_ASSIGN(it.copy_of_table, map_zeros(ProtectionTable::table_bytes(ref.size_bytes)));
      it.table = ProtectionTable(it.copy_of_table.bytes().data());
      it.has_left = &it.never;
      return {};
    }
    view = SegmentView(it.mapping.bytes().data(), ref.size_bytes);
  }
  it.table = view.table();
  it.has_left = &view.head().has_left;
  if (options_.direct || task == options_.task) it.direct = view.data();
  return {};
}

std::unexpected<Error> Memory::refuse(Fault fault, int task, std::uint64_t offset,
                                      std::uint64_t len_bytes, Access access) const {
  const char* const what = access == Access::read ? "reading" : "writing";
  switch (fault) {
    case Fault::task:
      return fail(Code::bad_count,
                  fmt::format("{} memory of task {}: tasks are 0 to {}", what, task, tasks() - 1));
    case Fault::range:
      return fail(Code::bad_count,
                  fmt::format("{} {} bytes at offset {} of task {}: it has donated {} bytes", what,
                              len_bytes, offset, task, peer(task).size_bytes));
    case Fault::violation:
      return fail(
          Code::access_denied,
          fmt::format("{} {} bytes at offset {} of task {}: protection violation; its owner "
                      "does not permit it (dsm_protect)",
                      what, len_bytes, offset, task));
    default:
      return fail(Code::peer_lost,
                  fmt::format("{} memory of task {}: it has ended, or has left", what, task));
  }
}

Status Memory::read(int task, std::uint64_t offset, std::span<std::byte> into) {
  if (read_directly(task, offset, into)) return {};
  const Fault fault = find_fault(task, offset, into.size(), Access::read);
  if (fault != Fault::none) return refuse(fault, task, offset, into.size(), Access::read);
  return way_->read(task, offset, into);
}

Status Memory::write(int task, std::uint64_t offset, std::span<const std::byte> data,
                     bool complete) {
  if (write_directly(task, offset, data, complete)) return {};
  const Fault fault = find_fault(task, offset, data.size(), Access::write);
  if (fault != Fault::none) return refuse(fault, task, offset, data.size(), Access::write);
  return way_->write(task, offset, data, complete);
}

Result<std::uint64_t> Memory::rmw(int task, std::uint64_t offset, const Rmw& request) {
  const std::uint64_t len_bytes = request.size_bits / 8;
  const Fault fault = find_fault(task, offset, len_bytes, Access::write);
  if (fault != Fault::none) return refuse(fault, task, offset, len_bytes, Access::write);
  if (offset % len_bytes != 0)
    return fail(Code::bad_argument,
                fmt::format("an atomic operation at offset {}: it must be a multiple of {} bytes",
                            offset, len_bytes));
  std::byte* const direct = peer(task).direct;
  if (direct == nullptr) return way_->rmw(task, offset, request);
  return lapi::rmw_here(request.operation, request.size_bits,
                        reinterpret_cast<std::uint64_t>(direct + offset), request.input);
}

Status Memory::fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return way_ ? way_->fence() : Status{};
}

Result<std::uint64_t> Memory::size_of(int task) const {
  if (static_cast<std::size_t>(task) >= peers_.size())
    return refuse(Fault::task, task, 0, 0, Access::read);
  return peer(task).size_bytes;
}

Result<std::uint64_t> Memory::allocate(std::uint64_t size_bytes, Protection protection) {
  const std::lock_guard hold(owner_);
  SHIMA_TRY_ASSIGN(const Granules range, ranges_.allocate(size_bytes));
  const std::uint64_t offset = range.first * granule_bytes;
  if (const Status changed = change(range, protection); !changed) {
    std::ignore = ranges_.release(offset);
    return std::unexpected(changed.error());
  }
  return offset;
}

Status Memory::release(std::uint64_t offset) {
  const std::lock_guard hold(owner_);
  SHIMA_TRY_ASSIGN(const Granules range, ranges_.release(offset));
  return change(range, Protection::none);
}

Status Memory::protect(std::uint64_t offset, std::uint64_t len_bytes, Protection protection) {
  const std::uint64_t size = own().size_bytes();
  if (offset > size || len_bytes > size - offset)
    return fail(Code::bad_count, fmt::format("protecting {} bytes at offset {}: this task has "
                                             "donated {} bytes",
                                             len_bytes, offset, size));
  if (offset % granule_bytes != 0 || (len_bytes % granule_bytes != 0 && offset + len_bytes != size))
    return fail(Code::bad_argument,
                fmt::format("protecting {} bytes at offset {}: both must be multiples of {}",
                            len_bytes, offset, granule_bytes));
  const std::lock_guard hold(owner_);
  return change({offset / granule_bytes, granules_in(len_bytes)}, protection);
}

// The caller holds owner_. If a task could not be told, its copy is out of date until the next
// change of the range.
Status Memory::change(Granules range, Protection protection) {
  ProtectionTable table = own().table();
  if (!has_untold_ && table.is(range, protection)) return {};
  table.set(range, protection);
  if (!tell_) return {};
  const Status told = tell_(range, protection);
  if (!told) has_untold_ = true;
  return told;
}

bool Memory::note_change(int task, Granules range, Protection protection) {
  if (static_cast<std::size_t>(task) >= peers_.size()) return false;
  Peer& it = peer(task);
  const std::uint64_t all = granules_in(it.size_bytes);
  if (it.copy_of_table.bytes().empty() || range.first > all || range.count > all - range.first ||
      protection > Protection::none)
    return false;
  it.table.set(range, protection);
  return true;
}

}  // namespace shima::dsm
