// File I/O through a delegatee: pread(2), pwrite(2) and fdatasync(2) on its descriptors.
#pragma once

#include "delegate/delegatee.h"
#include "delegate/requester.h"

namespace shima::delegate {

[[nodiscard]] Status offer_file_operations(Delegatee& delegatee);

// `file` is a descriptor of the delegatee. Returns the bytes moved: fewer than requested at the end
// of the file or of the disk, like the system calls.
[[nodiscard]] Result<std::int64_t> read_file(Requester& requester, int file,
                                             std::span<std::byte> data, std::int64_t offset);
[[nodiscard]] Result<std::int64_t> write_file(Requester& requester, int file,
                                              std::span<const std::byte> data, std::int64_t offset);
[[nodiscard]] Status sync_file(Requester& requester, int file);

// Single requests, so that several can be pending. A payload that does not fit one is an error.
[[nodiscard]] Request read_request(int file, std::span<std::byte> data, std::int64_t offset);
[[nodiscard]] Request write_request(int file, std::span<const std::byte> data, std::int64_t offset);

}  // namespace shima::delegate
