// A context and a worker of UCX: sends frames of streams and receives them.
//
// A thread that calls UCX holds the worker's lock, so UCX needs no locks of its own. A frame is an
// active message with a head that names the sender and carries a token, which only the two tasks
// know: it came over their authenticated connection. Frames with another token are dropped. Its
// thread sleeps while nothing happens.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lapi/stream/fabric.h"
#include "lapi/ucx/ucx_arrivals.h"

struct ucp_ep;
struct ucp_worker;
struct ucp_context;

namespace shima::lapi {

struct TaskCount {
  int own = 0;  // number of this task
  int all = 1;
};

struct UcxApi;
struct UcxCalls;
class UcxStream;
class UcxWorker;

// A frame that is sent; it stays as it is until UCX has sent it.
struct UcxChunk {
  static constexpr std::size_t capacity = std::size_t{64} << 10;
  UcxFrame frame;
  UcxWorker* worker = nullptr;
  int to = 0;
  std::size_t len = 0;
  std::array<std::byte, capacity> bytes;
};

class UcxWorker final : public Fabric {
 public:
  enum class Devices : std::uint8_t { all, all_but_tcp };

  [[nodiscard]] static Result<std::unique_ptr<UcxWorker>> start(const UcxApi& api, Devices devices,
                                                                const TaskCount& tasks);
  ~UcxWorker() override;

  [[nodiscard]] std::unique_ptr<Stream> carry(UniqueFd socket, int epoll, int task) override;
  void progress() override;
  [[nodiscard]] bool arm() override;
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  [[nodiscard]] bool is_polled_cheaply() const override { return has_fabric_; }
  // Whether all that UCX would use is a fabric, or memory of this node.
  [[nodiscard]] bool has_fabric() const { return has_fabric_; }
  [[nodiscard]] const std::string& report() const { return report_; }

  // For streams.
  [[nodiscard]] const UcxApi& api() const { return api_; }
  [[nodiscard]] int own_task() const { return tasks_.own; }
  [[nodiscard]] std::span<const std::byte> address() const { return address_; }
  [[nodiscard]] std::mutex& lock() { return lock_; }
  // From now on frames of the stream's task go to it.
  void attach(UcxStream& stream);
  // Until detach().
  [[nodiscard]] Result<ucp_ep*> connect(std::span<const std::byte> address, UcxStream& stream);
  // Nothing of the stream is used after this; its endpoint may be null.
  void detach(UcxStream& stream, ucp_ep* endpoint);
  [[nodiscard]] std::unique_ptr<UcxChunk> make_chunk();
  // False if the endpoint has failed.
  [[nodiscard]] bool send(ucp_ep* endpoint, std::unique_ptr<UcxChunk> chunk);
  // The caller holds the lock.
  void release(void* bytes);

 private:
  static constexpr std::size_t most_free = 64;

  UcxWorker(const UcxApi& api, const TaskCount& tasks)
      : api_(api), tasks_(tasks), streams_(static_cast<std::size_t>(tasks.all)) {
    free_.reserve(most_free);
  }
  [[nodiscard]] Status open_context(Devices devices);
  [[nodiscard]] Status open_worker();
  void read_report();
  [[nodiscard]] bool drain();
  void keep_free(std::unique_ptr<UcxChunk> chunk);
  void free_closed();
  void finish_closing();
  friend struct UcxCalls;

  const UcxApi& api_;
  TaskCount tasks_;
  ucp_context* context_ = nullptr;
  ucp_worker* worker_ = nullptr;
  int descriptor_ = -1;
  std::vector<std::byte> address_;
  std::string report_;  // of UCX: devices
  bool has_fabric_ = false;

  std::mutex lock_;
  std::vector<UcxStream*> streams_;  // of tasks
  std::vector<std::unique_ptr<UcxChunk>> free_;
  std::vector<void*> closing_;  // requests to close endpoints
  std::size_t sending_count_ = 0;
};

}  // namespace shima::lapi
