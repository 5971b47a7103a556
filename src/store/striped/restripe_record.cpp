// The progress record of a restripe: a small file, replaced whole, beside the first old subfile.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "store/striped/belonging.h"
#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "store/subfile/file_steps.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

// The new master file, and a line "copied BYTES STAMP".
constexpr std::string_view record_key = "\ncopied ";

std::string encode_record(const UnfinishedRestripe& record) {
  return encode_master(record.goal) +
         fmt::format("copied {} {:x}\n", record.done.value, record.stamp);
}

std::optional<UnfinishedRestripe> decode_record(std::string_view text) {
  const std::size_t at = text.rfind(record_key);
  if (at == std::string_view::npos || !text.ends_with('\n')) return {};
  auto goal = decode_master(text.substr(0, at + 1));
  if (!goal) return {};
  UnfinishedRestripe record{*std::move(goal), {}, 0};
  const std::string_view line = text.substr(at + record_key.size());
  const std::size_t space = std::min(line.find(' '), line.size() - 1);
  const char* const begin = line.data();
  const char* const end = line.data() + line.size() - 1;  // the newline
  const auto [after_done, bad_done] = std::from_chars(begin, begin + space, record.done.value);
  if (bad_done != std::errc{} || after_done != begin + space || record.done.value < 0) return {};
  const char* const stamp = std::min(begin + space + 1, end);
  const auto [last, bad_stamp] = std::from_chars(stamp, end, record.stamp, 16);
  if (bad_stamp != std::errc{} || last != end) return {};
  return record;
}

}  // namespace

Result<Target> home_of_restripe_record(const MasterFile& master, const std::string& path) {
  return Target::open(master.targets().front(), path, Target::Purpose::use);
}

Status write_restripe_record(const Target& home, const MasterFile& source,
                             const UnfinishedRestripe& record) {
  return home.files().write_text(record_name(source.id), encode_record(record), 0600);
}

namespace {

Result<std::string> read_record(const MasterFile& master, const Target& home) {
  SHIMA_TRY_ASSIGN(const auto found,
                   home.files().read_text(record_name(master.id), 2 * largest_master_bytes));
  return found.text;
}

}  // namespace

Result<std::optional<UnfinishedRestripe>> unfinished_restripe(const MasterFile& master,
                                                              const std::string& path) {
  SHIMA_TRY_ASSIGN(const Target home, home_of_restripe_record(master, path));
  const auto record = read_record(master, home);
  if (!record && record.error().sys_errno == ENOENT) return std::nullopt;
  if (!record) return std::unexpected(record.error());
  return decode_record(*record);
}

Status drop_restripe(const MasterFile& master, const std::string& path) {
  SHIMA_TRY_ASSIGN(const Target home, home_of_restripe_record(master, path));
  return drop_restripe(master, path, home, read_record(master, home));
}

Status drop_restripe(const MasterFile& master, const std::string& path, const Target& home,
                     const Result<std::string>& record) {
  if (!record && record.error().sys_errno == ENOENT) return {};
  SHIMA_TRY(status_of(record));
  if (const auto found = decode_record(*record)) {
    SHIMA_TRY_ASSIGN(const auto targets,
                     open_targets(found->goal.targets(), path, Target::Purpose::use));
    SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(path, master));
    SHIMA_TRY(check_belonging(found->goal, claimant, targets));
    SHIMA_TRY(remove_parts(found->goal, targets));
  }
  return remove_if_there(home.files(), record_name(master.id));
}

}  // namespace shima
