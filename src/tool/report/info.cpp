// Describes everything as JSON, and prints that as it is or as text.
#include "tool/report/info.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tool/launch/installed_mpis.h"
#include "tool/report/kernel_features.h"

namespace shima::tool {
namespace {

using nlohmann::ordered_json;

ordered_json describe_builds() {
  ordered_json list = ordered_json::array();
  for (const Build& build : known_builds()) {
    const auto path = library_of(build);
    list.push_back({{"name", build.name},
                    {"serves", name_of(build.family)},
                    {"sonames", sonames_of(build)},
                    {"path", path.string()},
                    {"installed", std::filesystem::exists(path)}});
  }
  return list;
}

ordered_json describe_mpis() {
  ordered_json list = ordered_json::array();
  for (const InstalledMpi& found : find_installed_mpis()) {
    const Build* build = found.mpi.build;
    if (!found.mpiexec.family) continue;
    list.push_back({{"family", name_of(*found.mpiexec.family)},
                    {"version", found.mpiexec.version},
                    {"mpiexec", found.mpiexec.path.string()},
                    {"library", found.mpi.library.string()},
                    {"build", build == nullptr ? std::string_view() : build->name}});
  }
  return list;
}

ordered_json describe_kernel() {
  ordered_json list = ordered_json::array();
  for (const KernelFeature& feature : try_kernel_features())
    list.push_back({{"name", feature.name},
                    {"usable", feature.usable},
                    {"detail", feature.detail},
                    {"consequence", feature.consequence}});
  return list;
}

std::string word(const ordered_json& object, const char* key) {
  return object.at(key).get<std::string>();
}

std::string text_of_builds(const ordered_json& builds) {
  std::string text = "builds (one for each ABI of MPI, and the usual names of its libraries)\n";
  for (const auto& build : builds)
    text += fmt::format("  {:<9} {:<33} {}{}\n", word(build, "name"), word(build, "sonames"),
                        word(build, "path"),
                        build.at("installed").get<bool>() ? "" : "  NOT INSTALLED");
  return text;
}

std::string text_of_mpis(const ordered_json& mpis) {
  std::string text = "MPIs found\n";
  for (const auto& mpi : mpis) {
    const std::string build = word(mpi, "build");
    text += fmt::format("  {:<9} {:<8} {}  ({})\n", word(mpi, "family"), word(mpi, "version"),
                        word(mpi, "mpiexec"),
                        build.empty() ? "no library found beside it" : "build " + build);
  }
  return mpis.empty() ? text + "  none\n" : text;
}

std::string text_of_kernel(const ordered_json& features) {
  std::string text = "the kernel and the processor, each feature tested now\n";
  for (const auto& feature : features)
    text += fmt::format("  {:<12} {:<4} {}: {}\n", word(feature, "name"),
                        feature.at("usable").get<bool>() ? "yes" : "no", word(feature, "detail"),
                        word(feature, "consequence"));
  return text;
}

}  // namespace

Outcome<int> print_info(bool as_json) {
  const ordered_json info{{"version", SHIMA_VERSION},
                          {"builds", describe_builds()},
                          {"mpis", describe_mpis()},
                          {"kernel", describe_kernel()}};
  const std::string text =
      as_json ? info.dump(2) + "\n"
              : fmt::format("shima {}\n\n{}\n{}\n{}", SHIMA_VERSION, text_of_builds(info["builds"]),
                            text_of_mpis(info["mpis"]), text_of_kernel(info["kernel"]));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace shima::tool
