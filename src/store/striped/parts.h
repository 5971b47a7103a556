// The parts of a striped file: its subfiles, and the copies of its master file, on the targets.
//
// The name of a part contains the file's id: <id>.0, <id>.1, ... for subfiles, <id>.master for the
// copy that every target keeps, which is the master file and a line with its path. The functions
// here take no lock and record no intent; the callers do.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/master_file.h"
#include "store/striped/master_store.h"
#include "store/target/target.h"

namespace shima {

[[nodiscard]] std::string copy_name(const FileId& id);
[[nodiscard]] std::string record_name(const FileId& id);  // of an unfinished restripe

// Whether a name is a part's; the index of a subfile, nothing for other names.
inline constexpr std::size_t file_id_digits = 32;
[[nodiscard]] bool is_part_name(std::string_view name);
[[nodiscard]] std::optional<int> subfile_index(std::string_view part_name);

// The content of a copy of a master file.
struct MasterCopy {
  MasterFile master;
  std::string path;
  uid_t owner = 0;  // owner of the copy file
};
[[nodiscard]] std::string encode_copy(const MasterCopy& copy);
[[nodiscard]] Result<MasterCopy> decode_copy(std::string_view text);
// no_such_file if there is no copy.
[[nodiscard]] Result<MasterCopy> read_copy(const Target& target, const FileId& id);

// Creates all subfiles, empty, and the copies, on all targets at once; removes what it created if
// one of them fails.
[[nodiscard]] Status make_parts(const MasterFile& master, const std::string& path, mode_t mode,
                                const std::vector<Target>& targets);
// Each copy changes by a rename.
[[nodiscard]] Status write_copies(const MasterFile& master, const std::string& path, mode_t mode,
                                  const std::vector<Target>& targets);
// A part that does not exist is no error: an earlier, unfinished call may have removed it. On each
// target the copy is the last part to be removed.
[[nodiscard]] Status remove_parts(const MasterFile& master, const std::vector<Target>& targets);
[[nodiscard]] Status truncate_subfiles(const MasterFile& master, std::uint64_t size_bytes,
                                       const std::vector<Target>& targets);

// A part that a file has, by its layout.
struct Part {
  const Target* target;
  std::string name;

  [[nodiscard]] std::string path() const { return target->directory() + "/" + name; }
};
// The subfiles in order, then the copies.
[[nodiscard]] std::vector<Part> parts_of(const MasterFile& master,
                                         const std::vector<Target>& targets);

// What the targets say about the parts of a file.
struct PartsSeen {
  std::vector<Result<MasterCopy>> copies;      // in the order of the targets
  std::vector<Result<struct stat>> facts;      // in the order of parts_of()
  Result<std::string> record = std::string();  // of an unfinished restripe; no_such_file if none
};
enum class Look : std::uint8_t { copies, subfiles, parts, parts_and_record };
// Looks at the copies alone; at the facts of the subfiles alone; at both and the facts of the
// copies; and also at the record. All targets are asked at once; an error means that one of them
// cannot be used.
[[nodiscard]] Result<PartsSeen> look_at_parts(const MasterFile& master,
                                              const std::vector<Target>& targets, Look what);

}  // namespace shima
