// LAPI_Util: permission and names of memory for LAPI_RDMA_XFER, and the lock of a context.
//
// Every task can reach the memory of every other one, so nothing is registered with a device: the
// name of memory is its address, and a permission is a number.
#include <fmt/format.h>

#include <cerrno>

#include "capi/lapi/checks.h"

namespace {

using namespace shima::capi;

LapiStatus check_operation(lapi_rdma_request_t operation) {
  if (operation == LAPI_RDMA_ACQUIRE || operation == LAPI_RDMA_RELEASE) return {};
  return refuse(LAPI_ERR_UTIL_CMD,
                fmt::format("operation {} is neither LAPI_RDMA_ACQUIRE nor LAPI_RDMA_RELEASE",
                            static_cast<int>(operation)));
}

LapiStatus permit(const LapiContext& context, lapi_remote_cxt_t& command) {
  LAPI_TRY(check_operation(command.operation));
  LAPI_TRY(check_task(context, command.dest));
  if (command.operation == LAPI_RDMA_ACQUIRE) command.usr_rcxt = command.dest + 1;
  return {};
}

LapiStatus name_memory(lapi_get_pvo_t& command) {
  LAPI_TRY(check_operation(command.operation));
  if (command.operation == LAPI_RDMA_RELEASE) return {};
  if (command.address == nullptr)
    return refuse(LAPI_ERR_ORG_ADDR_NULL, "LAPI_XLATE_ADDRESS: the address is NULL");
  command.usr_pvo = reinterpret_cast<lapi_user_pvo_t>(command.address);
  return {};
}

int lock(lapi_handle_t hndl) noexcept {
  return with_context(hndl, [](LapiContext& context) -> LapiStatus {
    context.engine->lock_dispatcher();
    return {};
  });
}

int unlock(lapi_handle_t hndl) noexcept {
  return with_context(hndl, [](LapiContext& context) -> LapiStatus {
    if (context.engine->unlock_dispatcher()) return {};
    return refuse(LAPI_ERR_BAD_PARAMETER, "mutex_unlock: the thread does not own the lock");
  });
}

int try_lock(lapi_handle_t hndl) noexcept {
  bool is_locked = true;
  const int code = with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    is_locked = context.engine->try_lock_dispatcher();
    return {};
  });
  return is_locked ? code : EBUSY;
}

}  // namespace

int LAPI_Util(lapi_handle_t hndl, lapi_util_t* util_cmd) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    if (util_cmd == nullptr) return refuse(LAPI_ERR_UTIL_CMD, "LAPI_Util: util_cmd is NULL");
    switch (util_cmd->Util_type) {
      case LAPI_REMOTE_RCXT:
        return permit(context, util_cmd->RemoteCxt);
      case LAPI_XLATE_ADDRESS:
        return name_memory(util_cmd->Pvo);
      case LAPI_GET_THREAD_FUNC:
        util_cmd->ThreadFunc = {LAPI_GET_THREAD_FUNC, lock, unlock, try_lock};
        return {};
    }
    return refuse(LAPI_ERR_UTIL_CMD, fmt::format("utility command {} is not supported",
                                                 static_cast<int>(util_cmd->Util_type)));
  });
}
