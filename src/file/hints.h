// Hints: what a user may tell Shima about how to serve a file.
//
// Keys and values are text, as in an MPI_Info; here they become typed fields, by one table in
// hints.cpp that knows each key's rule, its text form and its meaning. Keys with a reserved or
// customary meaning (MPI's, ROMIO's) keep it, Shima's own begin with "shima_". A field at its
// default means that Shima chooses. Nothing here reads the environment (see hint_sources.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/toggle.h"
#include "collective/path.h"

namespace shima {

struct Hints {
  int cb_nodes = 0;                  // agents in a collective; 0: Shima chooses
  std::uint64_t cb_buffer_size = 0;  // bytes of one of an agent's windows; 0: Shima chooses
  Toggle romio_cb_write = Toggle::automatic;
  Toggle romio_cb_read = Toggle::automatic;
  Toggle romio_ds_read = Toggle::automatic;
  std::uint64_t ind_rd_buffer_size = 0;  // bytes a sieving read takes at once; 0: Shima chooses
  std::uint64_t striping_unit = 0;       // bytes; 0: not set
  int striping_factor = 0;               // 0: not set
  int start_iodevice = -1;               // -1: not set
  int file_perm = -1;                    // mode of a file that open creates; -1: 0666
  bool direct_read = false;              // past the page cache
  bool direct_write = false;
  Toggle shima_combine = Toggle::automatic;
  Toggle shima_ring = Toggle::automatic;
  Toggle shima_read_ahead = Toggle::automatic;
  Toggle shima_close_to_open = Toggle::automatic;
  std::optional<Path> shima_reach;  // how data moves in a collective; nothing: Shima chooses
  std::uint64_t shima_device_buffer_size = 0;  // bytes between a device and a file; 0: automatic
  std::string shima_targets;                   // names, in striping order, separated by commas
  std::string shima_regions;                   // "BEGIN:UNIT:TARGETS,..." (see striping.h)

  friend bool operator==(const Hints&, const Hints&) = default;
};

using HintSetting = std::pair<std::string, std::string>;

// A number of bytes; K, M and G count in powers of 1024.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

// Applies one hint. True: the key is known; false: it is not. A value that breaks the key's rule is
// an error that names the rule, and leaves `hints` as it was.
[[nodiscard]] Result<bool> apply(Hints& hints, std::string_view key, std::string_view value);

// All that is not at its default, as text that decode_hints makes the same hints of.
[[nodiscard]] std::string encode_hints(const Hints& hints);
[[nodiscard]] Result<Hints> decode_hints(std::string_view text);

// The text of every hint in effect; numbers that were never set and mean nothing are left out.
// Each setting can be applied again.
[[nodiscard]] std::vector<HintSetting> effective(const Hints& hints);

}  // namespace shima
