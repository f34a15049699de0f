// FindImageUser: resolves an image's user name to ids, from the passwd and group files in its
// layers.
// - Threads: any thread; reads a few small files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::images {

struct ImageUser {
  int64_t uid = 0;
  int64_t gid = 0;
  std::vector<int64_t> groups;  // that the group file gives the user
  std::string home = "/";
  bool by_name = false;  // the image gives a name, whose number may change
};

// `user` as images and pods write it: "", "1000", "name", "1000:100", "name:group". kInvalid when
// the image knows no such name. `layers`: the lowest first.
Result<ImageUser> FindImageUser(const std::vector<std::string>& layers, std::string_view user);

}  // namespace swell::images
