#include "dse/machine_view.h"

#include <dlfcn.h>

#include "base/log.h"
#include "base/process/cpu_mask.h"

#ifdef SHIMA_HAVE_HWLOC
#include <hwloc.h>
#endif

namespace shima::dse {

Machine machine_without_hwloc() {
  const CpuMask allowed = CpuMask::own();
  Machine machine;
  for (int cpu = 0; cpu < CpuMask::most_cpus; ++cpu)
    if (allowed.has(cpu)) machine.push_back({{0, 0, 0, cpu}, {cpu}});
  if (machine.empty()) machine.push_back({{0, 0, 0, 0}, {0}});
  return machine;
}

#ifdef SHIMA_HAVE_HWLOC
namespace {

// The functions of hwloc that are used; its inline functions would need the library.
struct Hwloc {
  decltype(&hwloc_topology_init) init = nullptr;
  decltype(&hwloc_topology_load) load = nullptr;
  decltype(&hwloc_topology_destroy) destroy = nullptr;
  decltype(&hwloc_get_type_depth) depth_of = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count_at = nullptr;
  decltype(&hwloc_get_obj_by_depth) object_at = nullptr;
  decltype(&hwloc_bitmap_next) next = nullptr;

  // Never closed: nothing is gained by it.
  [[nodiscard]] bool open() {
    void* const library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(init, "hwloc_topology_init") && find(load, "hwloc_topology_load") &&
           find(destroy, "hwloc_topology_destroy") && find(depth_of, "hwloc_get_type_depth") &&
           find(count_at, "hwloc_get_nbobjs_by_depth") &&
           find(object_at, "hwloc_get_obj_by_depth") && find(next, "hwloc_bitmap_next");
  }
};

// The smallest cache that several cores share.
int shared_cache_of(hwloc_obj_t core) {
  for (hwloc_obj_t over = core->parent; over != nullptr; over = over->parent) {
    const bool is_cache = over->type >= HWLOC_OBJ_L1CACHE && over->type <= HWLOC_OBJ_L5CACHE;
    if (is_cache && over->arity > 1) return static_cast<int>(over->logical_index);
  }
  return 0;
}

int holder_of(hwloc_obj_t core, hwloc_obj_type_t type) {
  for (hwloc_obj_t over = core->parent; over != nullptr; over = over->parent)
    if (over->type == type) return static_cast<int>(over->logical_index);
  return 0;
}

// NUMA nodes are beside the tree: the one that belongs to the nearest object above.
int numa_node_of(const Hwloc& hwloc, hwloc_obj_t core) {
  for (hwloc_obj_t over = core; over != nullptr; over = over->parent)
    if (over->memory_first_child != nullptr) {
      const int node = hwloc.next(over->memory_first_child->nodeset, -1);
      return node < 0 ? 0 : node;
    }
  return 0;
}

Machine cores_by(const Hwloc& hwloc, hwloc_topology_t topology) {
  const CpuMask allowed = CpuMask::own();
  Machine machine;
  const int depth = hwloc.depth_of(topology, HWLOC_OBJ_CORE);
  if (depth < 0) return machine;
  const unsigned count = hwloc.count_at(topology, depth);
  for (unsigned i = 0; i < count; ++i) {
    hwloc_obj_t object = hwloc.object_at(topology, depth, i);
    Core core{{holder_of(object, HWLOC_OBJ_PACKAGE), numa_node_of(hwloc, object),
               shared_cache_of(object), static_cast<int>(i)},
              {}};
    for (int cpu = hwloc.next(object->cpuset, -1); cpu >= 0 && cpu < CpuMask::most_cpus;
         cpu = hwloc.next(object->cpuset, cpu))
      if (allowed.has(cpu)) core.cpus.push_back(cpu);
    if (!core.cpus.empty()) machine.push_back(std::move(core));
  }
  return machine;
}

}  // namespace

Machine machine_here() {
  Hwloc hwloc;
  Machine machine;
  if (hwloc.open()) {
    hwloc_topology_t topology = nullptr;
    if (hwloc.init(&topology) == 0) {
      if (hwloc.load(topology) == 0) machine = cores_by(hwloc, topology);
      hwloc.destroy(topology);
    }
  } else {
    log(LogLevel::info, "no libhwloc here: all cores count as equally near");
  }
  return machine.empty() ? machine_without_hwloc() : machine;
}
#else
Machine machine_here() { return machine_without_hwloc(); }
#endif

}  // namespace shima::dse
