#include "capi/lapi/checks.h"

#include <fmt/format.h>

#include "lapi/way/message.h"

namespace shima::capi {
namespace {

// The codes for one side of a transfer.
struct Side {
  const char* name;
  int null;
  int type;
  int len;
  int address;
  int stride;
  int extent;
  int strided_null;
};
constexpr Side origin_side{"origin",
                           LAPI_ERR_ORG_VEC_NULL,
                           LAPI_ERR_ORG_VEC_TYPE,
                           LAPI_ERR_ORG_VEC_LEN,
                           LAPI_ERR_ORG_VEC_ADDR,
                           LAPI_ERR_ORG_STRIDE,
                           LAPI_ERR_ORG_EXTENT,
                           LAPI_ERR_STRIDE_ORG_ADDR_NULL};
constexpr Side target_side{"target",
                           LAPI_ERR_TGT_VEC_NULL,
                           LAPI_ERR_TGT_VEC_TYPE,
                           LAPI_ERR_TGT_VEC_LEN,
                           LAPI_ERR_TGT_VEC_ADDR,
                           LAPI_ERR_TGT_STRIDE,
                           LAPI_ERR_TGT_EXTENT,
                           LAPI_ERR_STRIDE_TGT_ADDR_NULL};

LapiStatus check_strided(const lapi_vec_t& vector, const Side& side) {
  const auto block = reinterpret_cast<std::uint64_t>(vector.info[1]);
  const auto stride = reinterpret_cast<std::uint64_t>(vector.info[2]);
  if (vector.info[0] == nullptr && block > 0 && vector.num_vecs > 0)
    return refuse(side.strided_null, fmt::format("info[0] of the {} vector is NULL; it is the "
                                                 "address of the first block",
                                                 side.name));
  if (stride < block)
    return refuse(side.stride, fmt::format("the {} vector has blocks of {} bytes at distances of "
                                           "{}; the distance must be at least a block",
                                           side.name, block, stride));
  std::uint64_t extent = 0;
  if (__builtin_mul_overflow(stride, std::uint64_t{vector.num_vecs}, &extent) ||
      __builtin_add_overflow(extent, reinterpret_cast<std::uint64_t>(vector.info[0]), &extent))
    return refuse(side.extent, fmt::format("the {} vector of {} blocks at distances of {} bytes "
                                           "ends beyond the address space",
                                           side.name, vector.num_vecs, stride));
  return {};
}

LapiStatus check_pieces(const lapi_vec_t& vector, const Side& side) {
  std::uint64_t total = 0;
  for (uint i = 0; i < vector.num_vecs; ++i) {
    if (vector.info[i] == nullptr && vector.len[i] > 0)
      return refuse(side.address, fmt::format("info[{}] of the {} vector is NULL, and len[{}] is "
                                              "{}; give an address or length 0",
                                              i, side.name, i, vector.len[i]));
    if (__builtin_add_overflow(total, std::uint64_t{vector.len[i]}, &total) ||
        total > LAPI_MAX_MSG_SZ)
      return refuse(side.len, fmt::format("the pieces of the {} vector have more than "
                                          "LAPI_MAX_MSG_SZ bytes",
                                          side.name));
  }
  return {};
}

LapiStatus check_side(const lapi_vec_t* vector, const Side& side) {
  if (vector == nullptr) return refuse(side.null, fmt::format("the {} vector is NULL", side.name));
  if (vector->vec_type < LAPI_GEN_GENERIC || vector->vec_type > LAPI_GEN_STRIDED_XFER)
    return refuse(side.type,
                  fmt::format("vec_type of the {} vector is {}; it must be one of lapi_vectype_t",
                              side.name, static_cast<int>(vector->vec_type)));
  const bool is_strided = vector->vec_type == LAPI_GEN_STRIDED_XFER;
  if (vector->num_vecs > 0 && (vector->info == nullptr || (!is_strided && vector->len == nullptr)))
    return refuse(side.null, fmt::format("info or len of the {} vector is NULL", side.name));
  if (vector->num_vecs > lapi::most_pieces)
    return refuse(side.len, fmt::format("the {} vector has {} pieces; {} are possible, use several "
                                        "calls",
                                        side.name, vector->num_vecs, lapi::most_pieces));
  if (vector->num_vecs == 0) return {};
  return is_strided ? check_strided(*vector, side) : check_pieces(*vector, side);
}

std::uint64_t total_of(const lapi_vec_t& vector) {
  if (vector.vec_type == LAPI_GEN_STRIDED_XFER)
    return vector.num_vecs == 0 ? 0
                                : vector.num_vecs * reinterpret_cast<std::uint64_t>(vector.info[1]);
  std::uint64_t total = 0;
  for (uint i = 0; i < vector.num_vecs; ++i) total += vector.len[i];
  return total;
}

}  // namespace

LapiStatus check_task(const LapiContext& context, uint task) {
  if (task < static_cast<uint>(context.engine->tasks())) return {};
  return refuse(LAPI_ERR_TGT, fmt::format("task {} is not in the job; its tasks are 0 to {}", task,
                                          context.engine->tasks() - 1));
}

LapiStatus check_range(const LapiContext& context, uint task, ulong len, std::uint64_t target,
                       const void* origin) {
  LAPI_TRY(check_task(context, task));
  if (len == 0) return {};
  if (len > LAPI_MAX_MSG_SZ)
    return refuse(
        LAPI_ERR_DATA_LEN,
        fmt::format("the length {} exceeds LAPI_MAX_MSG_SZ; a length is not negative", len));
  if (target == 0)
    return refuse(LAPI_ERR_TGT_ADDR_NULL,
                  fmt::format("the target address is NULL, and the length is {}", len));
  if (origin == nullptr)
    return refuse(LAPI_ERR_ORG_ADDR_NULL,
                  fmt::format("the origin address is NULL, and the length is {}", len));
  return {};
}

LapiStatus check_vector(const lapi_vec_t* vector, bool is_origin) {
  return check_side(vector, is_origin ? origin_side : target_side);
}

LapiStatus check_vectors(const LapiContext& context, uint task, const lapi_vec_t* target,
                         const lapi_vec_t* origin) {
  LAPI_TRY(check_task(context, task));
  LAPI_TRY(check_vector(target, false));
  LAPI_TRY(check_vector(origin, true));
  if (target->vec_type != origin->vec_type)
    return refuse(
        LAPI_ERR_VEC_TYPE_DIFF,
        fmt::format("vec_type of the target vector is {}, of the origin vector {}; they "
                    "must be equal",
                    static_cast<int>(target->vec_type), static_cast<int>(origin->vec_type)));
  if (target->vec_type != LAPI_GEN_GENERIC && target->num_vecs != origin->num_vecs)
    return refuse(LAPI_ERR_VEC_NUM_DIFF,
                  fmt::format("the target vector has {} pieces, the origin vector {}; they must "
                              "have equally many",
                              target->num_vecs, origin->num_vecs));
  for (uint i = 0; target->vec_type == LAPI_GEN_IOVECTOR && i < target->num_vecs; ++i)
    if (target->len[i] != origin->len[i])
      return refuse(LAPI_ERR_VEC_LEN_DIFF,
                    fmt::format("piece {} has {} bytes at the target and {} at the origin; they "
                                "must be equal, or use LAPI_GEN_GENERIC",
                                i, target->len[i], origin->len[i]));
  if (total_of(*target) != total_of(*origin))
    return refuse(LAPI_ERR_VEC_LEN_DIFF,
                  fmt::format("the target vector has {} bytes, the origin vector {}; they must be "
                              "equal",
                              total_of(*target), total_of(*origin)));
  return {};
}

LapiStatus check_header(std::uint64_t handler, const void* header, uint len) {
  if (handler == 0) return refuse(LAPI_ERR_HDR_HNDLR_NULL, "the header handler is NULL");
  if (len > lapi::most_user_header_bytes)
    return refuse(LAPI_ERR_UHDR_LEN, fmt::format("the user header has {} bytes; MAX_UHDR_SZ is {}",
                                                 len, lapi::most_user_header_bytes));
  if (header == nullptr && len > 0)
    return refuse(LAPI_ERR_UHDR_NULL,
                  fmt::format("the user header is NULL, and its length is {}", len));
  return {};
}

}  // namespace shima::capi
