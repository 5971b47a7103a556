// The master file: the text at a striped file's name, which describes where the file's bytes are
// stored.
//
// It is small, written whole, and does not change when data are written. It consists of lines of
// words; the last line is a checksum of all before it, which detects torn and edited files. Targets
// are named, never given as paths: the reader's own configuration maps a name to a directory, so
// that no master file can direct a reader to another place. Grammar and an example: docs/format.md.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layout/layout.h"

namespace shima {

// The common prefix of the names of a file's subfiles: 32 hexadecimal digits.
struct FileId {
  std::string hex;
  friend bool operator==(const FileId&, const FileId&) = default;
};

struct StripedRegion {
  FileOffset begin;
  std::uint64_t unit_bytes = 0;
  std::vector<std::string> targets;  // in striping order; repetitions are allowed
  friend bool operator==(const StripedRegion&, const StripedRegion&) = default;
};

// An unfinished operation on several subfiles; the next process that opens the file finishes it.
struct TruncateIntent {
  std::uint64_t size_bytes = 0;
  friend bool operator==(const TruncateIntent&, const TruncateIntent&) = default;
};
struct RemoveIntent {
  friend bool operator==(const RemoveIntent&, const RemoveIntent&) = default;
};
// The subfiles of `from`, which this file has replaced, are to be removed.
struct ReplaceIntent {
  FileId from;
  std::vector<std::string> targets;
  friend bool operator==(const ReplaceIntent&, const ReplaceIntent&) = default;
};
// The file moves from one path to another, and may replace a striped file there; both paths are
// absolute. It keeps the one of the two that it has when the intent is finished.
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

// A larger file is not a master file.
inline constexpr std::size_t largest_master_bytes = 512 * 1024;
inline constexpr std::string_view master_magic = "shima striped file, format ";

[[nodiscard]] inline bool looks_like_master(std::string_view text) {
  return text.starts_with(master_magic);
}

[[nodiscard]] std::string encode_master(const MasterFile& master);
// bad_file, with the line and the rule it breaks, for any text that encode_master does not produce,
// apart from comments and extra spaces between words.
[[nodiscard]] Result<MasterFile> decode_master(std::string_view text);

// The layout it describes; every result of decode_master has one.
[[nodiscard]] Result<Layout> layout_of(const MasterFile& master);

// Encodes a path as one word of printable characters, and decodes it; nothing if it is invalid.
[[nodiscard]] std::string encode_path(std::string_view path);
[[nodiscard]] std::optional<std::string> decode_path(std::string_view word);

// Names of targets: letters, digits, '_' and '-'.
[[nodiscard]] bool is_target_name(std::string_view name);
[[nodiscard]] bool is_file_id(std::string_view hex);

}  // namespace shima
