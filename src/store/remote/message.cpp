#include "store/remote/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "store/subfile/directed_call.h"

namespace shima::remote {
namespace {

std::unexpected<Error> malformed(const char* what) {
  return fail(Code::io, std::string("a malformed message: ") + what, EPROTO);
}

template <class T>
void append(std::vector<std::byte>& to, std::span<const T> items) {
  const auto bytes = std::as_bytes(items);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

bool has_runs(Op op) { return op == Op::write || op == Op::read; }
bool has_data(Op op) {
  return op == Op::write || op == Op::write_text || op == Op::create_text ||
         op == Op::replace_master || op == Op::write_path || op == Op::join;
}

Status check_runs(const RequestHead& head, std::span<const Run> runs) {
  std::uint64_t total = 0;
  for (const Run& run : runs) {
    if (run.offset < 0 || run.len_bytes > most_data_bytes) return malformed("a run");
    if (run.offset > std::numeric_limits<std::int64_t>::max() - std::int64_t{most_data_bytes})
      return malformed("a run at the end of all offsets");
    total += run.len_bytes;  // at most most_runs * most_data_bytes
  }
  if (total > most_data_bytes) return malformed("runs of too many bytes");
  if (static_cast<Op>(head.op) == Op::write && total != head.data_bytes)
    return malformed("runs of another length than the data");
  return {};
}

}  // namespace

std::uint64_t bytes_in(std::span<const Run> runs) {
  std::uint64_t total = 0;
  for (const Run& run : runs) total += run.len_bytes;
  return total;
}

std::vector<std::byte> encode_words(std::span<const std::string> words) {
  std::vector<std::byte> bytes;
  for (const std::string& word : words) {
    const auto len = static_cast<std::uint32_t>(word.size());
    append(bytes, std::span(&len, 1));
    append(bytes, std::span<const char>(word));
  }
  return bytes;
}

Result<std::vector<std::string>> decode_words(std::span<const std::byte> bytes) {
  std::vector<std::string> words;
  while (!bytes.empty()) {
    std::uint32_t len = 0;
    if (bytes.size() < sizeof len) return malformed("half a length");
    std::memcpy(&len, bytes.data(), sizeof len);
    bytes = bytes.subspan(sizeof len);
    if (len > bytes.size() || len > most_word_bytes) return malformed("a long word");
    words.emplace_back(reinterpret_cast<const char*>(bytes.data()), len);
    bytes = bytes.subspan(len);
  }
  return words;
}

std::vector<std::byte> encode(Request request, std::uint64_t data_bytes) {
  const std::vector<std::byte> words = encode_words(request.words);
  request.head.run_count = static_cast<std::uint32_t>(request.runs.size());
  request.head.words_bytes = words.size();
  request.head.data_bytes = data_bytes;
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof request.head + request.runs.size() * sizeof(Run) + words.size());
  append(bytes, std::span<const RequestHead>(&request.head, 1));
  append(bytes, std::span<const Run>(request.runs));
  append(bytes, std::span<const std::byte>(words));
  return bytes;
}

Result<std::size_t> rest_of(const RequestHead& head) {
  if (head.op == 0 || head.op > static_cast<std::uint32_t>(last_op))
    return malformed("no such request");
  const auto op = static_cast<Op>(head.op);
  if (head.run_count > (has_runs(op) ? most_runs : 0)) return malformed("too many runs");
  if (head.words_bytes > most_words_bytes) return malformed("too many words");
  if (head.data_bytes > (has_data(op) ? most_data_bytes : 0)) return malformed("too many data");
  if (op == Op::join && head.data_bytes != sizeof(DirectedCall)) return malformed("no call");
  return head.run_count * sizeof(Run) + head.words_bytes;
}

Result<Request> decode(const RequestHead& head, std::span<const std::byte> rest) {
  SHIMA_TRY_ASSIGN(const std::size_t wanted, rest_of(head));
  if (rest.size() != wanted) return malformed("another length than its head says");
  Request request{head, std::vector<Run>(head.run_count), {}};
  const std::size_t runs_bytes = head.run_count * sizeof(Run);
  if (runs_bytes > 0) std::memcpy(request.runs.data(), rest.data(), runs_bytes);
  SHIMA_TRY(check_runs(head, request.runs));
  SHIMA_TRY_ASSIGN(request.words, decode_words(rest.subspan(runs_bytes)));
  return request;
}

Status check(const ReplyHead& head, std::uint32_t serial, std::size_t most_data) {
  if (head.serial != serial) return malformed("a reply to another request");
  if (head.code > static_cast<std::uint32_t>(Code::internal)) return malformed("no such error");
  if (head.error_bytes > most_error_bytes) return malformed("a long error");
  if (head.data_bytes > most_data) return malformed("more data than asked for");
  return {};
}

std::string encode_times(const FileTimes& times) {
  const std::array<std::int64_t, 4> numbers{times[0].tv_sec, times[0].tv_nsec, times[1].tv_sec,
                                            times[1].tv_nsec};
  return {reinterpret_cast<const char*>(numbers.data()), sizeof numbers};
}

Result<FileTimes> decode_times(std::string_view word) {
  std::array<std::int64_t, 4> numbers{};
  if (word.size() != sizeof numbers) return malformed("times");
  std::memcpy(numbers.data(), word.data(), sizeof numbers);
  return FileTimes{{{numbers[0], numbers[1]}, {numbers[2], numbers[3]}}};
}

Facts facts_of(const struct stat& facts) {
  return {.device = facts.st_dev,
          .inode = facts.st_ino,
          .size_bytes = static_cast<std::uint64_t>(facts.st_size),
          .blocks = static_cast<std::uint64_t>(facts.st_blocks),
          .read_s = facts.st_atim.tv_sec,
          .read_ns = facts.st_atim.tv_nsec,
          .changed_s = facts.st_mtim.tv_sec,
          .changed_ns = facts.st_mtim.tv_nsec,
          .status_s = facts.st_ctim.tv_sec,
          .status_ns = facts.st_ctim.tv_nsec,
          .mode = facts.st_mode,
          .owner = facts.st_uid,
          .group = facts.st_gid,
          .links = static_cast<std::uint32_t>(facts.st_nlink)};
}

struct stat stat_of(const Facts& facts) {
  struct stat told{};
  told.st_dev = facts.device;
  told.st_ino = facts.inode;
  told.st_size = static_cast<off_t>(facts.size_bytes);
  told.st_blocks = static_cast<blkcnt_t>(facts.blocks);
  told.st_atim = {facts.read_s, facts.read_ns};
  told.st_mtim = {facts.changed_s, facts.changed_ns};
  told.st_ctim = {facts.status_s, facts.status_ns};
  told.st_mode = facts.mode;
  told.st_uid = facts.owner;
  told.st_gid = facts.group;
  told.st_nlink = facts.links;
  return told;
}

}  // namespace shima::remote
