// Keys of `shima top`, and which rows its view shows.
#include <algorithm>
#include <functional>

#include "tool/top/screen.h"

namespace shima::tool {
namespace {

constexpr double shortest_interval_s = 0.1;
constexpr double longest_interval_s = 60;
constexpr double slowest = 1.0 / 64;
constexpr double fastest = 256;

void type_filter(View& view, const Press& key) {
  if (key.key == Key::enter) {
    view.types_filter = false;
  } else if (key.key == Key::escape) {
    view.types_filter = false;
    view.filter.clear();
  } else if (key.key == Key::backspace) {
    if (!view.filter.empty()) view.filter.pop_back();
  } else if (key.character >= ' ' && key.character < 0x7f) {
    view.filter += static_cast<char>(key.character);
  }
}

void move(View& view, Key key, std::size_t rows) {
  constexpr std::size_t page = 10;
  const std::size_t last = rows == 0 ? 0 : rows - 1;
  std::size_t& at = view.selected;
  switch (key) {
    case Key::up:
      at -= at > 0 ? 1 : 0;
      break;
    case Key::down:
      at = std::min(at + 1, last);
      break;
    case Key::page_up:
      at -= std::min(at, page);
      break;
    case Key::page_down:
      at = std::min(at + page, last);
      break;
    case Key::home:
      at = 0;
      break;
    case Key::end:
      at = last;
      break;
    default:
      break;
  }
}

void sort_by(View& view, SortKey key) {
  view.descending = view.sort == key ? !view.descending : key != SortKey::rank;
  view.sort = key;
}

void change_pace(View& view, bool faster) {
  if (view.is_replay)
    view.speed = std::clamp(faster ? view.speed * 2 : view.speed / 2, slowest, fastest);
  else
    view.interval_s = std::clamp(faster ? view.interval_s / 2 : view.interval_s * 2,
                                 shortest_interval_s, longest_interval_s);
}

Wish press_character(View& view, char32_t character) {
  switch (character) {
    case 'q':
      return Wish::quit;
    case '?':
    case 'h':
      view.shows_help = true;
      break;
    case '/':
      view.types_filter = true;
      view.filter.clear();
      break;
    case ' ':
    case 'p':
      view.is_paused = !view.is_paused;
      break;
    case '+':
      change_pace(view, true);
      break;
    case '-':
      change_pace(view, false);
      break;
    case '.':
      return Wish::step_forward;
    case ',':
      return Wish::step_back;
    case 'n':
      sort_by(view, SortKey::rank);
      break;
    case 'b':
      sort_by(view, SortKey::rate);
      break;
    case 'w':
      sort_by(view, SortKey::written);
      break;
    case 'r':
      sort_by(view, SortKey::read);
      break;
    case 'i':
      sort_by(view, SortKey::waiting);
      break;
    case 'd':
      sort_by(view, SortKey::queue);
      break;
    case 'j':
      view.selected += 1;
      break;
    case 'k':
      view.selected -= view.selected > 0 ? 1 : 0;
      break;
    default:
      break;
  }
  return Wish::nothing;
}

double value_of(const TaskSample& task, const History& history, SortKey key) {
  switch (key) {
    case SortKey::rank:
      return task.rank;
    case SortKey::rate:
      return history.now(task).moved();
    case SortKey::written:
      return static_cast<double>(task.bytes_written());
    case SortKey::read:
      return static_cast<double>(task.bytes_read());
    case SortKey::waiting:
      return static_cast<double>(task.wait_ns());
    case SortKey::queue:
      return task.queued;
  }
  return 0;
}

bool has_word(const TaskSample& task, const Sample& sample, const std::string& word) {
  const auto has = [&](const std::string& text) { return text.find(word) != std::string::npos; };
  return word.empty() || has(task.host) || has(task.program) || has(task.kind) || has(task.file) ||
         has(call_name(task.call)) || has(std::to_string(task.pid)) ||
         std::to_string(task.rank) == word || has(wait_reason(sample, task).text) ||
         std::ranges::any_of(task.files, [&](const FileSample& file) { return has(file.name); });
}

}  // namespace

Wish press(View& view, const Press& key, std::size_t row_count) {
  if (view.types_filter) {
    type_filter(view, key);
    return Wish::nothing;
  }
  if (view.shows_help) {
    view.shows_help = false;
    return key.character == 'q' ? Wish::quit : Wish::nothing;
  }
  if (key.character != 0) return press_character(view, key.character);
  if (key.key == Key::enter) view.shows_task = !view.shows_task;
  if (key.key == Key::escape || key.key == Key::backspace) {
    if (!view.shows_task) view.filter.clear();
    view.shows_task = false;
  }
  move(view, key.key, row_count);
  return Wish::nothing;
}

std::vector<const TaskSample*> rows_of(const View& view, const History& history) {
  std::vector<const TaskSample*> rows;
  for (const TaskSample& task : history.last().tasks)
    if (has_word(task, history.last(), view.filter)) rows.push_back(&task);
  std::ranges::stable_sort(rows, [&](const TaskSample* a, const TaskSample* b) {
    if (a->is_node() != b->is_node()) return b->is_node();
    const double first = value_of(*a, history, view.sort);
    const double second = value_of(*b, history, view.sort);
    return view.descending ? first > second : first < second;
  });
  return rows;
}

}  // namespace shima::tool
