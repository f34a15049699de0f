// LabRevocations: the flags of a run in which nodes are revoked.
//
// - Threads: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/session.h"
#include "lab/revocations.h"

namespace swell::ops {

class LabRevocations {
 public:
  void Declare(cli::Flags& flags);
  // What the flags say; a misuse names the flag.
  Status Check();

  bool given() const { return !rate_.empty(); }
  // Empty where nodes stay.
  std::optional<lab::RevocationOptions> Options(uint64_t seed) const;
  // What the columns of revocations mean.
  std::string Note() const;

 private:
  std::string rate_;
  std::string notice_;
  std::string away_;
  std::string save_time_;
  std::string save_every_;
  lab::RevocationOptions options_;
};

}  // namespace swell::ops
