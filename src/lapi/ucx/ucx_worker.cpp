#include "lapi/ucx/ucx_worker.h"

#include "lapi/ucx/ucx_api.h"

#ifdef SHIMA_HAVE_UCX
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "lapi/ucx/signals_blocked.h"
#include "lapi/ucx/ucx_stream.h"

namespace shima::lapi {

// What UCX calls; the thread that called UCX holds the worker's lock.
struct UcxCalls {
  static ucs_status_t received(void* own, const void* head, std::size_t head_bytes, void* bytes,
                               std::size_t len_bytes, const ucp_am_recv_param_t* param) {
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;  // not one of ours
    const bool may_stay = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    const auto& worker = *static_cast<UcxWorker*>(own);
    UcxFrame frame;
    if (head_bytes != sizeof frame) return UCS_OK;
    std::memcpy(&frame, head, sizeof frame);
    if (frame.task >= worker.streams_.size()) return UCS_OK;
    UcxStream* const stream = worker.streams_[frame.task];
    if (stream == nullptr || !stream->knows(frame)) return UCS_OK;
    try {
      const UcxArrivals::Bytes arrived{static_cast<std::byte*>(bytes), len_bytes, may_stay};
      return stream->arrive(frame, arrived) ? UCS_INPROGRESS : UCS_OK;
    } catch (const std::exception&) {  // no memory; UCX is in C
      stream->note_failure();
      return UCS_OK;
    }
  }
  static void sent(void* request, ucs_status_t status, void* argument) {
    std::unique_ptr<UcxChunk> chunk(static_cast<UcxChunk*>(argument));
    UcxWorker& worker = *chunk->worker;
    worker.api_.request_free(request);
    --worker.sending_count_;
    if (UcxStream* const stream = worker.streams_[static_cast<std::size_t>(chunk->to)]) {
      stream->note_sent();
      if (status != UCS_OK) stream->note_failure();
    }
    worker.keep_free(std::move(chunk));
  }
  static void failed(void* stream, ucp_ep_h, ucs_status_t) {
    static_cast<UcxStream*>(stream)->note_failure();
  }
};

namespace {

constexpr unsigned frame_id = 0x51;  // of active messages
constexpr const char* tls_variable = "UCX_TLS";
// Names of UCX's transports that lead to other hosts and whose devices do not take frames from
// anywhere.
constexpr std::array fabrics{"rc", "dc", "ud", "srd", "gga", "ugni", "cxi"};

std::unexpected<Error> failed(const UcxApi& api, const char* what, ucs_status_t status) {
  return fail(Code::unsupported_operation,
              fmt::format("{} fails in UCX {}.{} ({}): {}", what, api.major, api.minor, api.path,
                          api.status_string(status)));
}

// UCX's TCP would connect with the worker locked, for minutes if the network drops what is sent.
// UCX reads this when it starts, and no call sets it. What the user has set counts.
class NoWaitingConnect {
 public:
  explicit NoWaitingConnect(bool is_wanted)
      : is_set_(is_wanted && std::getenv(variable) == nullptr) {
    if (is_set_) ::setenv(variable, "y", 1);
  }
  NoWaitingConnect(const NoWaitingConnect&) = delete;
  NoWaitingConnect& operator=(const NoWaitingConnect&) = delete;
  ~NoWaitingConnect() {
    if (is_set_) ::unsetenv(variable);
  }

  // UCX warns of settings that it has no use for.
  [[nodiscard]] static bool may_use_tcp() {
    const char* const setting = std::getenv(tls_variable);
    if (setting == nullptr) return true;
    const std::string_view text(setting);
    return !text.starts_with('^') && (text == "all" || text.contains("tcp"));
  }

 private:
  static constexpr const char* variable = "UCX_TCP_CONN_NB";
  bool is_set_;
};

}  // namespace

Result<std::unique_ptr<UcxWorker>> UcxWorker::start(const UcxApi& api, Devices devices,
                                                    const TaskCount& tasks) {
  const SignalsBlocked blocked;
  const NoWaitingConnect connect(devices == Devices::all && NoWaitingConnect::may_use_tcp());
  std::unique_ptr<UcxWorker> made(new UcxWorker(api, tasks));
  SHIMA_TRY(made->open_context(devices));
  made->read_report();
  SHIMA_TRY(made->open_worker());
  return made;
}

// What the user has set for UCX counts.
Status UcxWorker::open_context(Devices devices) {
  ucp_config_t* config = nullptr;
  if (const auto status = api_.config_read(nullptr, nullptr, &config); status != UCS_OK)
    return failed(api_, "reading the configuration", status);
  if (devices == Devices::all_but_tcp && std::getenv(tls_variable) == nullptr)
    std::ignore = api_.config_modify(config, "TLS", "^tcp");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const ucs_status_t status = api_.init_version(1, 13, &params, config, &context_);
  api_.config_release(config);
  if (status != UCS_OK) return failed(api_, "opening the devices", status);
  return {};
}

// UCX has no call that lists its devices, but prints them:
// "#  resource 3  :  md 2  dev 1  flags -- rc_verbs/mlx5_0:1".
void UcxWorker::read_report() {
  char* text = nullptr;
  std::size_t len_bytes = 0;
  std::FILE* const file = ::open_memstream(&text, &len_bytes);
  if (file == nullptr) return;
  api_.context_print_info(context_, file);
  std::fclose(file);
  std::istringstream lines(std::string(text, len_bytes));
  std::free(text);
  bool has_tcp = false;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_last_of(" \t");
    if (line.find("resource ") == std::string::npos || begin == std::string::npos) continue;
    const std::string device = line.substr(begin + 1);
    report_ += (report_.empty() ? "" : " ") + device;
    has_tcp |= device.starts_with("tcp");
    has_fabric_ |= std::ranges::any_of(fabrics, [&](const char* name) {
      return device.starts_with(std::string(name) + "_") ||
             device.starts_with(std::string(name) + "/");
    });
  }
  has_fabric_ &= !has_tcp;
}

Status UcxWorker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.events = UCP_WAKEUP_TX | UCP_WAKEUP_RX;
  if (const auto status = api_.worker_create(context_, &params, &worker_); status != UCS_OK)
    return failed(api_, "starting", status);
  if (const auto status = api_.worker_get_efd(worker_, &descriptor_); status != UCS_OK)
    return failed(api_, "sleeping", status);
  ucp_address_t* address = nullptr;
  std::size_t len_bytes = 0;
  if (const auto status = api_.worker_get_address(worker_, &address, &len_bytes); status != UCS_OK)
    return failed(api_, "getting an address", status);
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  address_.assign(bytes, bytes + len_bytes);
  api_.worker_release_address(worker_, address);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = frame_id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = UcxCalls::received;
  handler.arg = this;
  if (const auto status = api_.worker_set_am_recv_handler(worker_, &handler); status != UCS_OK)
    return failed(api_, "receiving", status);
  return {};
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) {
    finish_closing();
    api_.worker_destroy(worker_);
  }
  if (context_ != nullptr) api_.cleanup(context_);
}

std::unique_ptr<Stream> UcxWorker::carry(UniqueFd socket, int epoll, int task) {
  return std::make_unique<UcxStream>(*this, std::move(socket), epoll, task);
}

// The caller holds the lock. Returns whether anything has happened.
bool UcxWorker::drain() {
  constexpr int most_rounds = 64;
  int rounds = 0;
  while (rounds < most_rounds && api_.worker_progress(worker_) != 0) ++rounds;
  if (!closing_.empty()) free_closed();
  return rounds > 0;
}

void UcxWorker::progress() {
  const std::lock_guard hold(lock_);
  std::ignore = drain();
}

bool UcxWorker::arm() {
  const std::lock_guard hold(lock_);
  return !drain() && api_.worker_arm(worker_) == UCS_OK;
}

void UcxWorker::attach(UcxStream& stream) {
  const std::lock_guard hold(lock_);
  streams_[static_cast<std::size_t>(stream.task())] = &stream;
}

Result<ucp_ep*> UcxWorker::connect(std::span<const std::byte> address, UcxStream& stream) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = UcxCalls::failed, .arg = &stream};
  ucp_ep* endpoint = nullptr;
  const std::lock_guard hold(lock_);
  if (const auto status = api_.ep_create(worker_, &params, &endpoint); status != UCS_OK)
    return failed(api_, "connecting", status);
  return endpoint;
}

// Does not wait for the end: the calling thread may be the one that serves messages. Frames that
// UCX still has, it gives back meanwhile.
void UcxWorker::detach(UcxStream& stream, ucp_ep* endpoint) {
  const std::lock_guard hold(lock_);
  streams_[static_cast<std::size_t>(stream.task())] = nullptr;
  if (endpoint == nullptr) return;
  closing_.reserve(closing_.size() + 1);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = api_.ep_close_nbx(endpoint, &param);
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

void UcxWorker::finish_closing() {
  constexpr auto limit = std::chrono::seconds(1);
  const auto until = Clock::now() + limit;
  while ((!closing_.empty() || sending_count_ > 0) && Clock::now() < until) {
    api_.worker_progress(worker_);
    free_closed();
  }
}

// The caller holds the lock.
void UcxWorker::free_closed() {
  std::erase_if(closing_, [&](void* request) {
    if (api_.request_check_status(request) == UCS_INPROGRESS) return false;
    api_.request_free(request);
    return true;
  });
}

std::unique_ptr<UcxChunk> UcxWorker::make_chunk() {
  {
    const std::lock_guard hold(lock_);
    if (!free_.empty()) {
      auto chunk = std::move(free_.back());
      free_.pop_back();
      chunk->len = 0;
      return chunk;
    }
  }
  auto chunk = std::make_unique_for_overwrite<UcxChunk>();
  chunk->len = 0;
  chunk->worker = this;
  return chunk;
}

// The caller holds the lock.
void UcxWorker::keep_free(std::unique_ptr<UcxChunk> chunk) {
  if (free_.size() < most_free) free_.push_back(std::move(chunk));
}

bool UcxWorker::send(ucp_ep* endpoint, std::unique_ptr<UcxChunk> chunk) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = UcxCalls::sent;
  param.user_data = chunk.get();
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const std::lock_guard hold(lock_);
  void* const request = api_.am_send_nbx(endpoint, frame_id, &chunk->frame, sizeof chunk->frame,
                                         chunk->bytes.data(), chunk->len, &param);
  if (UCS_PTR_IS_PTR(request)) {
    streams_[static_cast<std::size_t>(chunk->to)]->note_sending();
    ++sending_count_;
    std::ignore = chunk.release();  // sent() takes it
    return true;
  }
  keep_free(std::move(chunk));
  return !UCS_PTR_IS_ERR(request);
}

void UcxWorker::release(void* bytes) { api_.am_data_release(worker_, bytes); }

}  // namespace shima::lapi
#endif
