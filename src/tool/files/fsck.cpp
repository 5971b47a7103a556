#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "store/check/check.h"
#include "tool/common/print_failure.h"
#include "tool/common/progress.h"
#include "tool/files/file_commands.h"

namespace shima::tool {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Finding& finding) {
  return {{"path", finding.path},         {"problem", name_of(finding.problem)},
          {"what", finding.what},         {"advice", finding.advice},
          {"repaired", finding.repaired}, {"repairable", finding.repairable},
          {"note", finding.is_note()}};
}

std::string text_of(const Finding& finding) {
  return fmt::format("{}: {}: {}; {}\n", finding.path,
                     finding.is_note() ? "note" : std::string(name_of(finding.problem)),
                     finding.what, finding.repaired ? "repaired" : finding.advice);
}

int exit_code(const std::vector<Finding>& findings) {
  const auto left = [](const Finding& finding) { return !finding.is_note() && !finding.repaired; };
  if (std::ranges::any_of(findings, left)) return exit_findings;
  return std::ranges::any_of(findings, &Finding::repaired) ? exit_repaired : 0;
}

}  // namespace

Outcome<int> check_files(const CheckOptions& options) {
  std::vector<Finding> findings;
  std::uint64_t files = 0;
  bool checked = true;
  for (const std::string& path : options.paths) {
    Progress progress("checking");
    auto report = shima::check_files({path, options.repair, options.remove_orphans,
                                      [&](const std::string& name) { progress.say(name); }});
    if (!report) {
      checked = succeeded(path, std::unexpected(report.error()));
      continue;
    }
    files += report->files;
    std::ranges::move(report->findings, std::back_inserter(findings));
  }
  if (options.as_json) {
    ordered_json list = ordered_json::array();
    for (const Finding& finding : findings) list.push_back(json_of(finding));
    fmt::print("{}\n", ordered_json{{"files", files}, {"findings", list}}.dump(2));
  } else {
    for (const Finding& finding : findings) std::fputs(text_of(finding).c_str(), stdout);
    fmt::print("{} striped file{} checked\n", files, files == 1 ? "" : "s");
  }
  return checked ? exit_code(findings) : exit_unchecked;
}

}  // namespace shima::tool
