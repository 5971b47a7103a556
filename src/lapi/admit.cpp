// What an arriving message names: checked before anything of it is done.
//
// A message that no task sends is malformed, and its sender is treated as lost. One that names
// memory which this task does not have is refused: that is an error of the program at the origin,
// which hears of it if it waits for the operation.
#include <cstring>

#include "base/log.h"
#include "lapi/engine.h"

namespace shima::lapi {
namespace {

static_assert(sizeof(Piece) == piece_bytes && sizeof(ulong) == sizeof(std::uint64_t));

bool add(std::uint64_t& total, std::uint64_t more) {
  return !__builtin_add_overflow(total, more, &total);
}

// The pieces that the header of a put or get lists, or its one address. False if they have not
// exactly `len_bytes`.
bool read_pieces(const Arrival& arrival, std::uint64_t len_bytes, Pieces& pieces) {
  const Message& head = arrival.head;
  if (head.pieces == 0) {
    pieces = Pieces(head.address, len_bytes);
    return true;
  }
  std::vector<Piece> many(head.pieces);
  std::memcpy(many.data(), arrival.header.data(), arrival.header.size());
  std::uint64_t total = 0;
  for (const Piece& piece : many)
    if (!add(total, piece.len_bytes)) return false;
  pieces = Pieces(std::move(many));
  return total == len_bytes;
}

// Whether the lengths of a vector message are those of its data.
bool lens_fit(const Arrival& arrival) {
  const Message& head = arrival.head;
  if ((head.flags & vector_handler) == 0) return head.pieces == 0;
  std::vector<ulong> lens(head.pieces);
  if (!lens.empty()) std::memcpy(lens.data(), arrival.header.data(), arrival.lens_bytes());
  std::uint64_t total = 0;
  switch (head.vector_type) {
    case LAPI_GEN_GENERIC:
      return lens.empty();
    case LAPI_GEN_IOVECTOR:
      for (const ulong len : lens)
        if (!add(total, len)) return false;
      return total == head.data_bytes;
    case LAPI_GEN_STRIDED_XFER:
      return lens.size() == 3 && !__builtin_mul_overflow(lens[0], lens[1], &total) &&
             total == head.data_bytes;
    default:
      return false;
  }
}

}  // namespace

bool Engine::may_use(const Pieces& pieces, Use use) {
  for (const Piece& piece : pieces.all())
    if (!memory_.allows(piece.address, piece.len_bytes, use)) return false;
  return true;
}

bool Engine::may_count(std::uint64_t counter) {
  return counter == 0 || (counter % alignof(lapi_cntr_t) == 0 &&
                          memory_.allows(counter, sizeof(lapi_cntr_t), Use::write));
}

// Finds the memory that a message names.
Engine::Verdict Engine::judge_message(int task, Arrival& arrival) {
  const Message& head = arrival.head;
  const auto allowed_if = [](bool allowed) { return allowed ? Verdict::sound : Verdict::refused; };
  switch (head.kind) {
    case Kind::active:
      if (!lens_fit(arrival)) return Verdict::malformed;
      return allowed_if(may_count(head.target_counter));
    case Kind::put:
      if (!read_pieces(arrival, head.data_bytes, arrival.named)) return Verdict::malformed;
      return allowed_if(may_count(head.target_counter) && may_use(arrival.named, Use::write));
    case Kind::get:
      if (head.operands[0] > most_data_bytes ||
          !read_pieces(arrival, head.operands[0], arrival.named))
        return Verdict::malformed;
      return allowed_if(may_count(head.target_counter) && may_use(arrival.named, Use::read));
    case Kind::get_reply:
      arrival.named = operations_.destination(head.ticket, task);
      return arrival.named.len_bytes() == head.data_bytes ? Verdict::sound : Verdict::malformed;
    case Kind::rmw: {
      const std::uint32_t size_bits = rmw_size_bits(head.code);
      if ((size_bits != 32 && size_bits != 64) || rmw_operation(head.code) > COMPARE_AND_SWAP)
        return Verdict::malformed;
      return allowed_if(head.address % (size_bits / 8) == 0 &&
                        memory_.allows(head.address, size_bits / 8, Use::write));
    }
    case Kind::count:
      return allowed_if(may_count(head.target_counter));
    default:
      return Verdict::sound;
  }
}

// The header of a message is complete. An error if the message is malformed.
Status Engine::admit(int task, Arrival& arrival) {
  const Verdict verdict = judge_message(task, arrival);
  const Message& head = arrival.head;
  arrival.is_refused = verdict == Verdict::refused;
  if (verdict == Verdict::malformed) return fail(Code::bad_argument, "a malformed message");
  if (arrival.is_refused)
    log(LogLevel::error,
        "LAPI: an operation of task {} is refused: it names memory that this task does not have "
        "(address {:#x}, counter {:#x})",
        task, head.address, head.target_counter);
  return {};
}

// Its data has been dropped.
void Engine::refuse(int task, const Message& head) {
  if (head.ticket != 0) send(task, {.kind = Kind::done, .flags = not_done, .ticket = head.ticket});
}

}  // namespace shima::lapi
