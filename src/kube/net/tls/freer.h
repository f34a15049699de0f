// Deleters for unique_ptrs to objects of C libraries: std::unique_ptr<BIO, Freer<BIO_free>>.
// - Threads: as the freed objects.
#pragma once

namespace swell::net {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace swell::net
