#include "mpiio/file/info.h"

#include <array>

namespace shima {

std::vector<HintSetting> settings_of(MPI_Info info) {
  std::vector<HintSetting> settings;
  int keys = 0;
  if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS) return settings;
  for (int i = 0; i < keys; ++i) {
    std::array<char, MPI_MAX_INFO_KEY + 1> key{};
    PMPI_Info_get_nthkey(info, i, key.data());
    int len = 0;
    int found = 0;
    PMPI_Info_get_valuelen(info, key.data(), &len, &found);
    if (found == 0) continue;
    std::vector<char> value(static_cast<std::size_t>(len) + 1);
    PMPI_Info_get(info, key.data(), len, value.data(), &found);
    settings.emplace_back(key.data(), value.data());
  }
  return settings;
}

Result<MPI_Info> make_info(const std::vector<HintSetting>& settings) {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Info_create(&info) != MPI_SUCCESS)
    return fail(Code::internal, "creating an info object");
  for (const auto& [key, value] : settings) {
    PMPI_Info_set(info, key.c_str(), value.c_str());
  }
  return info;
}

}  // namespace shima
