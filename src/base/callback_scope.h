// CallbackScope: keeps callbacks from reaching an object that no longer exists.
//
// An object that hands out callbacks owns a scope and wraps them in it: once the scope is closed or
// destroyed, they do nothing. As the last member it ends before everything that callbacks use.
//
// - Threads: one thread, that of the callbacks and of the owner. Other threads may hold a wrapped
//   callback, but not call it.
#pragma once

#include <memory>
#include <utility>

namespace swell {

class CallbackScope {
 public:
  CallbackScope() = default;
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  // `fn` returns nothing, and is called as const.
  template <typename Fn>
  [[nodiscard]] auto Wrap(Fn fn) const {
    return [open = std::weak_ptr<const bool>(open_), fn = std::move(fn)](auto&&... args) {
      if (!open.expired()) fn(std::forward<decltype(args)>(args)...);
    };
  }

  // Says, after a call that may have destroyed the owner, whether it did.
  class Guard {
   public:
    bool closed() const { return open_.expired(); }

   private:
    friend class CallbackScope;
    explicit Guard(std::weak_ptr<const bool> open) : open_(std::move(open)) {}
    std::weak_ptr<const bool> open_;
  };
  Guard guard() const { return Guard(open_); }

  void Close() { open_.reset(); }

 private:
  std::shared_ptr<const bool> open_ = std::make_shared<const bool>(true);
};

}  // namespace swell
