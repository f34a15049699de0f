#include "cli/arena/instance_flags.h"

#include "base/strings.h"

namespace swell::cli::arena {

void InstanceFlags::DeclareNames(Flags& flags) {
  flags.List("-e,--env", &env_, "KEY=VALUE", "environment variable, repeatable");
  flags.List("-a,--annotation", &annotations_, "KEY=VALUE", "annotation, repeatable");
  flags.List("-l,--label", &labels_, "KEY=VALUE", "label, repeatable");
}

void InstanceFlags::DeclareUser(Flags& flags) {
  flags.Text("--run-as-user", &run_as_user_, "UID[:GID]",
             "user and group of the processes (default: those of the image)");
}

void InstanceFlags::DeclareDevices(Flags& flags, std::string_view of) {
  flags.List("--device", &devices_, "NAME=N", StrCat("other devices of each ", of, ", repeatable"));
}

void InstanceFlags::DeclareNodes(Flags& flags) {
  flags.List("--selector", &selectors_, "KEY=VALUE", "only nodes with this label");
  flags.List("--toleration", &tolerations_, "TAINT", "all, KEY or KEY=VALUE:EFFECT,OPERATOR");
}

Status InstanceFlags::Fill(PyTorchSpec& spec) const {
  SWELL_ASSIGN_OR_RETURN(spec.env, ParsePairs(env_, "--env"));
  SWELL_ASSIGN_OR_RETURN(spec.devices, ParsePairs(devices_, "--device"));
  SWELL_ASSIGN_OR_RETURN(spec.labels, ParseLabels(labels_, "--label"));
  SWELL_ASSIGN_OR_RETURN(spec.annotations, ParsePairs(annotations_, "--annotation"));
  SWELL_ASSIGN_OR_RETURN(spec.selectors, ParseLabels(selectors_, "--selector"));
  spec.tolerations = tolerations_;
  return FillRunAs("--run-as-user", run_as_user_, spec);
}

}  // namespace swell::cli::arena
