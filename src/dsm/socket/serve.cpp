#include "dsm/socket/serve.h"

#include <fmt/format.h>

#include "lapi/direct_rmw.h"

namespace shima::dsm {

std::optional<std::span<std::byte>> Served::bytes_of(const Request& request) const {
  const std::uint64_t size = own_.size_bytes();
  const Access access = request.kind == Request::Kind::read ? Access::read : Access::write;
  if (request.offset > size || request.len_bytes > size - request.offset ||
      !own_.table().allows(request.offset, request.len_bytes, access))
    return {};
  return std::span(own_.data() + request.offset, static_cast<std::size_t>(request.len_bytes));
}

std::optional<std::uint64_t> Served::rmw(const Request& request) const {
  const auto operation = static_cast<RMW_ops_t>(request.code & 0xff);
  const std::uint32_t size_bits = request.code >> 8;
  if ((size_bits != 32 && size_bits != 64) || request.len_bytes != size_bits / 8 ||
      request.offset % request.len_bytes != 0 || operation > COMPARE_AND_SWAP)
    return {};
  const auto variable = bytes_of(request);
  if (!variable) return {};
  return lapi::rmw_here(operation, size_bits, reinterpret_cast<std::uint64_t>(variable->data()),
                        request.input);
}

std::unexpected<Error> refused_by(int task) {
  return fail(Code::access_denied,
              fmt::format("task {} has refused an access: its protection has changed since", task));
}

}  // namespace shima::dsm
