// The master file: the text that stands at a striped file's name and says where its bytes lie.
//
// It is small, written whole, and does not change when data are written. Lines of words; the last
// line is a checksum of all before it, so that a torn or edited file is told apart from a good one.
// Targets are named, never given as paths: what a name means is decided by the reader's own
// configuration, so that no master file can send a reader anywhere else. Grammar and an example:
// docs/format.md. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layout/layout.h"

namespace shima {

// What all subfiles of a file are called by: 32 hexadecimal digits.
struct FileId {
  std::string hex;
  friend bool operator==(const FileId&, const FileId&) = default;
};

struct StripedRegion {
  FileOffset begin;
  std::uint64_t unit_bytes = 0;
  std::vector<std::string> targets;  // in striping order; one may come again
  friend bool operator==(const StripedRegion&, const StripedRegion&) = default;
};

// An operation on several subfiles that was begun; whoever opens the file next finishes it.
struct TruncateIntent {
  std::uint64_t size_bytes = 0;
  friend bool operator==(const TruncateIntent&, const TruncateIntent&) = default;
};
struct RemoveIntent {
  friend bool operator==(const RemoveIntent&, const RemoveIntent&) = default;
};
// The subfiles of `from`, whose place this file has taken, are to be removed.
struct ReplaceIntent {
  FileId from;
  std::vector<std::string> targets;
  friend bool operator==(const ReplaceIntent&, const ReplaceIntent&) = default;
};
// The file goes from one path to another, and may take the place of a striped file there; both
// paths are absolute. Whichever of the two the file has when this is finished, it keeps.
struct MoveIntent {
  std::string from;
  std::string to;
  std::optional<ReplaceIntent> replaced = {};
  friend bool operator==(const MoveIntent&, const MoveIntent&) = default;
};
using Intent = std::variant<TruncateIntent, RemoveIntent, ReplaceIntent, MoveIntent>;

struct MasterFile {
  FileId id;
  std::vector<StripedRegion> regions;
  std::optional<Intent> intent;
  friend bool operator==(const MasterFile&, const MasterFile&) = default;

  // One for each subfile, in the layout's order.
  [[nodiscard]] std::vector<std::string> targets() const;
};

// More is no master file.
inline constexpr std::size_t largest_master_bytes = 512 * 1024;
inline constexpr std::string_view master_magic = "shima striped file, format ";

[[nodiscard]] inline bool looks_like_master(std::string_view text) {
  return text.starts_with(master_magic);
}

[[nodiscard]] std::string encode_master(const MasterFile& master);
// bad_file, naming the line and the rule it breaks, for anything that encode_master does not write
// but comments and the order of words' spaces.
[[nodiscard]] Result<MasterFile> decode_master(std::string_view text);

// The layout it describes; whatever decode_master accepts has one.
[[nodiscard]] Result<Layout> layout_of(const MasterFile& master);

// A path as one word of printable characters, and back; nothing if it is not one.
[[nodiscard]] std::string encode_path(std::string_view path);
[[nodiscard]] std::optional<std::string> decode_path(std::string_view word);

// Names of targets: letters, digits, '_' and '-'.
[[nodiscard]] bool is_target_name(std::string_view name);
[[nodiscard]] bool is_file_id(std::string_view hex);

}  // namespace shima
