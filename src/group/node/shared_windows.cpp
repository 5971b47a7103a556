#include "group/node/shared_windows.h"

namespace shima {

void SharedWindows::reset() {
  if (segment_.index() == 0) {
    slot_->asked.store(0, std::memory_order_relaxed);
    slot_->asking_over.store(0, std::memory_order_relaxed);
  }
  for (const WindowRole role : {WindowRole::agent, WindowRole::master}) {
    ServerWindows& own = mine(role);
    for (WindowState& window : own.windows) {
      window.opened.store(0, std::memory_order_relaxed);
      window.missing.store(0, std::memory_order_relaxed);
    }
    own.closed.store(0, std::memory_order_relaxed);
  }
}

void SharedWindows::open(WindowRole role, int side, const WindowBytes& bytes,
                         std::span<const int> members) {
  WindowState& window = mine(role, side);
  // The serial is odd while the range changes, so that a late reader never combines two windows.
  window.opened.fetch_add(1, std::memory_order_seq_cst);
  window.agent.store(bytes.agent, std::memory_order_seq_cst);
  window.domain.store(bytes.domain, std::memory_order_seq_cst);
  window.begin.store(bytes.range.begin.value, std::memory_order_seq_cst);
  window.end.store(bytes.range.end.value, std::memory_order_seq_cst);
  window.spoiled.store(0, std::memory_order_relaxed);
  window.missing.store(static_cast<std::uint32_t>(members.size()), std::memory_order_seq_cst);
  window.opened.fetch_add(1, std::memory_order_seq_cst);
  WaiterBits which = 0;
  for (const int member : members) which |= bit_of(member);
  slot_->event.post(which);
}

bool SharedWindows::finished(WindowRole role, int side) const {
  return mine(role, side).missing.load(std::memory_order_acquire) == 0;
}

bool SharedWindows::spoiled(WindowRole role, int side) const {
  return mine(role, side).spoiled.load(std::memory_order_relaxed) != 0;
}

void SharedWindows::close(WindowRole role) {
  mine(role).closed.store(1, std::memory_order_release);
  slot_->event.post();
}

std::optional<OpenWindow> SharedWindows::look(WindowServer server, int side,
                                              std::uint32_t seen) const {
  const WindowState& window = windows_of(server).windows[static_cast<std::size_t>(side)];
  const std::uint32_t serial = window.opened.load(std::memory_order_seq_cst);
  if (serial == seen || serial % 2 == 1) return std::nullopt;
  const WindowBytes bytes{window.agent.load(std::memory_order_seq_cst),
                          window.domain.load(std::memory_order_seq_cst),
                          {{window.begin.load(std::memory_order_seq_cst)},
                           {window.end.load(std::memory_order_seq_cst)}}};
  if (window.opened.load(std::memory_order_seq_cst) != serial) return std::nullopt;
  return OpenWindow{server, side, serial, bytes};
}

bool SharedWindows::closed(WindowServer server) const {
  return windows_of(server).closed.load(std::memory_order_acquire) != 0;
}

Result<std::span<std::byte>> SharedWindows::memory(WindowServer server, BufferPart part) {
  return segment_.peer_buffers().get(windows_of(server).staging, part);
}

void SharedWindows::finish(const OpenWindow& window, bool copied) {
  WindowState& state = windows_of(window.server).windows[static_cast<std::size_t>(window.side)];
  if (!copied) state.spoiled.store(1, std::memory_order_relaxed);
  if (state.missing.fetch_sub(1, std::memory_order_acq_rel) == 1)
    slot_->event.post(bit_of(window.server.index));
}

}  // namespace shima
