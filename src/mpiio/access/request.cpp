#include "mpiio/access/request.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "mpiio/access/access.h"
#include "mpiio/comm/progress.h"
#include "mpiio/mpi/await.h"

namespace shima {
namespace {

struct RequestState {
  MPI_File file;
  MPI_Request handle = MPI_REQUEST_NULL;
  std::shared_ptr<Pending> pending = std::make_shared<Pending>();
  PreparedAccess access;
  Outcome64 outcome = 0;                 // once MPI knows that it is complete
  std::list<RequestFailure> failure{1};  // allocated early: query() may not throw
};

struct Known {
  std::shared_ptr<Pending> pending;
  RequestState* state = nullptr;  // of MPI, until it releases it
  bool complete = false;          // whether MPI knows
};

struct Registry {
  std::mutex lock;
  std::map<MPI_Request, Known> requests;
  std::vector<MPI_Request> handles;  // of all requests, sorted: faster to search than the map
  std::atomic<std::size_t> count{0};

  std::size_t promised = 0;  // requests that are being started, for which `handles` has room

  // Makes room for one more request. Every call is followed by add() or by withdraw().
  void promise() {
    const std::lock_guard hold(lock);
    handles.reserve(handles.size() + promised + 1);
    ++promised;
  }
  void withdraw() {
    const std::lock_guard hold(lock);
    --promised;
  }
  // Registers the request whose description is the only entry of `ready`. Allocates nothing: the
  // MPI knows the request already.
  void add(MPI_Request handle, std::map<MPI_Request, Known>& ready) {
    auto known = ready.extract(ready.begin());
    known.key() = handle;
    const std::lock_guard hold(lock);
    --promised;
    handles.insert(std::ranges::lower_bound(handles, handle, std::less<>{}), handle);
    requests.insert(std::move(known));
    count = handles.size();
  }
  void remove(MPI_Request handle) {
    const auto at = std::ranges::lower_bound(handles, handle, std::less<>{});
    if (at != handles.end() && *at == handle) handles.erase(at);
    requests.erase(handle);
    count = handles.size();
  }
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::list<RequestFailure>& failures() {
  thread_local std::list<RequestFailure> instance;
  return instance;
}

// MPI calls this for the status of a complete request.
int query(void* extra, MPI_Status* status) {
  auto& state = *static_cast<RequestState*>(extra);
  const Outcome64& outcome = state.outcome;
  set_status(status, outcome ? *outcome : 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  if (outcome) return MPI_SUCCESS;
  // MPI may call this any number of times before it reports the request as complete.
  const auto is_this = [&](const RequestFailure& known) { return known.request == state.handle; };
  if (std::ranges::any_of(failures(), is_this)) return MPI_SUCCESS;
  if (state.failure.empty())
    std::ignore = caught([&]() -> Status {
      state.failure.emplace_back();
      return {};
    });
  if (state.failure.empty()) return MPI_SUCCESS;
  state.failure.front() = {state.handle, state.file, outcome.error()};
  failures().splice(failures().end(), state.failure);
  return MPI_SUCCESS;
}

int release(void* extra) {
  const std::unique_ptr<RequestState> state(static_cast<RequestState*>(extra));
  const std::lock_guard hold(registry().lock);
  registry().remove(state->handle);
  return MPI_SUCCESS;
}

// Work under way cannot be cancelled.
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

Status start_request(MPI_File file, PreparedAccess prepared, Task& task, MPI_Request* request) {
  auto state = std::make_unique<RequestState>();
  state->file = file;
  state->access = std::move(prepared);
  const auto pending = state->pending;
  Task made(std::exchange(state->access.work, nullptr), pending, state->access.begin);
  std::map<MPI_Request, Known> ready;
  ready.emplace(MPI_REQUEST_NULL, Known{pending, state.get()});
  registry().promise();
  task = std::move(made);
  const Status started =
      checked(PMPI_Grequest_start(query, release, cancel, state.get(), &state->handle),
              "starting a request");
  if (!started) {
    task = {};  // its work refers to `state`
    registry().withdraw();
    return started;
  }
  // From here on nothing fails.
  *request = state->handle;
  std::ignore = state.release();  // MPI passes it to release()
  registry().add(*request, ready);
  return {};
}

bool any_requests() { return registry().count.load(std::memory_order_relaxed) != 0; }

bool any_ours(std::span<const MPI_Request> requests) {
  if (!any_requests()) return false;
  constexpr std::size_t few = 4;
  const std::lock_guard hold(registry().lock);
  const auto& handles = registry().handles;
  const auto among_requests = [requests](MPI_Request ours) {
    return std::ranges::find(requests, ours) != requests.end();  // compiles to vector instructions
  };
  if (handles.size() <= few) return std::ranges::any_of(handles, among_requests);
  return std::ranges::any_of(requests, [&handles](MPI_Request request) {
    return std::ranges::binary_search(handles, request, std::less<>{});
  });
}

std::shared_ptr<Pending> pending_of(MPI_Request request) {
  const std::lock_guard hold(registry().lock);
  const auto found = registry().requests.find(request);
  return found == registry().requests.end() ? nullptr : found->second.pending;
}

void complete_finished(std::span<const MPI_Request> requests) {
  // The state of a request whose work is over and that MPI does not know to be complete.
  const auto claim = [](MPI_Request request) -> RequestState* {
    const std::lock_guard hold(registry().lock);
    const auto found = registry().requests.find(request);
    if (found == registry().requests.end()) return nullptr;
    if (!found->second.pending->over()) {
      found->second.pending->hurry();
      return nullptr;
    }
    return std::exchange(found->second.complete, true) ? nullptr : found->second.state;
  };
  for (const MPI_Request request : requests) {
    RequestState* const state = claim(request);
    if (state == nullptr) continue;
    state->outcome = state->access.concluded(state->pending->wait(progress_mpi));
    state->access = {};  // here, since release() runs inside the MPI and may not call it
    PMPI_Grequest_complete(request);
  }
}

bool has_failures() { return !failures().empty(); }

std::list<RequestFailure> take_failures() { return std::exchange(failures(), {}); }

}  // namespace shima
