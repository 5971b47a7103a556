// What `shima top` draws: a function of the samples, of what the user has chosen, and of the size
// of the terminal. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tool/top/history.h"

namespace shima::tool {

enum class SortKey { rank, rate, written, read, waiting, queue };

// Keys that are not characters.
enum class Key { none, up, down, page_up, page_down, home, end, enter, escape, backspace };

struct Press {
  Key key = Key::none;
  char32_t character = 0;
};

// What the user has chosen.
struct View {
  SortKey sort = SortKey::rank;
  bool descending = false;
  std::string filter = {};  // tasks whose line has this word
  bool types_filter = false;
  bool shows_help = false;
  bool shows_task = false;  // the selected one alone
  bool is_paused = false;
  std::size_t selected = 0;  // among the rows
  std::size_t first = 0;     // row on top
  double interval_s = 1;
  std::string job = {};
  Charset charset = Charset::unicode;
  // Of a replay.
  bool is_replay = false;
  double speed = 1;
  std::size_t position = 0;  // samples shown
  std::size_t length = 0;    // samples of the recording
};

// What a key asks of the caller.
enum class Wish { nothing, quit, step_forward, step_back };

// Applies a key to the view.
[[nodiscard]] Wish press(View& view, const Press& key, std::size_t row_count);

// The tasks that the view shows, in its order.
[[nodiscard]] std::vector<const TaskSample*> rows_of(const View& view, const History& history);

struct Size {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

// At most size.lines lines of at most size.columns characters each; those of the terminal's own
// sequences not counted. Adjusts the view's selection to what is there.
[[nodiscard]] std::vector<std::string> draw(View& view, const History& history, const Size& size);

// A table without a terminal's sequences, for `--once`.
[[nodiscard]] std::string plain_table(const Sample& sample);

// "1.5M": at most five characters.
[[nodiscard]] std::string short_bytes(double bytes);

// Cuts or fills a text to a number of characters.
[[nodiscard]] std::string fit(const std::string& text, std::size_t width);

}  // namespace shima::tool
