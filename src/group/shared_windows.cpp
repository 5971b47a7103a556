#include "group/shared_windows.h"

namespace shima {

void SharedWindows::reset() {
  AgentWindows& own = mine();
  for (WindowState& window : own.windows) {
    window.opened.store(0, std::memory_order_relaxed);
    window.missing.store(0, std::memory_order_relaxed);
  }
  own.closed.store(0, std::memory_order_relaxed);
}

void SharedWindows::open(int side, int domain, TargetRange range, std::uint32_t members) {
  WindowState& window = mine().windows[static_cast<std::size_t>(side)];
  // The serial is odd while the range changes, so that a late reader never combines two windows.
  window.opened.fetch_add(1, std::memory_order_seq_cst);
  window.domain.store(domain, std::memory_order_seq_cst);
  window.begin.store(range.begin.value, std::memory_order_seq_cst);
  window.end.store(range.end.value, std::memory_order_seq_cst);
  window.spoiled.store(0, std::memory_order_relaxed);
  window.missing.store(members, std::memory_order_seq_cst);
  window.opened.fetch_add(1, std::memory_order_seq_cst);
  slot_->event.post();
}

bool SharedWindows::finished(int side) const {
  return mine().windows[static_cast<std::size_t>(side)].missing.load(std::memory_order_acquire) ==
         0;
}

void SharedWindows::close() {
  mine().closed.store(1, std::memory_order_release);
  slot_->event.post();
}

std::optional<OpenWindow> SharedWindows::look(int agent, int side, std::uint32_t seen) const {
  const WindowState& window = windows_of(agent).windows[static_cast<std::size_t>(side)];
  const std::uint32_t serial = window.opened.load(std::memory_order_seq_cst);
  if (serial == seen || serial % 2 == 1) return std::nullopt;
  const int domain = window.domain.load(std::memory_order_seq_cst);
  const TargetRange range{{window.begin.load(std::memory_order_seq_cst)},
                          {window.end.load(std::memory_order_seq_cst)}};
  if (window.opened.load(std::memory_order_seq_cst) != serial) return std::nullopt;
  return OpenWindow{agent, side, serial, domain, range};
}

bool SharedWindows::closed(int agent) const {
  return windows_of(agent).closed.load(std::memory_order_acquire) != 0;
}

Result<std::span<std::byte>> SharedWindows::memory(int agent) {
  return segment_.peer_buffers().get(windows_of(agent).staging);
}

bool SharedWindows::spoiled(int side) const {
  return mine().windows[static_cast<std::size_t>(side)].spoiled.load(std::memory_order_relaxed) !=
         0;
}

void SharedWindows::finish(const OpenWindow& window, bool copied) {
  WindowState& state = windows_of(window.agent).windows[static_cast<std::size_t>(window.side)];
  if (!copied) state.spoiled.store(1, std::memory_order_relaxed);
  if (state.missing.fetch_sub(1, std::memory_order_acq_rel) == 1) slot_->event.post();
}

}  // namespace shima
