#include "layout/master_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "layout/master_texts.h"

namespace shima {
namespace {

constexpr int format_version = 1;
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_path = 4096;
constexpr std::string_view on_node = "iod://";  // begins the path of a file on an I/O node

constexpr std::string_view explanation =
    "# The bytes of this file lie on the targets named below. Read and write it through Shima\n"
    "# (MPI-IO, shima mount, shima cat, shima cp); a text editor would only change this list.\n";

// FNV-1a of 64 bits (Fowler, Noll, Vo): detects torn and edited texts, not forged ones.
std::uint64_t checksum_of(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return sum;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

template <class Number>
bool parse(std::string_view word, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc{} && end == word.data() + word.size();
}

std::unexpected<Error> torn(std::string_view why) {
  return fail(Code::bad_file,
              fmt::format("the master file of a striped file is damaged ({}); shima "
                          "fsck can rebuild it from its targets",
                          why));
}

// The end of the checksum line of the first text; nothing if no complete one exists.
std::optional<std::size_t> end_of_text(std::string_view file) {
  constexpr std::string_view key = "\nend ";
  if (!looks_like_master(file)) return {};
  const std::size_t at = file.find(key);
  const std::size_t last = at == std::string_view::npos ? at : file.find('\n', at + 1);
  if (last == std::string_view::npos) return {};
  const std::string_view word = file.substr(at + key.size(), last - at - key.size());
  std::uint64_t sum = 0;
  if (!parse(word, sum, 16) || sum != checksum_of(file.substr(0, at + 1))) return {};
  return last + 1;
}

// True for what a killed process or a failed machine leaves of a text that was being appended.
bool is_beginning_of_text(std::string_view tail) {
  return looks_like_master(tail) || master_magic.starts_with(tail) ||
         tail.find_first_not_of('\0') == std::string_view::npos;
}

class Decoder {
 public:
  Result<MasterFile> decode(std::string_view file) {
    if (file.size() > largest_master_bytes) return torn("it is too long");
    const std::vector<std::size_t> ends = ends_of_texts(file);
    if (ends.empty()) return decode_one(file);
    if (!is_beginning_of_text(file.substr(ends.back()))) return torn("other bytes follow its text");
    const std::size_t begin = ends.size() == 1 ? 0 : ends[ends.size() - 2];
    return decode_one(file.substr(begin, ends.back() - begin));
  }

 private:
  Result<MasterFile> decode_one(std::string_view text) {
    SHIMA_TRY(check_version(text));
    SHIMA_TRY_ASSIGN(std::string_view body, body_of(text));
    for (body.remove_prefix(body.find('\n') + 1); !body.empty();) {
      const std::string_view line = body.substr(0, body.find('\n'));
      body.remove_prefix(line.size() + 1);
      if (!line.starts_with('#')) SHIMA_TRY(take(line));
    }
    if (master_.id.hex.empty()) return torn("no id");
    SHIMA_TRY(layout_of(master_));
    return std::move(master_);
  }

  static Status check_version(std::string_view text) {
    if (!looks_like_master(text)) return torn("its first line is not that of a master file");
    const std::string_view line = text.substr(0, text.find('\n'));
    int version = 0;
    if (!parse(line.substr(master_magic.size()), version)) return torn("no format number");
    if (version > format_version)
      return fail(
          Code::bad_file,
          fmt::format("a striped file of format {}; this version of Shima reads formats up to {}",
                      version, format_version));
    return version == format_version ? Status{} : torn("no format number");
  }

  // Returns all lines above the checksum, after verifying it.
  static Result<std::string_view> body_of(std::string_view text) {
    const std::size_t last = text.rfind("\nend ");
    if (last == std::string_view::npos || !text.ends_with('\n')) return torn("it is truncated");
    const std::string_view body = text.substr(0, last + 1);
    std::string_view word = text.substr(last + 5);
    word.remove_suffix(1);
    std::uint64_t sum = 0;
    if (!parse(word, sum, 16) || sum != checksum_of(body)) return torn("its checksum differs");
    return body;
  }

  Status take(std::string_view line) {
    const auto words = words_of(line);
    const bool good = !words.empty() && (words[0] == "id"       ? take_id(words)
                                         : words[0] == "region" ? take_region(words)
                                         : words[0] == "intent" ? take_intent(words)
                                                                : false);
    return good ? Status{} : torn(fmt::format("line \"{}\"", line.substr(0, 80)));
  }

  bool take_id(const std::vector<std::string_view>& words) {
    if (words.size() != 2 || !is_file_id(words[1]) || !master_.id.hex.empty()) return false;
    master_.id.hex = words[1];
    return true;
  }

  // region BEGIN unit BYTES targets NAME...
  bool take_region(const std::vector<std::string_view>& words) {
    StripedRegion region;
    if (words.size() < 6 || words[2] != "unit" || words[4] != "targets") return false;
    if (!parse(words[1], region.begin.value) || !parse(words[3], region.unit_bytes)) return false;
    master_.regions.push_back(std::move(region));
    return take_targets(words, 5, master_.regions.back().targets);
  }

  static bool take_targets(const std::vector<std::string_view>& words, std::size_t first,
                           std::vector<std::string>& targets) {
    targets.assign(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
    return std::ranges::all_of(targets, is_target_name);
  }

  bool take_intent(const std::vector<std::string_view>& words) {
    if (words.size() < 2 || master_.intent) return false;
    if (words[1] == "truncate" && words.size() == 3) {
      TruncateIntent intent;
      const bool good = parse(words[2], intent.size_bytes) && intent.size_bytes >> 63 == 0;
      master_.intent = intent;
      return good;
    }
    if (words[1] == "remove" && words.size() == 2) {
      master_.intent = RemoveIntent{};
      return true;
    }
    if (words[1] == "replace") {
      const auto intent = replaced_in(words, 2);
      if (intent) master_.intent = *intent;
      return intent.has_value();
    }
    return words[1] == "move" && take_move(words);
  }

  // ... ID targets NAME...
  static std::optional<ReplaceIntent> replaced_in(const std::vector<std::string_view>& words,
                                                  std::size_t first) {
    if (words.size() < first + 3 || !is_file_id(words[first]) || words[first + 1] != "targets")
      return {};
    ReplaceIntent intent{{std::string(words[first])}, {}};
    if (!take_targets(words, first + 2, intent.targets)) return {};
    return intent;
  }

  // intent move FROM TO [replace ID targets NAME...]
  bool take_move(const std::vector<std::string_view>& words) {
    if (words.size() < 4) return false;
    const auto from = decode_path(words[2]);
    const auto to = decode_path(words[3]);
    if (!from || !to) return false;
    MoveIntent intent{*from, *to, {}};
    if (words.size() > 4) {
      if (words[4] == "replace") intent.replaced = replaced_in(words, 5);
      if (!intent.replaced) return false;
    }
    master_.intent = std::move(intent);
    return true;
  }

  MasterFile master_;
};

struct IntentLine {
  std::string operator()(const TruncateIntent& intent) const {
    return fmt::format("intent truncate {}\n", intent.size_bytes);
  }
  std::string operator()(const RemoveIntent&) const { return "intent remove\n"; }
  std::string operator()(const ReplaceIntent& intent) const {
    return "intent " + words_for(intent) + "\n";
  }
  std::string operator()(const MoveIntent& intent) const {
    return fmt::format("intent move {} {}{}\n", encode_path(intent.from), encode_path(intent.to),
                       intent.replaced ? " " + words_for(*intent.replaced) : "");
  }
  static std::string words_for(const ReplaceIntent& intent) {
    return fmt::format("replace {} targets {}", intent.from.hex, fmt::join(intent.targets, " "));
  }
};

}  // namespace

bool is_target_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  });
}

bool is_file_id(std::string_view hex) {
  return hex.size() == 32 && std::ranges::all_of(hex, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string encode_path(std::string_view path) {
  std::string word;
  for (const char c : path) {
    if (c > ' ' && c < 127 && c != '%') {
      word += c;
    } else {
      word += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return word;
}

std::optional<std::string> decode_path(std::string_view word) {
  std::string path;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned char byte = static_cast<unsigned char>(word[i]);
    if (word[i] == '%') {
      if (!parse(word.substr(i + 1, 2), byte, 16) || i + 2 >= word.size()) return {};
      i += 2;
    }
    if (byte == 0) return {};
    path += static_cast<char>(byte);
  }
  const bool is_absolute = path.starts_with('/') || path.starts_with(on_node);
  if (!is_absolute || path.size() > longest_path) return {};
  return path;
}

std::vector<std::string> MasterFile::targets() const {
  std::vector<std::string> all;
  for (const StripedRegion& region : regions)
    std::ranges::copy(region.targets, std::back_inserter(all));
  return all;
}

std::string encode_master(const MasterFile& master) {
  std::string text =
      fmt::format("{}{}\n{}id {}\n", master_magic, format_version, explanation, master.id.hex);
  for (const StripedRegion& region : master.regions)
    text += fmt::format("region {} unit {} targets {}\n", region.begin.value, region.unit_bytes,
                        fmt::join(region.targets, " "));
  if (master.intent) text += std::visit(IntentLine{}, *master.intent);
  return text + fmt::format("end {:016x}\n", checksum_of(text));
}

std::vector<std::size_t> ends_of_texts(std::string_view file) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  while (const auto len = end_of_text(file.substr(at))) ends.push_back(at += *len);
  return ends;
}

Result<MasterFile> decode_master(std::string_view text) { return Decoder{}.decode(text); }

Result<Layout> layout_of(const MasterFile& master) {
  std::vector<RegionSpec> specs;
  for (const StripedRegion& region : master.regions)
    specs.push_back(
        {region.begin, region.unit_bytes,
         static_cast<int>(std::min<std::size_t>(region.targets.size(), most_subfiles + 1))});
  auto layout = Layout::make(specs);
  if (!layout) return fail(Code::bad_file, "a striped file: " + layout.error().what);
  return layout;
}

}  // namespace shima
