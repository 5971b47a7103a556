#include "group/caches.h"

#include <gtest/gtest.h>

#include <array>

namespace shima {
namespace {

constexpr CacheFacts network{.apart = 1, .local = 0};
constexpr CacheFacts parallel{.apart = 0, .local = 0};
constexpr CacheFacts local{.apart = 0, .local = 7};
constexpr CacheFacts other_local{.apart = 0, .local = 8};

struct Case {
  std::array<CacheFacts, 3> members;
  std::optional<bool> told_apart;
  Caches expected;
};

TEST(Caches, FollowTheFileSystemUnlessTold) {
  const std::array cases{
      Case{{local, local, local}, {}, Caches::one},
      Case{{local, local, other_local}, {}, Caches::coherent},
      Case{{local, other_local, local}, {}, Caches::coherent},
      Case{{local, local, parallel}, {}, Caches::coherent},
      Case{{parallel, parallel, parallel}, {}, Caches::coherent},
      Case{{parallel, parallel, network}, {}, Caches::apart},
      Case{{network, local, local}, {}, Caches::apart},
      Case{{network, network, network}, false, Caches::coherent},
      Case{{local, local, local}, false, Caches::one},
      Case{{local, local, local}, true, Caches::apart},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& members = cases[i].members;
    const CacheFacts all = join(join(members[0], members[1]), members[2]);
    EXPECT_EQ(caches_between(all, cases[i].told_apart), cases[i].expected) << "case " << i;
  }
}

}  // namespace
}  // namespace shima
