#include "delegate/file_operations.h"

#include <unistd.h>

#include <cerrno>

namespace shima::delegate {
namespace {

// Runs a system call, again if it was interrupted.
template <class Call>
Result<std::optional<std::int64_t>> answer_of(const char* what, Call call) {
  while (true) {
    const std::int64_t said = call();
    if (said >= 0) return said;
    if (errno != EINTR) return fail_errno(errno, what);
  }
}

int file_of(const ReceivedRequest& job) { return static_cast<int>(job.arguments[0]); }

// Uses one request, or several if the memory is not reachable; a short one ends the series.
Result<std::int64_t> in_requests(Requester& requester, Request request) {
  const auto all = request.payload;
  std::int64_t moved = 0;
  do {
    const auto rest = all.subspan(static_cast<std::size_t>(moved));
    request.payload = rest.first(requester.most_at_once(rest));
    const auto now = requester.call(request);
    if (!now && moved == 0) return now;
    if (now) moved += *now;
    // One system call moves less than 2 GiB, and nothing at the end of a file or disk.
    if (!now || *now <= 0) break;
    request.arguments[1] += *now;
  } while (static_cast<std::size_t>(moved) < all.size());
  return moved;
}

}  // namespace

Status offer_file_operations(Delegatee& delegatee) {
  SHIMA_TRY(delegatee.offer(operation_file_read, [](const ReceivedRequest& job) {
    return answer_of("reading for a requester", [&] {
      return ::pread(file_of(job), job.payload.data(), job.payload.size(), job.arguments[1]);
    });
  }));
  SHIMA_TRY(delegatee.offer(operation_file_write, [](const ReceivedRequest& job) {
    return answer_of("writing for a requester", [&] {
      return ::pwrite(file_of(job), job.payload.data(), job.payload.size(), job.arguments[1]);
    });
  }));
  return delegatee.offer(operation_file_sync, [](const ReceivedRequest& job) {
    return answer_of("syncing for a requester", [&] { return ::fdatasync(file_of(job)); });
  });
}

Request read_request(int file, std::span<std::byte> data, std::int64_t offset) {
  return {operation_file_read, {file, offset, 0}, data, PayloadDirection::from_delegatee};
}

Request write_request(int file, std::span<const std::byte> data, std::int64_t offset) {
  // The payload of a request to the delegatee is only read.
  return {operation_file_write,
          {file, offset, 0},
          {const_cast<std::byte*>(data.data()), data.size()},
          PayloadDirection::to_delegatee};
}

Result<std::int64_t> read_file(Requester& requester, int file, std::span<std::byte> data,
                               std::int64_t offset) {
  return in_requests(requester, read_request(file, data, offset));
}

Result<std::int64_t> write_file(Requester& requester, int file, std::span<const std::byte> data,
                                std::int64_t offset) {
  return in_requests(requester, write_request(file, data, offset));
}

Status sync_file(Requester& requester, int file) {
  const auto answer = requester.call({operation_file_sync, {file, 0, 0}, {}, {}});
  return answer ? Status{} : std::unexpected(answer.error());
}

}  // namespace shima::delegate
