// Hints: a user's settings for the access to a file.
//
// Keys and values are text, as in an MPI_Info; here they become typed fields, by one table in
// hints.cpp with each key's rule, text form and meaning. Keys with a reserved or customary meaning
// (MPI's, ROMIO's) keep it, Shima's own keys begin with "shima_". A field at its default means that
// Shima chooses. No function here reads the environment (see hint_sources.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/toggle.h"
#include "collective/plan/path.h"
#include "collective/plan/strategy.h"

namespace shima {

struct Hints {
  int cb_nodes = 0;                  // agents in a collective; 0: Shima chooses
  std::uint64_t cb_buffer_size = 0;  // bytes of an agent's window; 0: Shima chooses
  Toggle romio_cb_write = Toggle::automatic;
  Toggle romio_cb_read = Toggle::automatic;
  Toggle romio_ds_read = Toggle::automatic;
  std::uint64_t ind_rd_buffer_size = 0;  // bytes per step of a sieving read; 0: Shima chooses
  std::uint64_t striping_unit = 0;       // bytes; 0: not set
  int striping_factor = 0;               // 0: not set
  int start_iodevice = -1;               // -1: not set
  int file_perm = -1;                    // mode of a new file; -1: 0666
  bool direct_read = false;              // bypass the page cache
  bool direct_write = false;
  Toggle shima_combine = Toggle::automatic;
  Toggle shima_ring = Toggle::automatic;
  Toggle shima_map_writes = Toggle::automatic;
  Toggle shima_read_ahead = Toggle::automatic;
  Toggle shima_close_to_open = Toggle::automatic;
  std::optional<Strategy> shima_collective;  // of collective calls; nothing: Shima chooses
  std::optional<Path> shima_reach;  // how data moves in a collective; nothing: Shima chooses
  std::optional<RequestsTo> shima_requests;  // nothing: by the number of nodes
  int shima_subgroup = 0;  // the most members of a group; 0: all members of a node
  std::uint64_t shima_device_buffer_size = 0;  // bytes between a device and a file; 0: automatic
  std::string shima_targets;                   // names, in striping order, separated by commas
  std::string shima_regions;                   // "BEGIN:UNIT:TARGETS,..." (see striping.h)

  friend bool operator==(const Hints&, const Hints&) = default;
};

using HintSetting = std::pair<std::string, std::string>;

// A number of bytes; the suffixes K, M and G are powers of 1024.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

// Applies one hint. Returns whether the key is known. An invalid value is an error that names the
// rule, and leaves `hints` unchanged.
[[nodiscard]] Result<bool> apply(Hints& hints, std::string_view key, std::string_view value);

// All fields that are not at their default, as text for decode_hints.
[[nodiscard]] std::string encode_hints(const Hints& hints);
[[nodiscard]] Result<Hints> decode_hints(std::string_view text);

// The text of every hint in effect; numbers that were never set are left out. Each setting can be
// applied again.
[[nodiscard]] std::vector<HintSetting> effective(const Hints& hints);

}  // namespace shima
