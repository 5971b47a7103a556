#include "tool/files/stripe_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "file/striping.h"
#include "store/target/target.h"

namespace shima::tool {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::unexpected<Failure> bad_stripe(const std::string& text, const std::string& part) {
  return refuse("--stripe " + text,
                fmt::format("\"{}\" is not unit=SIZE, targets=NUMBER or order=NAME+NAME", part),
                "write for example --stripe unit=1M,targets=4");
}

// "targets" and "order" may name targets, with '+' between them.
Outcome<void> take_part(Hints& hints, const std::string& text, const std::string& part) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string key = part.substr(0, equals);
  std::string value = part.substr(std::min(equals + 1, part.size()));
  if (value.empty()) return bad_stripe(text, part);
  const bool is_number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  std::string hint;
  if (key == "unit") hint = "striping_unit";
  if (key == "targets" && is_number) hint = "striping_factor";
  if (key == "order" || (key == "targets" && !is_number)) {
    hint = "shima_targets";
    std::ranges::replace(value, '+', ',');
  }
  if (hint.empty()) return bad_stripe(text, part);
  const auto applied = apply(hints, hint, value);
  if (!applied) return refuse("--stripe " + text, applied.error().what, "correct the value");
  if (hint != "shima_targets" && value.find_first_not_of("0KMGkmg") == std::string::npos)
    return bad_stripe(text, part);
  return {};
}

// The first region begins at 0: from --stripe, unless a --region defines it.
std::string joined_regions(const Hints& hints, const StripeOptions& options) {
  std::string all;
  if (!options.regions.front().starts_with("0:"))
    all =
        fmt::format("0:{}:{}", hints.striping_unit == 0 ? default_unit_bytes : hints.striping_unit,
                    std::max(hints.striping_factor, 1));
  for (const std::string& region : options.regions) all += (all.empty() ? "" : ",") + region;
  return all;
}

}  // namespace

Outcome<Hints> stripe_hints(const StripeOptions& options) {
  Hints hints;
  if (!options.stripe.empty())
    for (const std::string& part : split(options.stripe, ','))
      if (auto taken = take_part(hints, options.stripe, part); !taken)
        return std::unexpected(taken.error());
  if (!options.order.empty()) hints.shima_targets = options.order;
  if (!options.regions.empty()) hints.shima_regions = joined_regions(hints, options);
  return hints;
}

Outcome<Hints> with_some_targets(Hints hints) {
  if (!hints.shima_targets.empty()) return hints;
  const auto places = configured_targets();
  if (!places) return refuse("the list of targets", places.error().what, "correct it");
  if (places->empty()) hints.shima_targets = beside_target;
  return hints;
}

}  // namespace shima::tool
