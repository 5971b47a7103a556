// The messages between a client and an I/O node: requests and replies.
//
// A request is a head, runs of a subfile, words (names, each with its length), and data; a reply is
// a head, the text of an error, and data. Everything is bounded, and decoded only if its numbers
// agree with each other. Numbers are in the machine's own order, which the version tells.
#pragma once

#include <sys/stat.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/key_proof.h"
#include "store/subfile/target_files.h"

namespace shima::remote {

inline constexpr Spoken spoken{{'s', 'h', 'i', 'm', 'a', 'i', 'o', 'd'},
                               std::endian::native == std::endian::little ? 2U : 0x02000000U};

enum class Op : std::uint32_t {
  introduce = 1,  // words: the client's name
  status,         // reply: text
  // words: the target, then the name of a file
  // first: whether a directory that is no target yet becomes one; the name is that of the file
  // beside which it is, if any
  attach,
  examine,
  list,        // words: the target, the last name known; reply: words, the next names in order
  read_text,   // first: at most so many bytes; reply: value is the owner
  write_text,  // first: mode
  make,        // first: mode
  set_size,    // first: bytes
  remove,      // first: whether the file need not exist
  set_mode,    // first: mode
  is_being_written,  // reply: value
  sync_names,
  open,   // first: how (Opening); the file becomes the connection's
  lease,  // first: whether only one may have it; becomes the connection's
  // of the connection's file
  write,  // runs and their data
  read,   // runs; reply: the data up to the end of the file
  size,
  next_data,  // first: from; reply: value, or -1
  truncate,   // first: bytes
  preallocate,
  will_need,  // first: begin, second: end
  sync,
  try_lock,  // first: offset, second: bytes; flags: exclusive; reply: value
  unlock,
  facts,
  close,
  join,  // data: a DirectedCall; no reply, but messages in lanes until the call ends
  // of the connection's lease
  holds,  // reply: value
  lease_facts,
  end_lease,
  // words: a directory that the node serves, then a path in it
  examine_path,    // first: whether links are followed
  real_path,       // reply: the path without links
  list_paths,      // words: also the last name known; reply: words, pairs of Facts and a name
  read_master,     // reply: value: whether it is one; Facts and the text
  read_path,       // first: at most so many bytes
  create_text,     // first: mode
  replace_master,  // first: FileTree::Replacing
  write_path,      // first: mode
  remove_path,
  rename_path,     // words: also the new path
  link_path,       // words: also the new path
  make_directory,  // first: mode
  remove_directory,
  remove_own_directory,
  set_path_mode,  // first: mode
  check_writable,
  sync_path,
  sync_directory,  // of the path
  open_path,       // first: how (Opening), second: mode; the file becomes the connection's
  lock_directory,  // of the path; first: FileTree::IfUnused; reply: value: whether there is a lock
  admit_writers,
  unlock_directory,
  // words: a target, a part, and the target that it is linked into
  link_part,
  // words: as for a path or a part, and the times (encode_times)
  set_path_times,
  set_part_times,
  make_symlink,  // words: as for a path, and the text of the link
  read_symlink,  // words: as for a path; reply: the text
  lock_holder,   // of the connection's file; first: offset, second: bytes; reply: text
};
inline constexpr auto last_op = Op::lock_holder;

// Bits of Op::open.
struct Opening {
  static constexpr std::int64_t read = 1, write = 2, direct_read = 4, direct_write = 8, create = 16,
                                exclusive = 32;
};

// Bits of a request's flags.
struct Flag {
  static constexpr std::uint32_t exclusive = 1;
  // Further requests are under way, and the client waits for all replies: they may travel together.
  static constexpr std::uint32_t followed = 2;
  // If this request fails, or is not executed, the next one is not executed: it is `cancelled`.
  static constexpr std::uint32_t linked = 4;
};

inline constexpr std::size_t most_runs = 1024;
inline constexpr std::size_t most_word_bytes = 4096;
inline constexpr std::size_t most_words_bytes = std::size_t{3} * (most_word_bytes + 4);
inline constexpr std::size_t most_data_bytes = std::size_t{2} << 20;
inline constexpr std::size_t most_error_bytes = 8192;
// Larger transfers are cut into messages of this size, several of which are under way.
inline constexpr std::size_t part_bytes = std::size_t{1} << 20;

struct Run {
  std::int64_t offset = 0;
  std::uint64_t len_bytes = 0;
  friend bool operator==(const Run&, const Run&) = default;
};

struct RequestHead {
  std::uint32_t op = 0;
  std::uint32_t serial = 0;
  std::uint32_t flags = 0;
  std::uint32_t run_count = 0;
  std::uint64_t words_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::int64_t first = 0;
  std::int64_t second = 0;
};
static_assert(sizeof(RequestHead) == 48);

struct ReplyHead {
  std::uint32_t serial = 0;
  std::uint32_t code = 0;
  std::int32_t sys_errno = 0;
  std::uint32_t error_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::int64_t value = 0;
};
static_assert(sizeof(ReplyHead) == 32);

// A request without its data, which follow it.
struct Request {
  RequestHead head;
  std::vector<Run> runs;
  std::vector<std::string> words;

  [[nodiscard]] Op op() const { return static_cast<Op>(head.op); }
};

// Sets what follows from the runs and words; `data_bytes` are to follow.
[[nodiscard]] std::vector<std::byte> encode(Request request, std::uint64_t data_bytes);

// Whether the rest of such a request may be received: so many bytes without its data.
[[nodiscard]] Result<std::size_t> rest_of(const RequestHead& head);
// `rest`: as many bytes as rest_of() says.
[[nodiscard]] Result<Request> decode(const RequestHead& head, std::span<const std::byte> rest);
// How many bytes the runs have.
[[nodiscard]] std::uint64_t bytes_in(std::span<const Run> runs);

[[nodiscard]] Status check(const ReplyHead& head, std::uint32_t serial, std::size_t most_data);

[[nodiscard]] std::vector<std::byte> encode_words(std::span<const std::string> words);
[[nodiscard]] Result<std::vector<std::string>> decode_words(std::span<const std::byte> bytes);

[[nodiscard]] std::string encode_times(const FileTimes& times);
[[nodiscard]] Result<FileTimes> decode_times(std::string_view word);

// What stat(2) tells of a file.
struct Facts {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks = 0;
  std::int64_t read_s = 0, read_ns = 0, changed_s = 0, changed_ns = 0, status_s = 0, status_ns = 0;
  std::uint32_t mode = 0;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t links = 0;
};
static_assert(sizeof(Facts) == 96);
[[nodiscard]] Facts facts_of(const struct stat& facts);
[[nodiscard]] struct stat stat_of(const Facts& facts);

}  // namespace shima::remote
