// Whether data between hosts goes by UCX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "lapi/stream/fabric.h"
#include "lapi/ucx/ucx_worker.h"

namespace shima::lapi {

// How tasks on different nodes exchange data (SHIMA_TRANSPORT).
enum class Carrier : std::uint8_t {
  automatic,  // UCX where it finds a fabric (InfiniBand, RoCE, Slingshot), else TCP
  tcp,
  ucx,  // also over what UCX calls tcp, which accepts frames of strangers
};
inline constexpr const char* carrier_variable = "SHIMA_TRANSPORT";
[[nodiscard]] std::optional<Carrier> parse_carrier(std::string_view text);

// Null if TCP shall be used. An error is for the log: TCP takes over.
[[nodiscard]] Result<std::unique_ptr<Fabric>> open_fabric(Carrier carrier, const TaskCount& tasks);

}  // namespace shima::lapi
