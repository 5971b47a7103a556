// A reference to a callable object, for parameters: unlike std::function it allocates nothing. It
// must not outlive the object.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace shima {

template <class Signature>
class FunctionRef;

template <class Returned, class... Args>
class FunctionRef<Returned(Args...)> {
 public:
  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_invocable_r_v<Returned, Callable&, Args...>)
  FunctionRef(Callable&& callable)  // NOLINT: converts as std::function does
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Returned {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(
              std::forward<Args>(args)...);
        }) {}

  Returned operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Returned (*call_)(void*, Args...);
};

}  // namespace shima
