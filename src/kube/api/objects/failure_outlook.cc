#include "kube/api/objects/failure_outlook.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace swell::api {
namespace {

// Python's messages about a program that it cannot read or import, in lower case.
constexpr std::array<std::string_view, 6> kNeverMended = {"modulenotfounderror", "importerror",
                                                          "syntaxerror",         "indentationerror",
                                                          "nameerror",           "can't open file"};
// Runtimes' messages about a command that no machine can start.
constexpr std::array<std::string_view, 2> kNoProgram = {"exec: ",
                                                        "executable file not found in $path"};
constexpr std::array<std::string_view, 6> kNamesWhatIsMissing = {
    "ErrImagePull",      "ImagePullBackOff",           "InvalidImageName",
    "ErrImageNeverPull", "CreateContainerConfigError", "ImageInspectError"};

template <size_t N>
bool ContainsAny(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

}  // namespace

bool NeverRan(const Failure& failure) {
  if (!failure.exit_code) return failure.which == FailureClass::kCannotStart;
  return failure.reason == "StartError" || failure.reason == "ContainerCannotRun";
}

bool NeverMends(const Failure& failure) {
  if (failure.which != FailureClass::kUserError || failure.role == "sidecar") return false;
  const std::string said = ToLower(failure.said);
  // Another node, or the same one later, may be able to start it.
  if (failure.exit_code && NeverRan(failure)) return ContainsAny(said, kNoProgram);
  if (failure.exit_code == 126 || failure.exit_code == 127) return true;
  // A library that one node lacks may be on another.
  if (said.find("shared object") != std::string::npos) return false;
  return ContainsAny(said, kNeverMended);
}

bool NeedsCorrection(const Failure& failure) {
  if (NeverMends(failure)) return true;
  return failure.which == FailureClass::kCannotStart &&
         std::find(kNamesWhatIsMissing.begin(), kNamesWhatIsMissing.end(), failure.reason) !=
             kNamesWhatIsMissing.end();
}

}  // namespace swell::api
