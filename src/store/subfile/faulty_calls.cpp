// System calls that fail on purpose, so that tests can show the effect on every rank when one
// rank's disk is full, broken, or accepts fewer bytes than given.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/fault_point.h"
#include "store/subfile/posix_subfile.h"

namespace shima {
namespace {

struct Fault {
  enum class Call { write, read, sync, lock } call = Call::write;
  int sys_errno = 0;  // 0: move fewer bytes instead of failing
  std::uint64_t after_bytes = 0;
};

constexpr std::uint64_t short_limit_bytes = 1000;  // deliberately no multiple of a block or page

class FaultyCalls final : public FileSystemCalls {
 public:
  explicit FaultyCalls(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    return moved(
        Fault::Call::write, pieces,
        [&](const iovec* first, int n) { return FileSystemCalls::pwritev(fd, first, n, offset); },
        count);
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    return moved(
        Fault::Call::read, pieces,
        [&](const iovec* first, int n) { return FileSystemCalls::preadv(fd, first, n, offset); },
        count);
  }
  bool move_apart(int, std::span<const ApartRun>, bool, bool) override { return false; }
  std::unique_ptr<FileView> view(int fd, TargetRange range) override {
    return faults_.empty() ? FileSystemCalls::view(fd, range) : nullptr;
  }
  bool maps_writes(MappedWriter& writer, int fd) override {
    return faults_.empty() && FileSystemCalls::maps_writes(writer, fd);
  }
  bool write_mapped(MappedWriter& writer, int fd, std::span<const ApartRun> runs) override {
    return faults_.empty() && FileSystemCalls::write_mapped(writer, fd, runs);
  }
  int fsync(int fd) override { return fails(Fault::Call::sync) ? -1 : FileSystemCalls::fsync(fd); }
  int lock(int fd, struct flock& range) override {
    return fails(Fault::Call::lock) ? -1 : FileSystemCalls::lock(fd, range);
  }
  int try_lock(int fd, struct flock& range) override {
    return fails(Fault::Call::lock) ? -1 : FileSystemCalls::try_lock(fd, range);
  }

 private:
  // Sets errno if the call has a fault.
  bool fails(Fault::Call which) const {
    const auto fault = std::ranges::find(faults_, which, &Fault::call);
    if (fault == faults_.end()) return false;
    errno = fault->sys_errno;
    return true;
  }

  template <class Call>
  ssize_t moved(Fault::Call which, const iovec* pieces, Call call, int count) {
    for (const Fault& fault : faults_) {
      if (fault.call != which || bytes_.load() < fault.after_bytes) continue;
      if (fault.sys_errno != 0) {
        errno = fault.sys_errno;
        return -1;
      }
      const iovec part{pieces->iov_base, std::min<std::size_t>(pieces->iov_len, short_limit_bytes)};
      return counted(call(&part, 1));
    }
    return counted(call(pieces, count));
  }
  ssize_t counted(ssize_t n) {
    if (n > 0) bytes_ += static_cast<std::uint64_t>(n);
    return n;
  }

  std::vector<Fault> faults_;
  std::atomic<std::uint64_t> bytes_{0};
};

bool parse_outcome(std::string_view text, Fault& fault) {
  if (text == "short") return true;
  if (text == "ENOSPC") fault.sys_errno = ENOSPC;
  if (text == "EIO") fault.sys_errno = EIO;
  if (text == "EDQUOT") fault.sys_errno = EDQUOT;
  if (text == "ENOLCK") fault.sys_errno = ENOLCK;
  return fault.sys_errno != 0;
}

bool parse_fault(std::string_view text, Fault& fault) {
  const auto parts = split_fault(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return false;
  if (parts[0] == "write")
    fault.call = Fault::Call::write;
  else if (parts[0] == "read")
    fault.call = Fault::Call::read;
  else if (parts[0] == "sync")
    fault.call = Fault::Call::sync;
  else if (parts[0] == "lock")
    fault.call = Fault::Call::lock;
  else
    return false;
  if (!parse_outcome(parts[1], fault)) return false;
  if (parts.size() == 2) return true;
  constexpr std::string_view key = "after=";
  if (!parts[2].starts_with(key)) return false;
  const std::string_view number = parts[2].substr(key.size());
  const auto parsed =
      std::from_chars(number.data(), number.data() + number.size(), fault.after_bytes);
  return parsed.ec == std::errc{} && parsed.ptr == number.data() + number.size();
}

}  // namespace

Result<std::unique_ptr<FileSystemCalls>> make_faulty_calls(const std::string& spec) {
  std::vector<Fault> faults;
  for (const std::string_view part : split_fault(spec, ',')) {
    Fault fault;
    if (is_well_formed_signal(part)) continue;  // see base/fault_point.h
    if (is_signal(part))
      return fail(
          Code::bad_argument,
          fmt::format("SHIMA_FAULT: '{}' is not {}:PHASE:RANK[:NTH] with PHASE one of {}", part,
                      part.substr(0, part.find(':')), fmt::join(fault_phase_names, ", ")));
    if (!parse_fault(part, fault))
      return fail(
          Code::bad_argument,
          fmt::format(
              "SHIMA_FAULT: '{}' is none of kill:PHASE:RANK[:NTH], stop:PHASE:RANK[:NTH] and "
              "CALL:OUTCOME[:after=BYTES] with CALL write, read, sync or lock and OUTCOME short, "
              "ENOSPC, EIO, EDQUOT or "
              "ENOLCK",
              part));
    faults.push_back(fault);
  }
  return std::make_unique<FaultyCalls>(std::move(faults));
}

}  // namespace shima
