// A message that is arriving from one task.
#pragma once

#include <lapi.h>

#include <cstddef>
#include <vector>

#include "lapi/way/message.h"
#include "lapi/way/pieces.h"

namespace shima::lapi {

struct Arrival {
  enum class Stage : std::uint8_t { head, header, data };

  Stage stage = Stage::head;
  Message head;
  std::size_t got_bytes = 0;  // of the head or the header
  std::vector<std::byte> header;
  Pieces named;             // the memory that the message names
  bool is_refused = false;  // it names memory that this task does not have
  Pieces destination;       // of the data
  Walk walk;
  std::uint64_t left_bytes = 0;   // of the data
  std::vector<std::byte> packet;  // small data of an active message, before its handler is called
  // What the header handler has returned.
  compl_hndlr_t* completion = nullptr;
  void* user_info = nullptr;
  bool inline_completion = false;

  // Whether some of the message has come, and not all.
  [[nodiscard]] bool is_begun() const { return stage != Stage::head || got_bytes != 0; }
  void start_data(Pieces into) {
    destination = std::move(into);
    walk = Walk(destination.all());
    left_bytes = bytes_behind(head);
  }
  [[nodiscard]] std::size_t lens_bytes() const { return head.pieces * sizeof(ulong); }
  // The part of the header that the user has written.
  [[nodiscard]] std::byte* user_header() { return header.data() + lens_bytes(); }
  [[nodiscard]] uint user_header_bytes() const {
    return static_cast<uint>(header.size() - lens_bytes());
  }
};

}  // namespace shima::lapi
