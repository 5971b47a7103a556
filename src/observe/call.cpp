#include "observe/call.h"

#include <array>
#include <string_view>

namespace shima {
namespace {

constexpr std::array<std::string_view, call::named_count> names{
    "",
    "MPI_File_open",
    "MPI_File_close",
    "MPI_File_sync",
    "MPI_File_set_view",
    "MPI_File_set_size",
    "MPI_File_preallocate",
    "MPI_File_set_atomicity",
    "LAPI_Fence",
    "LAPI_Gfence",
    "LAPI_Waitcntr",
    "LAPI_Address_init",
    "LAPI_Xfer",
    "dsm access",
    "dsm_fence",
    "dsm_barrier",
    "LAPI_Init",
    "LAPI_Term",
    "dsm_open",
    "dsm_close",
};

constexpr std::array<std::string_view, 8> lapi_names{"Put", "Putv", "Amsend", "Amsendv",
                                                     "Get", "Getv", "Rmw",    "Rmw64"};
constexpr std::array<std::string_view, 7> dsm_names{
    "write", "write_b", "read", "fetch_add", "fetch_or", "swap", "compare_and_swap"};

std::string mpi_name(CallCode code) {
  const auto pointer = static_cast<call::Pointer>((code >> 2U) & 3U);
  const auto mode = static_cast<call::Mode>((code >> 4U) & 3U);
  const bool together = call::is_together(code);
  std::string name = "MPI_File_";
  if (mode == call::Mode::nonblocking) name += 'i';
  name += call::is_write(code) ? "write" : "read";
  if (pointer == call::Pointer::explicit_offset) name += "_at";
  if (pointer == call::Pointer::shared) name += together ? "_ordered" : "_shared";
  if (together && pointer != call::Pointer::shared) name += "_all";
  if (mode == call::Mode::split) name += "_begin";
  return name;
}

std::string lapi_name(CallCode code) {
  const auto kind = call::memory_kind(code);
  const std::string name(kind < lapi_names.size() ? lapi_names[kind] : "");
  return (code & 0x10U) != 0 ? "LAPI_Xfer(" + name + ")" : "LAPI_" + name;
}

std::string dsm_name(CallCode code) {
  const auto kind = call::memory_kind(code);
  std::string name = "dsm_";
  name += kind < dsm_names.size() ? dsm_names[kind] : "";
  if (!call::sends(code) && !call::fetches(code)) name += (code & 0x10U) != 0 ? "_64" : "_32";
  return name;
}

}  // namespace

std::string call_name(CallCode code) {
  if (code < names.size()) return std::string(names[code]);
  if ((code & call::mpi_data) != 0) return mpi_name(code);
  if ((code & call::file_data) != 0)
    return std::string(call::is_write(code) ? "write" : "read") +
           (call::is_together(code) ? "_all" : "");
  if ((code & call::lapi_data) != 0) return lapi_name(code);
  if ((code & call::dsm_data) != 0) return dsm_name(code);
  return "call " + std::to_string(code);
}

}  // namespace shima
