// The calls of delegate_net.h: each is one request. Addresses that a request names besides its
// payload are validated here, because the delegatee dereferences them.
#include "shima/delegate_net.h"

#include "capi/delegate/delegate_seat.h"
#include "capi/pvas/errors.h"

namespace {

using shima::Code;
using shima::fail;
using shima::Result;
using shima::Status;
using shima::capi::guarded_pvas;
using shima::capi::judge_payload;
using shima::capi::requester_of;
using namespace shima::delegate;

static_assert(DELEGATE_SEND == first_net_operation && DELEGATE_WRITE_ALL < first_own_operation);

std::span<std::byte> bytes_of(const void* data, std::size_t size) {
  // The payload of a request to the delegatee is only read.
  return {static_cast<std::byte*>(const_cast<void*>(data)), size};
}

std::int64_t number_of(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
}

std::int64_t carry_out(delegate_seat* seat, const Request& request) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY(judge_payload(request.payload.data(), request.payload.size()));
    return requester->call(request);
  });
}

int without_value(std::int64_t answer) { return answer < 0 ? static_cast<int>(answer) : 0; }

Status judge_reach(const Requester& requester, const void* data, std::size_t size) {
  if (requester.reaches(bytes_of(data, size))) return {};
  return fail(Code::bad_argument, "the delegatee cannot access this memory");
}

std::size_t size_of(delegate_type type) {
  return type == DELEGATE_INT32 || type == DELEGATE_FLOAT ? 4 : 8;
}

std::int64_t move_pieces(delegate_seat* seat, int operation, int file, const delegate_piece* pieces,
                         std::size_t count) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY(judge_payload(pieces, count));
    for (const delegate_piece& piece : std::span(pieces, count)) {
      SHIMA_TRY(judge_payload(piece.data, piece.size));
      SHIMA_TRY(judge_reach(*requester, piece.data, piece.size));
      if (piece.offset < 0) return fail(Code::bad_argument, "a piece has a negative offset");
    }
    return requester->call({operation,
                            {file, 0, 0},
                            bytes_of(pieces, count * sizeof *pieces),
                            PayloadDirection::to_delegatee});
  });
}

}  // namespace

int64_t delegate_send(delegate_seat* seat, const void* data, size_t size, int rank,
                      int tag) noexcept {
  return carry_out(
      seat, {DELEGATE_SEND, {rank, tag, 0}, bytes_of(data, size), PayloadDirection::to_delegatee});
}

int64_t delegate_receive(delegate_seat* seat, void* data, size_t size, int rank, int tag) noexcept {
  return carry_out(
      seat,
      {DELEGATE_RECEIVE, {rank, tag, 0}, bytes_of(data, size), PayloadDirection::from_delegatee});
}

int delegate_expose(delegate_seat* seat, void* memory, size_t size) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY(judge_payload(memory, size));
    SHIMA_TRY(judge_reach(*requester, memory, size));
    SHIMA_TRY(requester->call(
        {DELEGATE_EXPOSE, {number_of(memory), static_cast<std::int64_t>(size), 0}, {}, {}}));
    return {};
  });
}

int delegate_conceal(delegate_seat* seat, void* memory) noexcept {
  return without_value(carry_out(seat, {DELEGATE_CONCEAL, {number_of(memory), 0, 0}, {}, {}}));
}

int64_t delegate_put(delegate_seat* seat, const void* data, size_t size, int rank,
                     uint64_t address) noexcept {
  return carry_out(seat, {DELEGATE_PUT,
                          {rank, static_cast<std::int64_t>(address), 0},
                          bytes_of(data, size),
                          PayloadDirection::to_delegatee});
}

int delegate_barrier(delegate_seat* seat) noexcept {
  return without_value(carry_out(seat, {DELEGATE_BARRIER, {}, {}, {}}));
}

int delegate_broadcast(delegate_seat* seat, void* data, size_t size, int rank,
                       int is_mine) noexcept {
  return without_value(carry_out(seat, {DELEGATE_BROADCAST,
                                        {rank, is_mine != 0 ? 1 : 0, 0},
                                        bytes_of(data, size),
                                        PayloadDirection::both}));
}

int delegate_allreduce(delegate_seat* seat, void* data, size_t count, delegate_type type,
                       delegate_reduction reduction) noexcept {
  return without_value(carry_out(seat, {DELEGATE_ALLREDUCE,
                                        {type, reduction, static_cast<std::int64_t>(count)},
                                        bytes_of(data, count * size_of(type)),
                                        PayloadDirection::both}));
}

int64_t delegate_read_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                          size_t count) noexcept {
  return move_pieces(seat, DELEGATE_READ_ALL, file, pieces, count);
}

int64_t delegate_write_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                           size_t count) noexcept {
  return move_pieces(seat, DELEGATE_WRITE_ALL, file, pieces, count);
}
