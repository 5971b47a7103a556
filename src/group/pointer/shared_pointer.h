// The file pointer that all members of an open file share.
//
// It is a word that members add to. There are two words, used in turn: a new view starts with a
// fresh one, which is cleared before the meeting that every view change needs anyway and unused
// until then, so that resetting the pointer costs no further meeting.
//
// If all members share memory, the words are in the node segment and moving the pointer is one
// atomic operation. Otherwise one member stores them and its PointerService answers the others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "group/pointer/pointer_client.h"
#include "group/pointer/pointer_service.h"

namespace shima {

class SharedPointer {
 public:
  SharedPointer() = default;
  SharedPointer(const SharedPointer&) = delete;
  SharedPointer& operator=(const SharedPointer&) = delete;
  virtual ~SharedPointer() = default;

  // Moves it and returns its previous position. Local, at any time.
  [[nodiscard]] virtual Result<std::int64_t> advance(std::int64_t distance) = 0;
  [[nodiscard]] virtual Status set(std::int64_t position) = 0;

  // Prepares a new word; called by every member, before a meeting.
  virtual void prepare(std::int64_t position) = 0;
  // Switches to the new word; called by every member, after the meeting, or by none.
  void commit() { turn_ = other_turn(); }

 protected:
  [[nodiscard]] std::uint32_t turn() const { return turn_; }
  [[nodiscard]] std::uint32_t other_turn() const { return 1 - turn_; }

 private:
  std::uint32_t turn_ = 0;
};

// In shared memory; zero bytes are its valid initial state.
using SharedPointerWords = std::array<std::atomic<std::int64_t>, 2>;

class PointerInMemory final : public SharedPointer {
 public:
  explicit PointerInMemory(SharedPointerWords& words) : words_(words) {}

  Result<std::int64_t> advance(std::int64_t distance) override {
    return words_[turn()].fetch_add(distance);
  }
  Status set(std::int64_t position) override {
    words_[turn()].store(position);
    return {};
  }
  void prepare(std::int64_t position) override { words_[other_turn()].store(position); }

 private:
  SharedPointerWords& words_;
};

// On the member that stores the words.
class PointerKept final : public SharedPointer {
 public:
  PointerKept(std::shared_ptr<PointerService> service, std::uint64_t file)
      : service_(std::move(service)), file_(file) {}
  ~PointerKept() override { service_->forget(file_); }

  Result<std::int64_t> advance(std::int64_t distance) override {
    return service_->serve({file_, turn(), PointerRequest::advance, distance});
  }
  Status set(std::int64_t position) override {
    service_->serve({file_, turn(), PointerRequest::set, position});
    return {};
  }
  void prepare(std::int64_t position) override {
    service_->serve({file_, other_turn(), PointerRequest::set, position});
  }

 private:
  std::shared_ptr<PointerService> service_;
  std::uint64_t file_;
};

// On the other members.
class PointerAsked final : public SharedPointer {
 public:
  PointerAsked(std::shared_ptr<PointerClient> client, std::uint64_t file)
      : client_(std::move(client)), file_(file) {}

  Result<std::int64_t> advance(std::int64_t distance) override {
    return client_->ask({file_, turn(), PointerRequest::advance, distance});
  }
  Status set(std::int64_t position) override {
    SHIMA_TRY(client_->ask({file_, turn(), PointerRequest::set, position}));
    return {};
  }
  void prepare(std::int64_t) override {}  // done by the member that stores the words

 private:
  std::shared_ptr<PointerClient> client_;
  std::uint64_t file_;
};

}  // namespace shima
