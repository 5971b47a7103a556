#include "net/message_buffer.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace shima {

// The memory of buffers that are not in use any more.
struct MessageSpares {
  struct Spare {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity_bytes = 0;
  };
  explicit MessageSpares(std::size_t most) { list.reserve(most); }

  std::mutex mutex;
  std::vector<Spare> list;  // as many as its capacity
};

void ReturnMessage::operator()(std::byte* bytes) const noexcept {
  std::unique_ptr<std::byte[]> memory(bytes);
  if (!spares) return;
  const std::scoped_lock lock(spares->mutex);
  if (spares->list.size() < spares->list.capacity())
    spares->list.push_back({std::move(memory), capacity_bytes});
}

MessageMemory::MessageMemory(std::size_t most_spares)
    : spares_(std::make_shared<MessageSpares>(most_spares)) {}

MessageBuffer MessageMemory::buffer(std::size_t len_bytes) {
  const auto is_enough = [&](const auto& spare) { return spare.capacity_bytes >= len_bytes; };
  MessageSpares::Spare found;
  {
    const std::scoped_lock lock(spares_->mutex);
    auto& list = spares_->list;
    if (const auto spare = std::ranges::find_if(list, is_enough); spare != list.end()) {
      found = std::move(*spare);
      list.erase(spare);
    } else if (!list.empty()) {
      list.pop_back();  // so that what is in use and what is not does not grow
    }
  }
  if (!found.bytes) found = {std::unique_ptr<std::byte[]>(new std::byte[len_bytes]), len_bytes};
  const std::size_t capacity_bytes = found.capacity_bytes;
  MessageBuffer buffer(MessageBuffer::Memory(found.bytes.release(), {spares_, capacity_bytes}),
                       capacity_bytes);
  buffer.set_len_bytes(len_bytes);
  return buffer;
}

}  // namespace shima
