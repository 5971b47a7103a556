#include "lapi/ucx/ucx_api.h"

#ifdef SHIMA_HAVE_UCX
#include <dlfcn.h>
#include <fmt/format.h>

#include "lapi/ucx/ucx_copy.h"

namespace shima::lapi {
namespace {

constexpr unsigned least_major = 1;
constexpr unsigned least_minor = 13;

// Fills the table; remembers the first function that the library lacks.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void find_all(Finder& finder, UcxApi& api) {
  finder.find("ucp_config_read", api.config_read);
  finder.find("ucp_config_modify", api.config_modify);
  finder.find("ucp_config_release", api.config_release);
  finder.find("ucp_init_version", api.init_version);
  finder.find("ucp_cleanup", api.cleanup);
  finder.find("ucp_context_print_info", api.context_print_info);
  finder.find("ucp_worker_create", api.worker_create);
  finder.find("ucp_worker_destroy", api.worker_destroy);
  finder.find("ucp_worker_get_address", api.worker_get_address);
  finder.find("ucp_worker_release_address", api.worker_release_address);
  finder.find("ucp_worker_get_efd", api.worker_get_efd);
  finder.find("ucp_worker_arm", api.worker_arm);
  finder.find("ucp_worker_progress", api.worker_progress);
  finder.find("ucp_worker_set_am_recv_handler", api.worker_set_am_recv_handler);
  finder.find("ucp_ep_create", api.ep_create);
  finder.find("ucp_ep_close_nbx", api.ep_close_nbx);
  finder.find("ucp_am_send_nbx", api.am_send_nbx);
  finder.find("ucp_am_recv_data_nbx", api.am_recv_data_nbx);
  finder.find("ucp_am_data_release", api.am_data_release);
  finder.find("ucp_request_check_status", api.request_check_status);
  finder.find("ucp_request_free", api.request_free);
  finder.find("ucs_status_string", api.status_string);
}

Result<UcxApi> open_api() {
  SHIMA_TRY_ASSIGN(const UcxCopy copy, open_ucx_copy());
  UcxApi api;
  api.path = copy.path;
  Finder finder(copy.handle);
  decltype(&::ucp_get_version) get_version = nullptr;
  finder.find("ucp_get_version", get_version);
  find_all(finder, api);
  if (!finder.missing().empty())
    return fail(Code::unsupported_operation,
                fmt::format("{} has no function {}", copy.path, finder.missing()));
  unsigned release = 0;
  get_version(&api.major, &api.minor, &release);
  if (api.major != least_major || api.minor < least_minor)
    return fail(Code::unsupported_operation,
                fmt::format("{} is UCX {}.{}; at least {}.{} is needed", copy.path, api.major,
                            api.minor, least_major, least_minor));
  return api;
}

}  // namespace

Result<const UcxApi*> ucx_api() {
  static const Result<UcxApi> opened = open_api();
  if (!opened) return std::unexpected(opened.error());
  return &*opened;
}

}  // namespace shima::lapi
#endif
