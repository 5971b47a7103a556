// The functions of UCX that are used, found at run time: nothing is linked with UCX.
//
// Only what UCX 1.13 has. Empty in a build without UCX's headers.
#pragma once

#ifdef SHIMA_HAVE_UCX
#include <ucp/api/ucp.h>

#include <string>

#include "base/result.h"

namespace shima::lapi {

struct UcxApi {
  std::string path;  // of the library
  unsigned major = 0;
  unsigned minor = 0;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_context_print_info) context_print_info = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&::ucp_am_data_release) am_data_release = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;
  decltype(&::ucs_status_string) status_string = nullptr;
};

// Opens UCX at the first call.
[[nodiscard]] Result<const UcxApi*> ucx_api();

}  // namespace shima::lapi
#endif
