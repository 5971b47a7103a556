#include "lapi/ucx/open_fabric.h"

#include <array>
#include <filesystem>

#include "base/log.h"
#include "lapi/ucx/ucx_api.h"
#include "lapi/ucx/ucx_worker.h"

namespace shima::lapi {
namespace {

// Whether the machine has a device that UCX may call a fabric: without one, UCX is not even loaded.
bool has_device() {
  constexpr std::array classes{"/sys/class/infiniband", "/sys/class/cxi_user"};
  for (const char* const name : classes) {
    std::error_code ignored;
    if (!std::filesystem::is_empty(name, ignored) && !ignored) return true;
  }
  return false;
}

}  // namespace

std::optional<Carrier> parse_carrier(std::string_view text) {
  if (text == "auto") return Carrier::automatic;
  if (text == "tcp") return Carrier::tcp;
  if (text == "ucx") return Carrier::ucx;
  return {};
}

#ifdef SHIMA_HAVE_UCX

Result<std::unique_ptr<Fabric>> open_fabric(Carrier carrier, const TaskCount& tasks) {
  if (carrier == Carrier::tcp || (carrier == Carrier::automatic && !has_device())) return nullptr;
  SHIMA_TRY_ASSIGN(const UcxApi* const api, ucx_api());
  auto worker = UcxWorker::start(*api, UcxWorker::Devices::all_but_tcp, tasks);
  if (!worker || !(*worker)->has_fabric()) {
    if (carrier == Carrier::automatic) return nullptr;
    worker = std::unique_ptr<UcxWorker>();  // two at a time would share its devices
    worker = UcxWorker::start(*api, UcxWorker::Devices::all, tasks);
  }
  if (!worker) return std::unexpected(worker.error());
  log(LogLevel::info, "LAPI: data between hosts goes by UCX {}.{} ({}): {}", api->major, api->minor,
      api->path, (*worker)->report());
  return *std::move(worker);
}

#else

Result<std::unique_ptr<Fabric>> open_fabric(Carrier carrier, const TaskCount&) {
  if (carrier == Carrier::tcp || (carrier == Carrier::automatic && !has_device())) return nullptr;
  return fail(Code::unsupported_operation,
              "this build of Shima has no UCX: its headers (libucx-dev) were not there");
}

#endif

}  // namespace shima::lapi
