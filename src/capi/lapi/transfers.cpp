// Calls that move data, and LAPI_Xfer, which is all of them.
#include <fmt/format.h>

#include "capi/lapi/checks.h"
#include "lapi/vector.h"
#include "observe/board.h"
#include "observe/trace_runs.h"

namespace {

using namespace shima::capi;
using shima::CallPlace;
using shima::count;
using shima::Counted;
using shima::ShortCall;
using shima::call::Lapi;
using shima::lapi::Call;
using shima::lapi::Notices;
using shima::lapi::Pieces;
using shima::lapi::pieces_of;
using shima::lapi::RmwRequest;

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

// What a trace has of an operation.
ShortCall moving(const CallPlace& place, uint task, std::uint64_t bytes, std::uint32_t pieces = 1) {
  return {.place = place, .task = static_cast<int>(task), .bytes = bytes, .pieces = pieces};
}

// The program may free what describes a transfer as soon as its bytes have left: a trace has what
// was there before.
template <class Describe, class Body>
LapiStatus traced_transfer(const LapiContext& context, const Describe& describe, const Body& body) {
  if (!shima::is_traced() || !context.is_programs) [[likely]]
    return body();
  const ShortCall call = describe();
  return shima::traced_if(true, [&call] { return call; }, body);
}

LapiStatus put(LapiContext& context, const lapi_put_t& command, const CallPlace& place) {
  if (context.checks)
    LAPI_TRY(check_range(context, command.tgt, command.len, command.tgt_addr, command.org_addr));
  count(Counted::put, command.len);
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, command.len); },
      [&] {
        return translated(context.engine->put(
            static_cast<int>(command.tgt), Pieces(command.tgt_addr, command.len),
            Pieces(command.org_addr, command.len), command.tgt_cntr,
            {.origin = command.org_cntr,
             .complete = command.cmpl_cntr,
             .sent = command.shdlr,
             .sent_info = command.sinfo}));
      });
}

LapiStatus get(LapiContext& context, const lapi_get_t& command, const CallPlace& place) {
  if (context.checks)
    LAPI_TRY(check_range(context, command.tgt, command.len, command.tgt_addr, command.org_addr));
  count(Counted::get, command.len);
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, command.len); },
      [&] {
        return translated(context.engine->get(
            static_cast<int>(command.tgt), Pieces(command.tgt_addr, command.len),
            Pieces(command.org_addr, command.len), command.tgt_cntr,
            {.origin = command.org_cntr,
             .arrived = command.chndlr,
             .arrived_info = command.cinfo}));
      });
}

// The two types of vectors differ in how they write an address.
const lapi_vec_t* plain(const lapi_lvec_t* vector) {
  static_assert(sizeof(lapi_vec_t) == sizeof(lapi_lvec_t));
  return reinterpret_cast<const lapi_vec_t*>(vector);
}

LapiStatus putv(LapiContext& context, const lapi_putv_t& command, const CallPlace& place) {
  LAPI_TRY(check_vectors(context, command.tgt, plain(command.tgt_vec), command.org_vec));
  const Pieces from = pieces_of(*command.org_vec);
  count(Counted::put, from.len_bytes());
  return traced_transfer(
      context,
      [&] { return moving(place, command.tgt, from.len_bytes(), command.org_vec->num_vecs); },
      [&] {
        return translated(context.engine->put(static_cast<int>(command.tgt),
                                              pieces_of(*plain(command.tgt_vec)), from,
                                              command.tgt_cntr,
                                              {.origin = command.org_cntr,
                                               .complete = command.cmpl_cntr,
                                               .sent = command.shdlr,
                                               .sent_info = command.sinfo}));
      });
}

LapiStatus getv(LapiContext& context, const lapi_getv_t& command, const CallPlace& place) {
  LAPI_TRY(check_vectors(context, command.tgt, plain(command.tgt_vec), command.org_vec));
  const Pieces to = pieces_of(*command.org_vec);
  count(Counted::get, to.len_bytes());
  return traced_transfer(
      context,
      [&] { return moving(place, command.tgt, to.len_bytes(), command.org_vec->num_vecs); },
      [&] {
        return translated(context.engine->get(
            static_cast<int>(command.tgt), pieces_of(*plain(command.tgt_vec)), to, command.tgt_cntr,
            {.origin = command.org_cntr,
             .arrived = command.chndlr,
             .arrived_info = command.cinfo}));
      });
}

LapiStatus am(LapiContext& context, const lapi_am_t& command, const CallPlace& place) {
  if (context.checks) {
    LAPI_TRY(check_task(context, command.tgt));
    LAPI_TRY(check_header(command.hdr_hdl, command.uhdr, command.uhdr_len));
    LAPI_TRY(check_range(context, command.tgt, command.udata_len, 1, command.udata));
  }
  const bool light = command.Xfer_type == LAPI_AM_LW_XFER;
  Notices notices;
  if (!light)
    notices = {.origin = command.org_cntr,
               .complete = command.cmpl_cntr,
               .sent = command.shdlr,
               .sent_info = command.sinfo};
  const Call call{.handler = command.hdr_hdl,
                  .header = {static_cast<const std::byte*>(command.uhdr), command.uhdr_len},
                  .copy = light};
  const std::uint64_t bytes = command.uhdr_len + command.udata_len;
  count(Counted::active_message, bytes);
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, bytes); },
      [&] {
        return translated(context.engine->send_active(static_cast<int>(command.tgt), call,
                                                      Pieces(command.udata, command.udata_len),
                                                      light ? 0 : command.tgt_cntr, notices));
      });
}

LapiStatus amv(LapiContext& context, const lapi_amv_t& command, const CallPlace& place) {
  LAPI_TRY(check_task(context, command.tgt));
  LAPI_TRY(check_header(command.hdr_hdl, command.uhdr, command.uhdr_len));
  LAPI_TRY(check_vector(command.org_vec, true));
  const lapi_vec_t& vector = *command.org_vec;
  const ulong strided[3] = {
      vector.num_vecs, vector.num_vecs > 0 && vector.info != nullptr ? number(vector.info[1]) : 0,
      vector.num_vecs > 0 && vector.info != nullptr ? number(vector.info[2]) : 0};
  Call call{.handler = command.hdr_hdl,
            .header = {static_cast<const std::byte*>(command.uhdr), command.uhdr_len},
            .vector = true,
            .vector_type = vector.vec_type};
  if (vector.vec_type == LAPI_GEN_IOVECTOR) call.lens = {vector.len, vector.num_vecs};
  if (vector.vec_type == LAPI_GEN_STRIDED_XFER) call.lens = strided;
  const std::uint64_t bytes = command.uhdr_len + pieces_of(vector).len_bytes();
  count(Counted::active_message, bytes);
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, bytes, vector.num_vecs); },
      [&] {
        return translated(context.engine->send_active(static_cast<int>(command.tgt), call,
                                                      pieces_of(vector), command.tgt_cntr,
                                                      {.origin = command.org_cntr,
                                                       .complete = command.cmpl_cntr,
                                                       .sent = command.shdlr,
                                                       .sent_info = command.sinfo}));
      });
}

LapiStatus check_rmw(LapiContext& context, const lapi_rmw_t& command) {
  LAPI_TRY(check_task(context, command.tgt));
  if (command.op < FETCH_AND_ADD || command.op > COMPARE_AND_SWAP)
    return refuse(LAPI_ERR_RMW_OP, fmt::format("operation {} is not one of RMW_ops_t",
                                               static_cast<int>(command.op)));
  if (command.size != 32 && command.size != 64)
    return refuse(LAPI_ERR_OP_SZ,
                  fmt::format("the variable has {} bits; it must have 32 or 64", command.size));
  if (command.tgt_var == 0) return refuse(LAPI_ERR_TGT_VAR_NULL, "the target variable is NULL");
  if (command.in_val == nullptr) return refuse(LAPI_ERR_IN_VAL_NULL, "the input value is NULL");
  return {};
}

LapiStatus rmw(LapiContext& context, const lapi_rmw_t& command, const CallPlace& place) {
  LAPI_TRY(check_rmw(context, command));
  RmwRequest request{.operation = command.op,
                     .size_bits = command.size,
                     .variable = command.tgt_var,
                     .previous = command.prev_tgt_val};
  const std::size_t inputs = command.op == COMPARE_AND_SWAP ? 2 : 1;
  for (std::size_t i = 0; i < inputs; ++i)
    request.input[i] =
        command.size == 64
            ? static_cast<std::uint64_t>(static_cast<const long long*>(command.in_val)[i])
            : static_cast<std::uint32_t>(static_cast<const int*>(command.in_val)[i]);
  count(Counted::rmw, command.size / 8);
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, command.size / 8); },
      [&] {
        return translated(context.engine->rmw(
            static_cast<int>(command.tgt), request,
            {.origin = command.org_cntr, .sent = command.shdlr, .sent_info = command.sinfo}));
      });
}

// A pvo is an address (LAPI_Util). Ends as a Get or a Put that is complete at its target.
LapiStatus rdma(LapiContext& context, const lapi_hwxfer_t& command, const void* site) {
  const bool is_put = command.op == LAPI_RDMA_PUT;
  if (!is_put && command.op != LAPI_RDMA_GET)
    return refuse(LAPI_ERR_XFER_CMD,
                  fmt::format("op {} of LAPI_RDMA_XFER is neither LAPI_RDMA_PUT nor LAPI_RDMA_GET",
                              command.op));
  const std::uint64_t there = command.tgt_pvo + command.tgt_offset;
  void* const here = reinterpret_cast<void*>(command.src_pvo + command.src_offset);
  if (context.checks) LAPI_TRY(check_range(context, command.tgt, command.len, there, here));
  count(is_put ? Counted::put : Counted::get, command.len);
  const CallPlace place{shima::call::lapi_access(is_put ? Lapi::put : Lapi::get, true), site};
  return traced_transfer(
      context, [&] { return moving(place, command.tgt, command.len); },
      [&] {
        const int task = static_cast<int>(command.tgt);
        const Pieces far(there, command.len);
        const Pieces near(here, command.len);
        if (is_put)
          return translated(context.engine->put(
              task, far, near, 0,
              {.complete = command.org_cntr, .sent = command.shdlr, .sent_info = command.sinfo}));
        return translated(context.engine->get(
            task, far, near, 0,
            {.origin = command.org_cntr, .sent = command.shdlr, .sent_info = command.sinfo}));
      });
}

LapiStatus transfer(LapiContext& context, const lapi_xfer_t& command, const void* site) {
  const auto place = [site](Lapi kind) {
    return CallPlace{shima::call::lapi_access(kind, true), site};
  };
  switch (command.Xfer_type) {
    case LAPI_GET_XFER:
      return get(context, command.Get, place(Lapi::get));
    case LAPI_PUT_XFER:
      return put(context, command.Put, place(Lapi::put));
    case LAPI_AM_XFER:
    case LAPI_AM_LW_XFER:
      return am(context, command.Am, place(Lapi::amsend));
    case LAPI_RMW_XFER:
      return rmw(context, command.Rmw, place(command.Rmw.size == 64 ? Lapi::rmw64 : Lapi::rmw));
    case LAPI_GETV_XFER:
      return getv(context, command.Getv, place(Lapi::getv));
    case LAPI_PUTV_XFER:
      return putv(context, command.Putv, place(Lapi::putv));
    case LAPI_AMV_XFER:
      return amv(context, command.Amv, place(Lapi::amsendv));
    case LAPI_RDMA_XFER:
      return rdma(context, command.HwXfer, site);
    default:
      return refuse(LAPI_ERR_XFER_CMD, fmt::format("transfer type {} is not supported",
                                                   static_cast<int>(command.Xfer_type)));
  }
}

// The place of a call to one of the functions.
CallPlace place_of(Lapi kind, const void* site) { return {shima::call::lapi_access(kind), site}; }

}  // namespace

int LAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t* xfer_cmd) noexcept {
  const void* const site = __builtin_return_address(0);
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    if (xfer_cmd == nullptr) return refuse(LAPI_ERR_XFER_CMD, "LAPI_Xfer: xfer_cmd is NULL");
    return transfer(context, *xfer_cmd, site);
  });
}

// NOLINTNEXTLINE(readability-function-size): as the manual page has it
int LAPI_Put(lapi_handle_t hndl, uint tgt, ulong len, void* tgt_addr, void* org_addr,
             lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) noexcept {
  const CallPlace place = place_of(Lapi::put, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return put(context,
               {LAPI_PUT_XFER, 0, tgt, number(tgt_addr), org_addr, len, nullptr, nullptr,
                number(tgt_cntr), org_cntr, cmpl_cntr},
               place);
  });
}

int LAPI_Get(lapi_handle_t hndl, uint tgt, ulong len, void* tgt_addr, void* org_addr,
             lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) noexcept {
  const CallPlace place = place_of(Lapi::get, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return get(context,
               {LAPI_GET_XFER, 0, tgt, number(tgt_addr), org_addr, len, nullptr, nullptr,
                number(tgt_cntr), org_cntr},
               place);
  });
}

int LAPI_Putv(lapi_handle_t hndl, uint tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) noexcept {
  const CallPlace place = place_of(Lapi::putv, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return putv(context,
                {LAPI_PUTV_XFER, 0, tgt, reinterpret_cast<lapi_lvec_t*>(tgt_vec), org_vec, nullptr,
                 nullptr, number(tgt_cntr), org_cntr, cmpl_cntr},
                place);
  });
}

int LAPI_Getv(lapi_handle_t hndl, uint tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) noexcept {
  const CallPlace place = place_of(Lapi::getv, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return getv(context,
                {LAPI_GETV_XFER, 0, tgt, reinterpret_cast<lapi_lvec_t*>(tgt_vec), org_vec, nullptr,
                 nullptr, number(tgt_cntr), org_cntr},
                place);
  });
}

// NOLINTNEXTLINE(readability-function-size): as the manual page has it
int LAPI_Amsend(lapi_handle_t hndl, uint tgt, void* hdr_hdl, void* uhdr, uint uhdr_len, void* udata,
                ulong udata_len, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                lapi_cntr_t* cmpl_cntr) noexcept {
  const CallPlace place = place_of(Lapi::amsend, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return am(context,
              {LAPI_AM_XFER, 0, tgt, number(hdr_hdl), uhdr_len, uhdr, udata, udata_len, nullptr,
               nullptr, number(tgt_cntr), org_cntr, cmpl_cntr},
              place);
  });
}

// NOLINTNEXTLINE(readability-function-size): as the manual page has it
int LAPI_Amsendv(lapi_handle_t hndl, uint tgt, void* hdr_hdl, void* uhdr, uint uhdr_len,
                 lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                 lapi_cntr_t* cmpl_cntr) noexcept {
  const CallPlace place = place_of(Lapi::amsendv, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return amv(context,
               {LAPI_AMV_XFER, 0, tgt, number(hdr_hdl), uhdr_len, uhdr, org_vec, nullptr, nullptr,
                number(tgt_cntr), org_cntr, cmpl_cntr},
               place);
  });
}

int LAPI_Rmw(lapi_handle_t hndl, RMW_ops_t op, uint tgt, int* tgt_var, int* in_val,
             int* prev_tgt_val, lapi_cntr_t* org_cntr) noexcept {
  const CallPlace place = place_of(Lapi::rmw, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return rmw(context,
               {LAPI_RMW_XFER, 0, op, tgt, 32, number(tgt_var), in_val, prev_tgt_val, nullptr,
                nullptr, org_cntr},
               place);
  });
}

int LAPI_Rmw64(lapi_handle_t hndl, RMW_ops_t op, uint tgt, long long* tgt_var, long long* in_val,
               long long* prev_tgt_val, lapi_cntr_t* org_cntr) noexcept {
  const CallPlace place = place_of(Lapi::rmw64, __builtin_return_address(0));
  return with_context(hndl, [&](LapiContext& context) {
    return rmw(context,
               {LAPI_RMW_XFER, 0, op, tgt, 64, number(tgt_var), in_val, prev_tgt_val, nullptr,
                nullptr, org_cntr},
               place);
  });
}
