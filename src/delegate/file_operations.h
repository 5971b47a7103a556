// Reading and writing files through a delegatee: pread(2), pwrite(2) and fdatasync(2) on its
// descriptors.
#pragma once

#include "delegate/delegatee.h"
#include "delegate/requester.h"

namespace shima::delegate {

[[nodiscard]] Status offer_file_operations(Delegatee& delegatee);

// `file` is a descriptor of the delegatee's. How many bytes were moved: fewer than wanted at the
// end of the file or of the disk, as with the system calls.
[[nodiscard]] Result<std::int64_t> read_file(Requester& requester, int file,
                                             std::span<std::byte> data, std::int64_t offset);
[[nodiscard]] Result<std::int64_t> write_file(Requester& requester, int file,
                                              std::span<const std::byte> data, std::int64_t offset);
[[nodiscard]] Status sync_file(Requester& requester, int file);

// As requests of their own, to have several under way. What cannot travel in one is an error.
[[nodiscard]] Request read_request(int file, std::span<std::byte> data, std::int64_t offset);
[[nodiscard]] Request write_request(int file, std::span<const std::byte> data, std::int64_t offset);

}  // namespace shima::delegate
