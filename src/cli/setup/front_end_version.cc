#include "cli/setup/front_end_version.h"

#include <memory>
#include <utility>

#include "cli/session.h"

namespace swell::cli {
namespace {

class FrontEndVersionAction final : public Action {
 public:
  FrontEndVersionAction(std::string line, std::string provided)
      : line_(std::move(line)), provided_(std::move(provided)) {}

  void Declare(Flags& flags) override {
    flags.Switch("--short", &short_, "print the version only");
  }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.OutLine(line_);
    if (!short_) session.OutLine(provided_);
    return 0;
  }

 private:
  const std::string line_;
  const std::string provided_;
  bool short_ = false;
};

}  // namespace

Command FrontEndVersionSpec(const std::string& line, const std::string& provided) {
  return {
      .name = "version",
      .summary = "Print the version.",
      .make = [line, provided] { return std::make_unique<FrontEndVersionAction>(line, provided); },
  };
}

}  // namespace swell::cli
