#include "mpiio/access/request.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "mpiio/access/access.h"
#include "mpiio/comm/await.h"
#include "mpiio/comm/progress.h"

namespace shima {
namespace {

struct RequestState {
  MPI_File file;
  MPI_Request handle = MPI_REQUEST_NULL;
  std::shared_ptr<Pending> pending = std::make_shared<Pending>();
  PreparedAccess access;
  Outcome64 outcome = 0;  // once MPI has been told
};

struct Known {
  std::shared_ptr<Pending> pending;
  RequestState* state = nullptr;  // of MPI, until it releases it
  bool complete = false;          // MPI has been told
};

struct Registry {
  std::mutex lock;
  std::map<MPI_Request, Known> requests;
  std::vector<MPI_Request> handles;  // of all requests, sorted: faster to search than the map
  std::atomic<std::size_t> count{0};

  Known& add(MPI_Request handle) {
    handles.insert(std::ranges::lower_bound(handles, handle, std::less<>{}), handle);
    count = handles.size();
    return requests[handle];
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

std::vector<RequestFailure>& failures() {
  thread_local std::vector<RequestFailure> instance;
  return instance;
}

// MPI asks for the status of a request that is complete.
int query(void* extra, MPI_Status* status) {
  const auto& state = *static_cast<RequestState*>(extra);
  const Outcome64& outcome = state.outcome;
  set_status(status, outcome ? *outcome : 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  if (!outcome) failures().push_back({state.handle, state.file, outcome.error()});
  return MPI_SUCCESS;
}

int release(void* extra) {
  const std::unique_ptr<RequestState> state(static_cast<RequestState*>(extra));
  const std::lock_guard hold(registry().lock);
  registry().remove(state->handle);
  return MPI_SUCCESS;
}

// Work under way cannot be taken back.
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

Status start_request(MPI_File file, Worker* worker, PreparedAccess prepared, MPI_Request* request) {
  auto state = std::make_unique<RequestState>();
  state->file = file;
  Work work = std::exchange(prepared.work, nullptr);
  state->access = std::move(prepared);
  SHIMA_TRY(checked(PMPI_Grequest_start(query, release, cancel, state.get(), &state->handle),
                    "starting a request"));
  *request = state->handle;
  const auto pending = state->pending;
  {
    const std::lock_guard hold(registry().lock);
    Known& known = registry().add(state->handle);
    known = {pending, state.release()};  // MPI gives it back to release()
  }
  if (worker != nullptr) {
    worker->add(std::move(work),
                [pending](Outcome64 outcome) { pending->finish(std::move(outcome)); });
  } else {
    pending->finish(caught([&] { return work(); }));
  }
  return {};
}

bool any_requests() { return registry().count.load(std::memory_order_relaxed) != 0; }

bool any_ours(std::span<const MPI_Request> requests) {
  if (!any_requests()) return false;
  constexpr std::size_t few = 4;
  const std::lock_guard hold(registry().lock);
  const auto& handles = registry().handles;
  const auto among_requests = [requests](MPI_Request ours) {
    return std::ranges::find(requests, ours) != requests.end();  // becomes vector instructions
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
  // The state of a request that is over and not yet complete.
  const auto claim = [](MPI_Request request) -> RequestState* {
    const std::lock_guard hold(registry().lock);
    const auto found = registry().requests.find(request);
    if (found == registry().requests.end() || !found->second.pending->over()) return nullptr;
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

std::vector<RequestFailure> take_failures() { return std::exchange(failures(), {}); }

}  // namespace shima
