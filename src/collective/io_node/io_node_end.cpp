#include "collective/io_node/io_node_end.h"

#include <bit>
#include <cstring>

#include "collective/plan/plan.h"
#include "collective/window/window_message.h"

namespace shima {
namespace {

constexpr std::uint32_t most_participants = 1U << 20;

}  // namespace

MessageBuffer encode_end(CallEnd end, const Status& status) {
  std::string text;
  if (!status) {
    end.code = static_cast<std::uint32_t>(status.error().code);
    end.sys_errno = status.error().sys_errno;
    text = status.error().what.substr(0, most_end_bytes - sizeof end);
  }
  MessageBuffer message(sizeof end + text.size());
  std::span<std::byte> out = message.bytes();
  put_into(out, end);
  std::memcpy(out.data(), text.data(), text.size());
  return message;
}

Result<CallEnd> decode_end(const MessageBuffer& message, Status& status) {
  std::span<const std::byte> bytes = message.bytes();
  SHIMA_TRY_ASSIGN(const auto end, take_from<CallEnd>(bytes));
  if (end.code > static_cast<std::uint32_t>(Code::internal))
    return fail(Code::io, "a malformed message: no such error", EPROTO);
  if (end.code != 0)
    status =
        fail(static_cast<Code>(end.code),
             std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), end.sys_errno);
  return end;
}

bool is_sound(const DirectedCall& call) {
  const bool has_granule =
      std::has_single_bit(call.granule_bytes) && call.granule_bytes <= grid_bytes;
  return call.participants > 0 && call.participants <= most_participants && call.writes <= 1 &&
         call.window_bytes > 0 && call.window_bytes <= most_io_node_window_bytes &&
         call.window_bytes % grid_bytes == 0 && has_granule && call.range.begin.value >= 0 &&
         call.range.begin < call.range.end &&
         as_unsigned(call.range.begin.value) % call.granule_bytes == 0 &&
         as_unsigned(call.range.end.value) % call.granule_bytes == 0;
}

}  // namespace shima
