#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "capi/pff/errors.h"
#include "capi/pff/handles.h"
#include "capi/pff/striping_text.h"
#include "file/striping.h"

namespace shima::capi {
namespace {

std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names(1);
  for (const char* at = list; *at != '\0'; ++at) {
    if (*at == ',') {
      names.emplace_back();
    } else if (*at != ' ') {
      names.back() += *at;
    }
  }
  return names;
}

Result<std::string> text_of(const pff_region& region) {
  if (region.subfiles < 0 || region.subfiles > most_subfiles)
    return fail(Code::bad_argument, fmt::format("striping: {} subfiles; a file has 1 to {}",
                                                region.subfiles, most_subfiles));
  if (region.targets == nullptr && region.subfiles == 0)
    return fail(Code::bad_argument, "striping: a region has neither subfiles nor targets");
  std::string text = fmt::format("{}:{}:", region.begin, region.unit);
  if (region.targets == nullptr) return text + std::to_string(region.subfiles);
  const auto names = names_in(region.targets);
  const auto count =
      region.subfiles == 0 ? names.size() : static_cast<std::size_t>(region.subfiles);
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : "+") + names[i % names.size()];
  return text;
}

}  // namespace

Result<std::string> text_of(const pff_striping& striping) {
  if (striping.region_count > 0 && striping.regions == nullptr)
    return fail(Code::bad_argument, "striping: no regions are given");
  std::string all;
  for (const pff_region& region : std::span(striping.regions, striping.region_count)) {
    SHIMA_TRY_ASSIGN(const std::string text, text_of(region));
    all += (all.empty() ? "" : ",") + text;
  }
  return all;
}

Result<pff_striping*> striping_from(std::span<const StripedRegion> regions) {
  std::vector<std::string> names;
  std::size_t len_bytes = sizeof(pff_striping) + regions.size() * sizeof(pff_region);
  for (const StripedRegion& region : regions) {
    names.push_back(fmt::format("{}", fmt::join(region.targets, ",")));
    len_bytes += names.back().size() + 1;
  }
  auto* const made = static_cast<pff_striping*>(std::malloc(len_bytes));
  if (made == nullptr) return fail(Code::no_memory, "allocating a striping");
  auto* const into = reinterpret_cast<pff_region*>(made + 1);
  char* text = reinterpret_cast<char*>(into + regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    std::memcpy(text, names[i].c_str(), names[i].size() + 1);
    into[i] = {regions[i].begin.value, regions[i].unit_bytes,
               static_cast<std::int32_t>(regions[i].targets.size()), text};
    text += names[i].size() + 1;
  }
  *made = {regions.size(), regions.empty() ? nullptr : into};
  return made;
}

}  // namespace shima::capi

int pff_striping_parse(const char* text, pff_striping** striping) noexcept {
  using namespace shima;
  return capi::guarded([&]() -> Status {
    if (text == nullptr || *text == '\0' || striping == nullptr)
      return fail(Code::bad_argument, "parsing a striping: the text or the result pointer is NULL");
    Hints hints;
    hints.shima_regions = text;
    SHIMA_TRY_ASSIGN(const auto regions, regions_for(hints));
    SHIMA_TRY(layout_of(MasterFile{{}, regions, {}}));
    SHIMA_TRY_ASSIGN(*striping, capi::striping_from(regions));
    return {};
  });
}

void pff_striping_free(pff_striping* striping) noexcept { std::free(striping); }

int pff_striping_of(pff_file* file, pff_striping** striping) noexcept {
  using namespace shima;
  return capi::guarded([&]() -> Status {
    if (file == nullptr || striping == nullptr)
      return fail(Code::bad_argument, "reading a striping: the file or the result pointer is NULL");
    SHIMA_TRY_ASSIGN(*striping, capi::striping_from(file->file->striping()));
    return {};
  });
}
