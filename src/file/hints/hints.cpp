#include "file/hints/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

namespace shima {
namespace {

constexpr std::int64_t max_int = std::numeric_limits<int>::max();
constexpr std::int64_t max_bytes = std::int64_t{1} << 62;
constexpr std::size_t longest_text = 4096;

// A row of the table: how the text of a key is parsed from and written to its fields.
struct Rule {
  std::string_view key;
  std::string_view rule;                                  // "must be ..."
  std::string_view example;                               // a valid value
  bool (*set)(Hints& hints, std::string_view value);      // false: the value is invalid
  std::optional<std::string> (*get)(const Hints& hints);  // nothing: not set
};

std::optional<std::int64_t> parse_number(std::string_view text, int base, std::int64_t lowest,
                                         std::int64_t highest) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if (number < lowest || number > highest) return {};
  return number;
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view units = "KMG";
  const char last = text.empty() ? '\0' : text.back();
  const std::size_t unit =
      units.find(last >= 'a' && last <= 'z' ? static_cast<char>(last - 'a' + 'A') : last);
  if (unit == std::string_view::npos) return parse_number(text, 10, 0, max_bytes);
  const int shift = 10 * (static_cast<int>(unit) + 1);
  const auto number = parse_number(text.substr(0, text.size() - 1), 10, 0, max_bytes >> shift);
  if (!number) return {};
  return *number << shift;
}

namespace {

template <class Value>
struct Word {
  std::string_view text;
  Value value;
};

constexpr std::array<Word<Toggle>, 3> toggles{
    {{"automatic", Toggle::automatic}, {"enable", Toggle::enable}, {"disable", Toggle::disable}}};
constexpr std::array<Word<std::optional<Path>>, 5> paths{{{"automatic", std::nullopt},
                                                          {"single_copy", Path::single_copy},
                                                          {"pull", Path::pull},
                                                          {"pack", Path::pack},
                                                          {"message", Path::message}}};

constexpr std::array<Word<std::optional<Strategy>>, 6> strategies{
    {{"auto", std::nullopt},
     {"disk_directed", Strategy::disk_directed},
     {"two_phase", Strategy::two_phase},
     {"subgroup", Strategy::subgroup},
     {"independent", Strategy::independent},
     {"io_node", Strategy::io_node}}};

constexpr std::array<Word<std::optional<RequestsTo>>, 3> requests{
    {{"automatic", std::nullopt}, {"all", RequestsTo::all}, {"touched", RequestsTo::touched}}};

template <auto& words, auto field>
bool set_word(Hints& hints, std::string_view value) {
  for (const auto& word : words) {
    if (word.text != value) continue;
    hints.*field = word.value;
    return true;
  }
  return false;
}

template <auto& words, auto field>
std::optional<std::string> get_word(const Hints& hints) {
  for (const auto& word : words) {
    if (word.value == hints.*field) return std::string(word.text);
  }
  return {};
}

template <auto field, int lowest>
bool set_int(Hints& hints, std::string_view value) {
  const auto number = parse_number(value, 10, lowest, max_int);
  if (number) hints.*field = static_cast<int>(*number);
  return number.has_value();
}

template <auto field>
bool set_bytes(Hints& hints, std::string_view value) {
  const auto number = parse_bytes(value);
  if (number) hints.*field = static_cast<std::uint64_t>(*number);
  return number.has_value();
}

template <auto field>
std::optional<std::string> get_number(const Hints& hints) {
  return fmt::format("{}", hints.*field);
}

// For fields whose default means "never set".
template <auto field>
std::optional<std::string> get_if_set(const Hints& hints) {
  if (hints.*field == Hints{}.*field) return {};
  return fmt::format("{}", hints.*field);
}

template <auto field>
bool set_flag(Hints& hints, std::string_view value) {
  if (value != "true" && value != "false") return false;
  hints.*field = value == "true";
  return true;
}

template <auto field>
std::optional<std::string> get_flag(const Hints& hints) {
  return hints.*field ? "true" : "false";
}

template <auto field>
bool set_text(Hints& hints, std::string_view value) {
  const auto is_plain = [](char c) { return c > ' ' && c < 127; };
  if (value.size() > longest_text || !std::ranges::all_of(value, is_plain)) return false;
  hints.*field = value;
  return true;
}

template <auto field>
std::optional<std::string> get_text(const Hints& hints) {
  if ((hints.*field).empty()) return {};
  return hints.*field;
}

bool set_subgroup(Hints& hints, std::string_view value) {
  if (value == "auto" || value == "off") {
    hints.shima_subgroup = value == "auto" ? 0 : 1;
    return true;
  }
  return set_int<&Hints::shima_subgroup, 1>(hints, value);
}

std::optional<std::string> get_subgroup(const Hints& hints) {
  return hints.shima_subgroup == 0 ? "auto" : fmt::format("{}", hints.shima_subgroup);
}

bool set_file_perm(Hints& hints, std::string_view value) {
  const auto number = parse_number(value, 8, 0, 07777);
  if (number) hints.file_perm = static_cast<int>(*number);
  return number.has_value();
}

std::optional<std::string> get_file_perm(const Hints& hints) {
  if (hints.file_perm < 0) return {};
  return fmt::format("{:04o}", hints.file_perm);
}

// MPI's reserved hint combines ROMIO's hints for reads and writes.
bool set_collective_buffering(Hints& hints, std::string_view value) {
  if (value != "true" && value != "false") return false;
  hints.romio_cb_write = hints.romio_cb_read = value == "true" ? Toggle::enable : Toggle::disable;
  return true;
}

std::optional<std::string> get_collective_buffering(const Hints& hints) {
  if (hints.romio_cb_write != hints.romio_cb_read) return {};
  if (hints.romio_cb_write == Toggle::automatic) return {};
  return hints.romio_cb_write == Toggle::enable ? "true" : "false";
}

// Writes never read first, so the hint has no effect.
bool set_ds_write(Hints&, std::string_view value) {
  Hints ignored;
  return set_word<toggles, &Hints::romio_ds_read>(ignored, value);
}

std::optional<std::string> get_ds_write(const Hints&) { return "disable"; }

constexpr std::string_view toggle_rule = "automatic, enable or disable";
constexpr std::string_view bytes_rule = "a number of bytes (K, M and G may follow)";

// If two rows set one field, the later one wins, so the combined hint comes before the specific
// ones.
constexpr std::array rules{
    Rule{"collective_buffering", "true or false", "true", set_collective_buffering,
         get_collective_buffering},
    Rule{"romio_cb_write", toggle_rule, "automatic", set_word<toggles, &Hints::romio_cb_write>,
         get_word<toggles, &Hints::romio_cb_write>},
    Rule{"romio_cb_read", toggle_rule, "automatic", set_word<toggles, &Hints::romio_cb_read>,
         get_word<toggles, &Hints::romio_cb_read>},
    Rule{"romio_ds_write", toggle_rule, "disable", set_ds_write, get_ds_write},
    Rule{"romio_ds_read", toggle_rule, "automatic", set_word<toggles, &Hints::romio_ds_read>,
         get_word<toggles, &Hints::romio_ds_read>},
    Rule{"cb_nodes", "a whole number, 0 or more", "4", set_int<&Hints::cb_nodes, 0>,
         get_number<&Hints::cb_nodes>},
    Rule{"cb_buffer_size", bytes_rule, "4M", set_bytes<&Hints::cb_buffer_size>,
         get_number<&Hints::cb_buffer_size>},
    Rule{"ind_rd_buffer_size", bytes_rule, "4M", set_bytes<&Hints::ind_rd_buffer_size>,
         get_number<&Hints::ind_rd_buffer_size>},
    Rule{"striping_unit", bytes_rule, "1M", set_bytes<&Hints::striping_unit>,
         get_if_set<&Hints::striping_unit>},
    Rule{"striping_factor", "a whole number, 0 or more", "4", set_int<&Hints::striping_factor, 0>,
         get_if_set<&Hints::striping_factor>},
    Rule{"start_iodevice", "a whole number, -1 or more", "0", set_int<&Hints::start_iodevice, -1>,
         get_if_set<&Hints::start_iodevice>},
    Rule{"shima_targets", "names of targets, separated by commas", "disk0,disk1",
         set_text<&Hints::shima_targets>, get_text<&Hints::shima_targets>},
    Rule{"shima_regions", "BEGIN:UNIT:TARGETS for each region, separated by commas",
         "0:64K:1,64K:1M:4", set_text<&Hints::shima_regions>, get_text<&Hints::shima_regions>},
    Rule{"file_perm", "an octal mode from 0 to 7777", "0640", set_file_perm, get_file_perm},
    Rule{"direct_read", "true or false", "true", set_flag<&Hints::direct_read>,
         get_flag<&Hints::direct_read>},
    Rule{"direct_write", "true or false", "true", set_flag<&Hints::direct_write>,
         get_flag<&Hints::direct_write>},
    Rule{"shima_ring", toggle_rule, "automatic", set_word<toggles, &Hints::shima_ring>,
         get_word<toggles, &Hints::shima_ring>},
    Rule{"shima_map_writes", toggle_rule, "disable", set_word<toggles, &Hints::shima_map_writes>,
         get_word<toggles, &Hints::shima_map_writes>},
    Rule{"shima_read_ahead", toggle_rule, "automatic", set_word<toggles, &Hints::shima_read_ahead>,
         get_word<toggles, &Hints::shima_read_ahead>},
    Rule{"shima_combine", toggle_rule, "automatic", set_word<toggles, &Hints::shima_combine>,
         get_word<toggles, &Hints::shima_combine>},
    Rule{"shima_close_to_open", toggle_rule, "enable",
         set_word<toggles, &Hints::shima_close_to_open>,
         get_word<toggles, &Hints::shima_close_to_open>},
    Rule{"shima_device_buffer_size", bytes_rule, "16M", set_bytes<&Hints::shima_device_buffer_size>,
         get_number<&Hints::shima_device_buffer_size>},
    Rule{"shima_collective", "auto, disk_directed, two_phase, subgroup, independent or io_node",
         "two_phase", set_word<strategies, &Hints::shima_collective>,
         get_word<strategies, &Hints::shima_collective>},
    Rule{"shima_subgroup", "auto, off, or a number of ranks", "4", set_subgroup, get_subgroup},
    Rule{"shima_reach", "automatic, single_copy, pull, pack or message", "automatic",
         set_word<paths, &Hints::shima_reach>, get_word<paths, &Hints::shima_reach>},
    Rule{"shima_requests", "automatic, all or touched", "automatic",
         set_word<requests, &Hints::shima_requests>, get_word<requests, &Hints::shima_requests>},
};

}  // namespace

Result<bool> apply(Hints& hints, std::string_view key, std::string_view value) {
  for (const Rule& rule : rules) {
    if (rule.key != key) continue;
    if (rule.set(hints, value)) return true;
    return fail(Code::bad_argument,
                fmt::format("hint {}=\"{}\": the value must be {}; for example {}={}", key, value,
                            rule.rule, key, rule.example));
  }
  return false;
}

std::string encode_hints(const Hints& hints) {
  std::string text;
  if (hints == Hints{}) return text;
  for (const auto& [key, value] : effective(hints)) text += fmt::format("{}={}\n", key, value);
  return text;
}

Result<Hints> decode_hints(std::string_view text) {
  Hints hints;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    SHIMA_TRY(apply(hints, line.substr(0, equals), line.substr(std::min(equals + 1, line.size()))));
  }
  return hints;
}

std::vector<HintSetting> effective(const Hints& hints) {
  std::vector<HintSetting> settings;
  for (const Rule& rule : rules) {
    if (auto text = rule.get(hints)) settings.emplace_back(rule.key, std::move(*text));
  }
  return settings;
}

}  // namespace shima
