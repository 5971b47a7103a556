// The tasks on other nodes: a TCP connection for each pair that talks, made when first needed.
//
// If both tasks of a pair have a Fabric, their data goes by that, and the connection only shows
// that they live.
//
// The lower task of a pair connects, the higher one asks it to through the meeting place, so two
// connections never cross. Connections are authenticated by secrets that the tasks hear from the
// meeting place. Who receives: a thread of the program that waits or polls, or else one thread of
// the transport, which sleeps at all sockets. That thread goes *off duty* when it finds that the
// program attends, and returns once nothing has attended for a millisecond, so that it is not woken
// for bytes that another thread receives. It also hears the meeting place, and sends what has been
// gathered if no other thread does.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "lapi/stream/fabric.h"
#include "lapi/stream/stream.h"
#include "lapi/ucx/open_fabric.h"
#include "lapi/way/bell.h"
#include "lapi/way/meeting.h"
#include "lapi/way/transport.h"
#include "net/server.h"

namespace shima::lapi {

class TcpTransport : public Transport {
 public:
  // Connects to the meeting place, and waits until it says which memory the node's tasks share.
  [[nodiscard]] static Result<std::unique_ptr<TcpTransport>> join(const ServiceAddress& place,
                                                                  const TaskNumber& number,
                                                                  Carrier carrier = Carrier::tcp);
  ~TcpTransport() override;
  // What the place has said: `make` or `map`.
  [[nodiscard]] const MeetingNotice& memory() const { return memory_; }
  // Lets the others see the task, which has made this memory, if any.
  [[nodiscard]] Status settle(const SharedRef& made, Bell& bell);

  struct Events {
    std::function<void(int)> on_lost;
    std::function<void()> serve;
  };
  // Starts the thread, which calls the events.
  [[nodiscard]] Status watch(Events events);
  void show_left();
  void leave();
  void show_meetings(std::uint64_t count) { own_meetings_ = count; }
  // Grows whenever a task appears or leaves.
  [[nodiscard]] std::uint32_t changes() const { return changes_.load(std::memory_order_seq_cst); }

  // Sends all that has been gathered.
  void flush();
  // Whether something is left, because a stream has no room.
  [[nodiscard]] bool has_unsent();
  // For the dispatcher: sends gathered messages, and receives what has arrived.
  void begin_round();
  void look();
  // Sends replies at once, unless the program is about to send.
  void end_round(bool program_goes_on);

  // A thread of the program that sleeps at the sockets; at most one. False if there is one.
  [[nodiscard]] bool begin_sleep() { return !has_sleeper_.exchange(true); }
  void sleep(std::uint32_t limit_us);
  void end_sleep();
  void wake_sleeper();
  // A thread of the program attends from now on.
  void note_attendance() { attendances_.fetch_add(1, std::memory_order_relaxed); }
  // Threads of the program have ended to attend, or the bell's settings have changed.
  void look_at_bell();
  // A thread of the program sleeps elsewhere: the transport's thread receives.
  void call_on_duty();
  // Whether a poll costs little, so that waiting threads may poll for a while.
  [[nodiscard]] bool is_polled_cheaply() const { return fabric_ && fabric_->is_polled_cheaply(); }

  [[nodiscard]] Standing standing(int task) override;
  [[nodiscard]] std::uint64_t meetings(int task) override { return peer(task).meetings; }
  void give_up(int task, std::string_view what) override;
  void stop_receiving(int task) override {
    if (Stream* stream = connection(task)) stream->abort();
  }
  [[nodiscard]] bool wants_last(int task) override {
    const Stream* stream = connection(task);
    return stream != nullptr && stream->is_kernels() && !stream->has_closed();
  }
  void note_last(int task) override {
    if (Stream* stream = connection(task)) stream->note_last();
  }
  [[nodiscard]] std::size_t push(int task, std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_room(int task) override;
  void notify(int) override {}
  [[nodiscard]] std::size_t pull(int task, std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_data(int task) override;
  [[nodiscard]] Reach reach(int) override { return Reach::none; }
  [[nodiscard]] Status copy(int task, Direction direction, std::span<const Piece> here,
                            std::span<const Piece> there) override;
  void wake_waiters(int) override {}

 private:
  struct Peer {
    std::atomic<Standing> shown{Standing::absent};
    std::atomic<bool> is_lost{false};
    std::atomic<bool> is_broken{false};      // nothing more is read from it
    std::atomic<bool> is_wanted{false};      // a connection has been asked for
    std::atomic<bool> is_connecting{false};  // the connector is about to connect
    std::atomic<bool> end_seen{false};       // of the connection
    std::atomic<std::uint64_t> meetings{0};
    std::atomic<Stream*> connection{nullptr};
    std::unique_ptr<Stream> owned;
    bool is_known_lost = false;  // these are the thread's
    bool is_told = false;        // that the task is lost
    Clock::time_point ended_at;  // when it has heard of the end
  };

  // How long a task whose connection has ended is not yet lost: the meeting place knows more.
  static constexpr auto end_grace = std::chrono::milliseconds(500);

  explicit TcpTransport(const TaskNumber& number);
  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] Stream* connection(int task) {
    return peer(task).connection.load(std::memory_order_acquire);
  }

  // Sleeping.
  [[nodiscard]] bool has_arrived();
  [[nodiscard]] bool may_sleep();

  // Connecting (tcp_connect.cpp).
  void choose_carrier(Carrier carrier);
  [[nodiscard]] Status meet(const ServiceAddress& place);
  [[nodiscard]] Status start_server(const ServiceAddress& place);
  [[nodiscard]] bool welcome(Server::Visitor& visitor);
  void want(int task);
  void order_connection(int task);
  void connect_all();
  void connect(int task);
  [[nodiscard]] bool still_runs(int task);
  struct Reached {
    UniqueFd socket;
    bool by_fabric = false;
  };
  [[nodiscard]] Result<Reached> reach_peer(int task);
  void adopt(int task, Reached peer);
  void tell_place(const MeetingNotice& notice);
  void send_all_gathered();
  void wait_until_delivered(std::chrono::seconds limit, bool also_by_kernel);
  // Not if its task has left: then nothing finds out whether there is room again.
  [[nodiscard]] bool is_unsent(const Stream& stream) {
    return stream.has_gathered() && !stream.has_closed() && !stream.has_ended() &&
           !peer(stream.task()).is_lost;
  }

  // The thread (tcp_thread.cpp).
  void run();
  void wait();
  [[nodiscard]] std::int64_t patience_us();
  void kick();
  void serve_sockets();
  [[nodiscard]] bool is_attended();
  void go_off_duty();
  void think_about_duty();
  void send_gathered();
  template <class Flush>
  void flush_all(Flush flush);
  void hear();
  void heed(const MeetingNotice& notice);
  void heed_joined(const MeetingNotice& notice);
  void heed_left(const MeetingNotice& notice);
  void heed_lost_place();
  void lose(int task);
  void tell_loss(int task);
  void lose_all(bool connected);
  void check_ends();
  void lose_if_cut(int task);
  void note_end(int task);
  void changed();
  // Something has been sent: looks from time to time whether the other machine answers.
  void await_answers() {
    if (!awaits_answers_.load(std::memory_order_seq_cst) && !awaits_answers_.exchange(true)) kick();
  }
  void check_answers();
  void tick();

  TaskNumber number_;
  UniqueFd epoll_;
  std::unique_ptr<Fabric> fabric_;  // may be null; outlives the streams
  std::vector<Peer> peers_;
  Bell* bell_ = nullptr;
  Events events_;
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::uint64_t> own_meetings_{0};

  UniqueFd meeting_;
  std::atomic<bool> has_place_{true};
  std::mutex telling_;
  MeetingNotice memory_;
  std::vector<std::byte> heard_;  // of notices
  std::size_t heard_bytes_ = 0;
  std::unique_ptr<Server> server_;

  std::mutex adopting_;
  std::vector<std::atomic<Stream*>> open_;  // the first open_count_
  std::atomic<std::size_t> open_count_{0};
  std::mutex ordering_;
  std::condition_variable ordered_;
  std::deque<int> orders_;                 // of connections
  std::vector<int> unreachable_;           // tasks, for the thread
  std::vector<ServiceAddress> addresses_;  // of tasks, under ordering_
  std::thread connector_;

  UniqueFd wake_;   // eventfd: for the thread
  UniqueFd nudge_;  // eventfd: for a thread of the program that sleeps at the sockets
  std::atomic<bool> has_sleeper_{false};
  std::atomic<bool> has_gathered_{false};
  std::atomic<std::thread::id> in_round_{};  // the dispatcher, whose messages are replies
  std::atomic<bool> gather_clock_{false};    // the thread looks at what has been gathered
  std::atomic<bool> on_duty_{true};
  std::atomic<bool> is_resting_{false};  // off duty without a clock
  std::atomic<bool> is_called_{false};
  std::atomic<std::uint64_t> attendances_{0};
  std::uint64_t seen_attendances_ = 0;
  Clock::time_point looked_at_duty_;  // the thread's
  std::atomic<bool> awaits_answers_{false};
  Clock::time_point next_check_of_answers_;  // the thread's
  std::atomic<bool> has_clock_{false};       // some stream needs a clock
  std::atomic<bool> has_ends_{false};        // some connection has ended, and it is not known why
  std::atomic<bool> stopping_{false};
  std::atomic<bool> has_left_{false};
  std::thread thread_;
};

}  // namespace shima::lapi
