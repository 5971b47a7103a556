#include "tool/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shima::tool {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* reversed = "\x1b[7m";
constexpr const char* dim = "\x1b[2m";
constexpr const char* usual = "\x1b[0m";

struct Help {
  const char* keys;
  const char* text;
};
constexpr std::array help{
    Help{"q", "quit"},
    Help{"up down j k", "select a task; page up, page down, home, end"},
    Help{"enter", "show the selected task alone, or all again (also escape)"},
    Help{"n b w r i d", "sort by number, rate, bytes written, bytes read, waiting, queue depth;"},
    Help{"", "the same key again: in the other order"},
    Help{"/", "filter: type a word, enter; escape removes it"},
    Help{"space", "pause, or go on"},
    Help{"+ -", "sample more often or less often; in a replay: faster or slower"},
    Help{". ,", "in a replay: one sample forward or back"},
    Help{"? h", "this list"},
};

std::string duration(std::uint64_t ms) {
  const std::uint64_t seconds = ms / 1000;
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

const char* name_of(SortKey key) {
  constexpr std::array names{"number", "rate", "written", "read", "waiting", "queue"};
  return names[static_cast<std::size_t>(key)];
}

std::string rank_text(const TaskSample& task) {
  if (task.is_node()) return "node";
  return task.rank < 0 ? "-" : std::to_string(task.rank);
}

// The last part of a path.
std::string file_text(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

std::string activity(const Sample& sample, const TaskSample& task) {
  if (task.has_ended) return "has ended";
  if (task.is_node())
    return fmt::format("{} clients, {} requests at work", task.clients, task.queued);
  std::string text;
  const WaitReason reason = wait_reason(sample, task);
  if (!reason.text.empty())
    text = fmt::format("{} ({:.1f} s)", reason.text, static_cast<double>(task.asleep_ms) / 1000);
  if (task.call == call::none) return text;
  text += (text.empty() ? "" : ": ") + call_name(task.call);
  return task.file.empty() ? text : text + " " + file_text(task.file);
}

std::vector<double> moved(const std::deque<Rates>& rates) {
  std::vector<double> values;
  for (const Rates& one : rates) values.push_back(one.moved());
  return values;
}

double highest(const std::vector<const TaskSample*>& rows, const History& history) {
  double most = 0;
  for (const TaskSample* const task : rows)
    for (const Rates& one : history.of(*task)) most = std::max(most, one.moved());
  return most;
}

std::string title(const View& view, const History& history) {
  const Sample& sample = history.last();
  const auto tasks =
      std::ranges::count_if(sample.tasks, [](const TaskSample& task) { return !task.is_node(); });
  const auto ended = std::ranges::count_if(
      sample.tasks, [](const TaskSample& task) { return !task.is_node() && task.has_ended; });
  int all = -1;
  std::uint64_t up_ms = 0;
  for (const TaskSample& task : sample.tasks) {
    if (task.is_node()) continue;
    all = std::max(all, task.tasks);
    up_ms = std::max(up_ms, task.up_ms);
  }
  std::string text = fmt::format("shima top  {}  {} tasks", view.job, tasks);
  if (all > tasks) text += fmt::format(" of {} here", all);
  if (ended > 0) text += fmt::format(", {} ended", ended);
  text += "  " + duration(up_ms);
  if (view.is_replay)
    text += fmt::format("  replay {}/{} x{:g}", view.position, view.length, view.speed);
  if (view.is_paused) text += "  PAUSED";
  return text;
}

std::string totals(const View& view, const History& history) {
  const Rates sum = history.sum();
  std::string text = fmt::format("write {}/s  read {}/s  {:.0f} calls/s  sorted by {}{}",
                                 short_bytes(sum.written), short_bytes(sum.read), sum.calls,
                                 name_of(view.sort), view.descending ? ", the most first" : "");
  if (view.types_filter)
    text = "filter: " + view.filter + "_";
  else if (!view.filter.empty())
    text += "  filter: " + view.filter;
  return text;
}

// The places of the columns; the graph and the activity share what is left.
struct Columns {
  std::size_t graph = 10;
  bool has_host = false;
  bool has_program = false;
};

Columns columns_for(const Size& size, const Sample& sample) {
  const bool one_host = std::ranges::all_of(
      sample.tasks, [&](const TaskSample& task) { return task.host == sample.tasks.front().host; });
  return {.graph = size.columns < 100 ? std::size_t{8} : std::size_t{20},
          .has_host = !one_host,
          .has_program = size.columns >= 140};
}

std::string heading(const Columns& columns) {
  std::string text = fmt::format("{:>5} ", "rank");
  if (columns.has_host) text += fmt::format("{:<8} ", "host");
  text += fmt::format("{:>7} ", "pid");
  if (columns.has_program) text += fmt::format("{:<12} ", "program");
  return text + fmt::format("{:>6} {:>6} {} {:>6} {:>6} {:>5} {:>3} {}", "wr/s", "rd/s",
                            fit("rate", columns.graph), "writ", "read", "wait%", "que", "doing");
}

std::string row(const TaskSample& task, const History& history, const Columns& columns, double most,
                Charset charset) {
  const Rates now = history.now(task);
  std::string text = fmt::format("{:>5} ", rank_text(task));
  if (columns.has_host) text += fit(task.host, 8) + " ";
  text += fmt::format("{:>7} ", task.pid);
  if (columns.has_program) text += fit(task.program, 12) + " ";
  text += fmt::format(
      "{:>6} {:>6} {} {:>6} {:>6} {:>5.0f} {:>3} ", short_bytes(now.written), short_bytes(now.read),
      spark_line(moved(history.of(task)), most, columns.graph, charset),
      short_bytes(static_cast<double>(task.bytes_written())),
      short_bytes(static_cast<double>(task.bytes_read())), now.waiting * 100, task.queued);
  return text + activity(history.last(), task);
}

void add_counters(std::vector<std::string>& lines, const TaskSample& task) {
  lines.push_back(fmt::format("  {:<20} {:>12} {:>16} {:>12}", "kind", "calls", "bytes", "a call"));
  for (std::size_t i = 0; i < counted_kinds; ++i) {
    const Tally& tally = task.counted[i];
    if (tally.calls == 0) continue;
    if (i == static_cast<std::size_t>(Counted::wait)) {
      lines.push_back(fmt::format("  {:<20} {:>12} {:>14} ms {:>9} us", counted_names[i],
                                  tally.calls, tally.bytes / 1'000'000,
                                  tally.bytes / tally.calls / 1000));
    } else {
      lines.push_back(fmt::format(
          "  {:<20} {:>12} {:>16} {:>12}", counted_names[i], tally.calls, tally.bytes,
          short_bytes(static_cast<double>(tally.bytes) / static_cast<double>(tally.calls))));
    }
  }
}

std::vector<std::string> task_lines(const TaskSample& task, const History& history,
                                    const View& view, const Size& size) {
  std::vector<std::string> lines{
      fmt::format("{}  {}  process {} on {}, of {} tasks, up {}",
                  task.is_node() ? "I/O node" : "rank " + rank_text(task), task.program, task.pid,
                  task.host, task.tasks, duration(task.up_ms)),
      "now: " + activity(history.last(), task), ""};
  const auto& rates = history.of(task);
  const std::size_t width = size.columns > 30 ? size.columns - 30 : 10;
  const auto graph = [&](const char* name, double Rates::* which, double least) {
    std::vector<double> values;
    double most = least;
    for (const Rates& one : rates) {
      values.push_back(one.*which);
      most = std::max(most, one.*which);
    }
    lines.push_back(fmt::format("  {:<8} {} {}", name,
                                spark_line(values, most, width, view.charset),
                                which == &Rates::waiting ? fmt::format("max {:.0f}%", most * 100)
                                                         : "max " + short_bytes(most) + "/s"));
  };
  graph("written", &Rates::written, 0);
  graph("read", &Rates::read, 0);
  graph("waiting", &Rates::waiting, 0);
  lines.emplace_back();
  add_counters(lines, task);
  lines.emplace_back();
  if (!task.files.empty())
    lines.push_back(fmt::format("  {:>10} {:>10}  {}", "written", "read",
                                task.is_node() ? "target" : "open file"));
  for (const FileSample& file : task.files)
    lines.push_back(fmt::format("  {:>10} {:>10}  {}",
                                short_bytes(static_cast<double>(file.written.bytes)),
                                short_bytes(static_cast<double>(file.read.bytes)), file.name));
  return lines;
}

std::vector<std::string> help_lines() {
  std::vector<std::string> lines{"Keys of shima top; any key returns", ""};
  for (const Help& one : help) lines.push_back(fmt::format("  {:<14} {}", one.keys, one.text));
  return lines;
}

void add_rows(std::vector<std::string>& lines, View& view, const History& history,
              const std::vector<const TaskSample*>& rows, const Size& size) {
  const Columns columns = columns_for(size, history.last());
  const std::size_t around = lines.size() + 2;  // the heading and the foot
  const std::size_t room = size.lines > around ? size.lines - around : 1;
  view.first = std::min(view.first, view.selected);
  if (view.selected >= view.first + room) view.first = view.selected - room + 1;
  if (view.first + room > rows.size()) view.first = rows.size() > room ? rows.size() - room : 0;
  lines.push_back(bold + fit(heading(columns), size.columns) + usual);
  const double most = highest(rows, history);
  for (std::size_t i = view.first; i < std::min(rows.size(), view.first + room); ++i) {
    const std::string text = fit(row(*rows[i], history, columns, most, view.charset), size.columns);
    const char* const style = i == view.selected ? reversed : rows[i]->has_ended ? dim : "";
    lines.push_back(*style != '\0' ? style + text + usual : text);
  }
}

std::string foot(const View& view) {
  return view.is_replay ? "q quit  ? keys  space pause  . , step  + - speed  / filter"
                        : "q quit  ? keys  enter one task  n b w r i d sort  / filter  + - pace";
}

}  // namespace

std::string short_bytes(double bytes) {
  constexpr std::array units{"", "K", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  constexpr double most = 1023.5;
  for (; bytes >= most && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f}{}", bytes, unit > 0 && bytes < 9.95 ? 1 : 0, units[unit]);
}

std::string fit(const std::string& text, std::size_t width) {
  std::string fitted;
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size() && used < width; ++used) {
    std::size_t next = i + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0U) == 0x80U) ++next;
    fitted.append(text, i, next - i);
    i = next;
  }
  return fitted + std::string(width - used, ' ');
}

std::vector<std::string> draw(View& view, const History& history, const Size& size) {
  const auto rows = rows_of(view, history);
  view.selected = rows.empty() ? 0 : std::min(view.selected, rows.size() - 1);
  std::vector<std::string> lines{bold + fit(title(view, history), size.columns) + usual,
                                 fit(totals(view, history), size.columns)};
  if (const std::string note = absence_note(history.last()); !note.empty())
    lines.push_back(fit(note, size.columns));
  const auto add_all = [&](const std::vector<std::string>& more) {
    for (const std::string& line : more) lines.push_back(fit(line, size.columns));
  };
  if (view.shows_help)
    add_all(help_lines());
  else if (view.shows_task && !rows.empty())
    add_all(task_lines(*rows[view.selected], history, view, size));
  else
    add_rows(lines, view, history, rows, size);
  lines.resize(std::max<std::size_t>(size.lines, 1));
  if (size.lines > 3) lines.back() = dim + fit(foot(view), size.columns) + usual;
  return lines;
}

std::string plain_table(const Sample& sample) {
  std::string text =
      fmt::format("{:>5} {:<16} {:>8} {:<16} {:>14} {:>14} {:>10} {:>9}  {}\n", "rank", "host",
                  "pid", "program", "written", "read", "calls", "wait_ms", "doing");
  for (const TaskSample& task : sample.tasks)
    text +=
        fmt::format("{:>5} {:<16} {:>8} {:<16} {:>14} {:>14} {:>10} {:>9}  {}\n", rank_text(task),
                    task.host, task.pid, task.program, task.bytes_written(), task.bytes_read(),
                    task.calls(), task.wait_ns() / 1'000'000, activity(sample, task));
  if (const std::string note = absence_note(sample); !note.empty()) text += note + "\n";
  return text;
}

}  // namespace shima::tool
