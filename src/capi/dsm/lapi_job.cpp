#include "capi/dsm/lapi_job.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

namespace shima::capi {
namespace {

// Indices of handlers.
constexpr int change_handler = 1;
constexpr int closing_handler = 2;

struct Change {
  std::int64_t task = 0;
  dsm::Granules range;
  std::uint64_t protection = 0;
};

// The jobs by their LAPI handles, for handlers. Never destroyed: the process may exit meanwhile.
struct Jobs {
  std::mutex mutex;
  std::map<lapi_handle_t, LapiJob*> all;
};
Jobs& jobs() {
  static auto* const made = new Jobs;
  return *made;
}

Code code_of_lapi(int code) {
  switch (code) {
    case LAPI_ERR_TASK_LOST:
      return Code::peer_lost;
    case LAPI_ERR_NOT_STARTED:
    case LAPI_ERR_ALL_HNDL_IN_USE:
      return Code::bad_handle;
    case LAPI_ERR_MEMORY_EXHAUSTED:
      return Code::no_memory;
    case LAPI_ERR_TIMEOUT:
      return Code::timed_out;
    case LAPI_ERR_BAD_PARAMETER:
      return Code::bad_argument;
    default:
      return Code::internal;
  }
}

}  // namespace

// What LAPI calls, on its threads.
struct JobHandlers {
  template <class Use>
  static void with_job(lapi_handle_t handle, Use use) {
    Jobs& known = jobs();
    const std::lock_guard hold(known.mutex);
    const auto found = known.all.find(handle);
    if (found != known.all.end()) use(*found->second);
  }
  static void on_error(lapi_handle_t* handle, int* code, lapi_err_t*, int*, int* source) {
    if (*code != LAPI_ERR_TASK_LOST) return;
    with_job(*handle, [&](LapiJob& job) { job.note_loss(*source); });
  }
  static void* on_change(lapi_handle_t* handle, void* header, uint* header_bytes, ulong*,
                         compl_hndlr_t** completion, void**) {
    *completion = nullptr;
    Change change;
    if (*header_bytes != sizeof change) return nullptr;
    std::memcpy(&change, header, sizeof change);
    with_job(*handle, [&](LapiJob& job) {
      if (dsm::Memory* const memory = job.memory_.load(std::memory_order_seq_cst))
        std::ignore = memory->note_change(static_cast<int>(change.task), change.range,
                                          static_cast<dsm::Protection>(change.protection));
    });
    return nullptr;
  }
  static void* on_closing(lapi_handle_t* handle, void* header, uint* header_bytes, ulong*,
                          compl_hndlr_t** completion, void**) {
    *completion = nullptr;
    std::int64_t task = 0;
    if (*header_bytes != sizeof task) return nullptr;
    std::memcpy(&task, header, sizeof task);
    with_job(*handle, [&](LapiJob& job) {
      if (task >= 0 && task < job.tasks_)
        job.closing_[static_cast<std::size_t>(task)].store(true, std::memory_order_seq_cst);
    });
    return nullptr;
  }
};

std::unexpected<Error> lapi_failed(int code) {
  std::array<char, LAPI_MAX_ERR_STRING> text{};
  LAPI_Msg_string(code, text.data());
  std::string_view what = text.data();
  const Code meant = code_of_lapi(code);
  const std::string name = std::string(name_of(meant)) + ": ";
  if (what.starts_with(name)) what.remove_prefix(name.size());
  return fail(meant, std::string(what));
}

Result<std::unique_ptr<LapiJob>> LapiJob::join() {
  std::unique_ptr<LapiJob> job(new LapiJob);
  lapi_info_t info{};
  info.err_hndlr = &JobHandlers::on_error;
  lapi_handle_t handle = 0;
  SHIMA_TRY(lapi_status(LAPI_Init(&handle, &info)));
  job->handle_ = handle;
  SHIMA_TRY(lapi_status(LAPI_Qenv(handle, TASK_ID, &job->task_)));
  SHIMA_TRY(lapi_status(LAPI_Qenv(handle, NUM_TASKS, &job->tasks_)));
  job->lost_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(job->tasks_));
  job->closing_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(job->tasks_));
  {
    Jobs& known = jobs();
    const std::lock_guard hold(known.mutex);
    known.all.emplace(handle, job.get());
  }
  SHIMA_TRY(lapi_status(
      LAPI_Addr_set(handle, reinterpret_cast<void*>(&JobHandlers::on_change), change_handler)));
  SHIMA_TRY(lapi_status(
      LAPI_Addr_set(handle, reinterpret_cast<void*>(&JobHandlers::on_closing), closing_handler)));
  return job;
}

LapiJob::~LapiJob() {
  if (handle_ == 0) return;
  LAPI_Term(handle_);
  Jobs& known = jobs();
  const std::lock_guard hold(known.mutex);
  known.all.erase(handle_);
}

void LapiJob::note_loss(int task) {
  if (task < 0 || task >= tasks_) return;
  lost_[static_cast<std::size_t>(task)].store(true, std::memory_order_seq_cst);
  if (dsm::Memory* const memory = memory_.load(std::memory_order_seq_cst)) memory->note_loss(task);
}

Status LapiJob::gather_words(std::span<const std::uint64_t> own, std::span<std::uint64_t> all) {
  std::vector<lapi_long_t> one(static_cast<std::size_t>(tasks_));
  for (std::size_t word = 0; word < own.size(); ++word) {
    SHIMA_TRY(lapi_status(LAPI_Address_init64(handle_, own[word], one.data())));
    for (std::size_t task = 0; task < one.size(); ++task) all[task * own.size() + word] = one[task];
  }
  return {};
}

Status LapiJob::agree(const Status& own, const char* what) {
  const auto code = static_cast<std::uint64_t>(own ? Code::ok : own.error().code);
  SHIMA_TRY_ASSIGN(const auto codes, gather(code));
  if (!own) return own;
  for (std::size_t task = 0; task < codes.size(); ++task)
    if (codes[task] != 0)
      return fail(
          static_cast<Code>(codes[task]),
          fmt::format("dsm_open: task {} has failed in {}; its message says why", task, what));
  return {};
}

Status LapiJob::note(int task, int handler, std::span<std::byte> header) {
  lapi_cntr_t noted{};
  SHIMA_TRY(lapi_status(LAPI_Amsend(
      handle_, static_cast<uint>(task), reinterpret_cast<void*>(std::intptr_t{handler}),
      header.data(), static_cast<uint>(header.size()), nullptr, 0, nullptr, nullptr, &noted)));
  return lapi_status(LAPI_Waitcntr(handle_, &noted, 1, nullptr));
}

Status LapiJob::tell(std::span<const int> tasks, dsm::Granules range, dsm::Protection protection) {
  Change change{task_, range, static_cast<std::uint64_t>(protection)};
  Status status;
  for (const int other : tasks) {
    const Status told = note(other, change_handler, std::as_writable_bytes(std::span(&change, 1)));
    if (!told && told.error().code != Code::peer_lost) status = told;
  }
  return status;
}

// The note is repeated because it also shows that the task is still there.
void LapiJob::await_closing() {
  std::int64_t own = task_;
  for (int other = 0; other < tasks_; ++other) {
    const auto& is_closing = closing_[static_cast<std::size_t>(other)];
    while (other != task_ &&
           note(other, closing_handler, std::as_writable_bytes(std::span(&own, 1))) &&
           !is_closing.load(std::memory_order_seq_cst) && !is_lost(other))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace shima::capi
