#include "tool/top/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "tool/top/recording.h"
#include "tool/top/sample_json.h"
#include "tool/top/screen.h"
#include "tool/top/source.h"
#include "tool/top/terminal.h"

namespace shima::tool {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds ms_of(double seconds) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(seconds));
}

class Recorder {
 public:
  [[nodiscard]] static Outcome<Recorder> open(const std::string& name) {
    Recorder recorder;
    recorder.file_.reset(name == "-" ? stdout : std::fopen(name.c_str(), "we"));
    if (!recorder.file_)
      return refuse(name, "cannot be written", "choose a file in a directory that can be written");
    recorder.put(recording_head());
    return recorder;
  }
  // False if it cannot be written any more.
  bool add(const Sample& sample) { return put(to_json(sample)); }

 private:
  bool put(const std::string& line) {
    std::fputs((line + "\n").c_str(), file_.get());
    return std::fflush(file_.get()) == 0;
  }
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

Outcome<int> print_once(const TopOptions& options) {
  auto source = LiveSource::open(options);
  if (!source) return std::unexpected(source.error());
  const Sample sample = source->look();
  const std::string text = options.json ? to_json(sample) + "\n" : plain_table(sample);
  std::fputs(text.c_str(), stdout);
  if (const std::string note = absence_note(sample); options.json && !note.empty())
    fmt::print(stderr, "shima: {}\n", note);
  for (const std::string& host : source->lost_hosts())
    fmt::print(stderr, "shima: {}: the connection has ended; check `ssh {} shima top`\n", host,
               host);
  return source->lost_hosts().empty() ? 0 : 1;
}

// Without a terminal: until the job is over, the reader is gone, or a signal comes.
Outcome<int> record(const TopOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  auto source = LiveSource::open(options);
  if (!source) return std::unexpected(source.error());
  auto recorder = Recorder::open(options.record);
  if (!recorder) return std::unexpected(recorder.error());
  auto next = Clock::now();
  for (int taken = 1;; ++taken) {
    const Sample sample = source->look();
    if (!recorder->add(sample)) return options.record == "-" ? 0 : 1;
    if ((is_over(sample) && !options.local) || taken == options.samples) return 0;
    next += ms_of(options.interval_s);
    std::this_thread::sleep_until(next);
  }
}

class LiveView {
 public:
  LiveView(LiveSource source, Recorder* recorder, const TopOptions& options)
      : source_(std::move(source)), recorder_(recorder), samples_(options.samples) {
    view_.job = source_.job();
    view_.interval_s = options.interval_s;
    view_.charset = Terminal::charset();
  }

  void run(Terminal& terminal) {
    auto next = Clock::now();
    while (true) {
      const auto now = Clock::now();
      if (now >= next) {
        if (!view_.is_paused && !take()) return;
        next = now + ms_of(view_.interval_s);
      }
      terminal.show(draw(view_, history_, terminal.size()));
      const auto rest = std::chrono::duration_cast<milliseconds>(next - Clock::now());
      const auto event = terminal.wait(std::max(rest, milliseconds(0)) + milliseconds(1));
      if (event.is_over) return;
      for (const Press& key : event.keys)
        if (press(view_, key, rows_of(view_, history_).size()) == Wish::quit) return;
    }
  }

 private:
  bool take() {
    Sample sample = source_.look();
    if (recorder_ != nullptr) recorder_->add(sample);
    history_.add(std::move(sample));
    return ++taken_ != samples_;
  }

  LiveSource source_;
  Recorder* recorder_;
  int samples_;
  int taken_ = 0;
  View view_;
  History history_;
};

Outcome<int> show_live(const TopOptions& options) {
  if (const auto fits = Terminal::check(); !fits) return std::unexpected(fits.error());
  auto source = LiveSource::open(options);
  if (!source) return std::unexpected(source.error());
  Outcome<Recorder> recorder;
  if (!options.record.empty()) {
    recorder = Recorder::open(options.record);
    if (!recorder) return std::unexpected(recorder.error());
  }
  LiveView view(*std::move(source), options.record.empty() ? nullptr : &*recorder, options);
  Terminal terminal;
  view.run(terminal);
  return 0;
}

class ReplayView {
 public:
  ReplayView(std::vector<Sample> samples, const std::string& name) : samples_(std::move(samples)) {
    view_.job = name;
    view_.is_replay = true;
    view_.length = samples_.size();
    view_.charset = Terminal::charset();
    go_to(1);
  }

  void run(Terminal& terminal) {
    while (true) {
      terminal.show(draw(view_, history_, terminal.size()));
      const auto event = terminal.wait(pause());
      if (event.is_over) return;
      for (const Press& key : event.keys) {
        const Wish wish = press(view_, key, rows_of(view_, history_).size());
        if (wish == Wish::quit) return;
        if (wish == Wish::step_forward || wish == Wish::step_back) step(wish);
      }
      if (event.keys.empty() && !view_.is_paused && Clock::now() >= next_)
        go_to(view_.position + 1);
    }
  }

 private:
  void step(Wish wish) {
    view_.is_paused = true;
    if (wish == Wish::step_forward) return go_to(view_.position + 1);
    if (view_.position > 1) go_to(view_.position - 1);
  }

  // Shows the first `count` samples.
  void go_to(std::size_t count) {
    count = std::min(count, samples_.size());
    if (count == view_.position + 1) {
      history_.add(samples_[count - 1]);
    } else if (count != view_.position) {
      history_ = {};
      for (std::size_t i = count - std::min(count, History::length); i < count; ++i)
        history_.add(samples_[i]);
    }
    view_.position = count;
    shown_at_ = Clock::now();
    plan_next();
  }

  void plan_next() {
    if (view_.position >= samples_.size()) {
      next_ = Clock::time_point::max();
      return;
    }
    const auto gap_ms = samples_[view_.position].time_ms - samples_[view_.position - 1].time_ms;
    next_ = shown_at_ + ms_of(static_cast<double>(gap_ms) / 1000 / view_.speed);
  }

  [[nodiscard]] milliseconds pause() {
    constexpr milliseconds longest(1000);
    plan_next();
    if (view_.is_paused || next_ == Clock::time_point::max()) return longest;
    const auto rest = std::chrono::duration_cast<milliseconds>(next_ - Clock::now());
    return std::clamp(rest + milliseconds(1), milliseconds(1), longest);
  }

  std::vector<Sample> samples_;
  View view_;
  History history_;
  Clock::time_point shown_at_;
  Clock::time_point next_;
};

Outcome<int> replay(const TopOptions& options) {
  std::ifstream file(options.replay);
  if (!file) return refuse(options.replay, "cannot be read", "check the name");
  auto samples = read_recording(file, options.replay);
  if (!samples) return std::unexpected(samples.error());
  if (options.once) {
    const Sample& last = samples->back();
    std::fputs((options.json ? to_json(last) + "\n" : plain_table(last)).c_str(), stdout);
    return 0;
  }
  if (const auto fits = Terminal::check(); !fits) return std::unexpected(fits.error());
  ReplayView view(*std::move(samples), options.replay);
  Terminal terminal;
  view.run(terminal);
  return 0;
}

}  // namespace

Outcome<int> run_top(const TopOptions& options) {
  if (options.json && !options.once)
    return refuse("--json", "it goes with --once only", "add --once, or use --record -");
  if (!options.replay.empty()) return replay(options);
  if (options.once) return print_once(options);
  const bool has_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!options.record.empty() && (options.record == "-" || !has_terminal)) return record(options);
  return show_live(options);
}

}  // namespace shima::tool
