// FairPlaces: a bounded number of places, of which nobody holds more than are left free. So a
// client that comes later finds some, however many another holds.
// - Threads: any. The place of an answer is dropped by the thread that has sent the answer.
// - Ownership: a place may outlive the FairPlaces.
// - Invariants: a taken place is counted until its last holder drops it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace swell {

class FairPlaces {
 public:
  using Place = std::shared_ptr<const void>;

  explicit FairPlaces(size_t max) : book_(std::make_shared<Book>(max)) {}

  // Null: there is none for this one.
  Place Take(const std::string& who) {
    MutexLock lock(book_->mutex);
    size_t& own = book_->of[who];
    if (own >= book_->max - book_->taken) {
      if (own == 0) book_->of.erase(who);
      return nullptr;
    }
    ++own;
    ++book_->taken;
    return std::make_shared<const Taken>(book_, who);
  }

  size_t taken() const {
    MutexLock lock(book_->mutex);
    return book_->taken;
  }

 private:
  struct Book {
    explicit Book(size_t places) : max(places) {}
    const size_t max;
    Mutex mutex;
    size_t taken SWELL_GUARDED_BY(mutex) = 0;
    std::map<std::string, size_t> of SWELL_GUARDED_BY(mutex);
  };
  struct Taken {
    Taken(std::shared_ptr<Book> in, std::string whose)
        : book(std::move(in)), who(std::move(whose)) {}
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() {
      MutexLock lock(book->mutex);
      --book->taken;
      const auto own = book->of.find(who);
      if (--own->second == 0) book->of.erase(own);
    }
    const std::shared_ptr<Book> book;
    const std::string who;
  };

  const std::shared_ptr<Book> book_;
};

}  // namespace swell
