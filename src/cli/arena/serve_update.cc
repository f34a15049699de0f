// arena serve update: the number of replicas of a server, and what they run.
#include <algorithm>

#include "base/strings.h"
#include "cli/arena/serve.h"
#include "cli/arena/server_flags.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::arena {

void UpdatePace::Declare(Flags& flags) {
  flags.Text("--max-surge", &max_surge, "N|PERCENT",
             "replicas beyond the number in an update (default 25%)");
  flags.Text("--max-unavailable", &max_unavailable, "N|PERCENT",
             "replicas that may be missing in an update (default 25%)");
}

void UpdatePace::Set(json::Value& deployment) const {
  for (const auto& [field, text] :
       {std::pair("maxSurge", &max_surge), std::pair("maxUnavailable", &max_unavailable)}) {
    if (text->empty()) continue;
    const std::optional<int64_t> number = ParseInt(*text);
    json::Set(deployment, {"spec", "strategy", "rollingUpdate", field},
              number ? json::Value(*number) : json::Value(*text));
  }
}

namespace {

class ServeUpdateAction final : public Action {
 public:
  explicit ServeUpdateAction(const ServingType& type) { filter_.Set(type); }
  void Declare(Flags& flags) override {
    flags_ = &flags;
    flags.Group("Server");
    server_.DeclareServer(flags);
    filter_.Declare(flags);
    server_.DeclareAmounts(flags);
    flags.Group("Updates");
    pace_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    SWELL_RETURN_IF_ERROR(server_.Fill(words));
    if (spec_.name.empty()) return Misuse("--name is not set");
    SWELL_ASSIGN_OR_RETURN(json::Object container, MakeContainer());
    json::Value patch = json::Object();
    if (flags_->Seen("replicas")) json::Set(patch, {"spec", "replicas"}, server_.replicas);
    pace_.Set(patch);
    SWELL_RETURN_IF_ERROR(SetPod(patch));
    if (container.empty() && patch.get_object().empty()) {
      return Misuse("nothing to change; arena serve update custom --name bert --replicas 3");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Serving serving, FindServing(session, *api, spec_.name, filter_));
    if (!container.empty()) {
      const json::Array& all =
          json::GetArray(*serving.deployment, {"spec", "template", "spec", "containers"});
      container["name"] = all.empty() ? "" : json::GetString(all[0], {"name"});
      json::Set(patch, {"spec", "template", "spec", "containers"},
                json::Array{std::move(container)});
    }
    SWELL_RETURN_IF_ERROR(api->Patch(client::resources::kDeployments, serving.ns(),
                                     json::GetString(*serving.deployment, {"metadata", "name"}),
                                     client::PatchType::kStrategic, patch)
                              .status());
    LogLine(session, "info",
            StrCat("The serving job ", serving.Shown(), " has been updated successfully"));
    return 0;
  }

 private:
  // Whether a number of GPUs, or a part of one, was given.
  bool SaysGpus() const {
    return flags_->Seen("gpus") || flags_->Seen("gpumemory") || flags_->Seen("gpucore");
  }
  // What changes in it; empty: nothing.
  Result<json::Object> MakeContainer() const {
    json::Object container, amounts;
    if (!spec_.image.empty()) container["image"] = spec_.image;
    if (const std::vector<std::string> command = server_.Command(); !command.empty()) {
      container["command"] = json::Array(command.begin(), command.end());
    }
    json::Array variables;
    if (SaysGpus()) variables.push_back(GpusSeen());
    for (const auto& [key, value] : spec_.env) {
      variables.push_back(json::Object{{"name", key}, {"value", value}});
    }
    if (!variables.empty()) container["env"] = std::move(variables);
    if (SaysGpus()) {
      amounts["nvidia.com/gpu"] =
          spec_.gpus > 0 ? json::Value(std::to_string(spec_.gpus)) : json::Value(nullptr);
    }
    if (!spec_.cpu.empty()) amounts["cpu"] = spec_.cpu;
    if (!spec_.memory.empty()) amounts["memory"] = spec_.memory;
    for (const auto& [name, count] : spec_.devices) amounts[name] = count;
    if (!amounts.empty()) {
      container["resources"] = json::Object{{"limits", amounts}, {"requests", amounts}};
    }
    return container;
  }
  // A container without GPUs is shown none (MakePodSpec).
  json::Object GpusSeen() const {
    const bool any = spec_.gpus > 0 || spec_.gpu_fraction > 0 || spec_.gpu_memory_mib > 0;
    json::Object variable{{"name", "NVIDIA_VISIBLE_DEVICES"}};
    variable[any ? "$patch" : "value"] = any ? "delete" : "void";
    return variable;
  }
  // What its pods have beside the container.
  Status SetPod(json::Value& patch) const {
    for (const auto& [key, value] : spec_.labels) {
      if (std::ranges::find(kServerLabels, key) != std::end(kServerLabels)) {
        return Misuse(StrCat("--label ", key, ": arena tells servers apart by it"));
      }
      json::Set(patch, {"metadata", "labels", key}, value);
      json::Set(patch, {"spec", "template", "metadata", "labels", key}, value);
    }
    for (const auto& [key, value] : spec_.annotations) {
      json::Set(patch, {"metadata", "annotations", key}, value);
      json::Set(patch, {"spec", "template", "metadata", "annotations", key}, value);
    }
    if (SaysGpus()) {
      for (std::string_view key : {api::keys::kGpuFraction, api::keys::kGpuMemory}) {
        json::Set(patch, {"spec", "template", "metadata", "annotations", key},
                  json::Value(nullptr));
      }
      for (const auto& [key, value] : GpuShareAnnotations(spec_)) {
        json::Set(patch, {"spec", "template", "metadata", "annotations", key}, value);
      }
    }
    for (const auto& [key, value] : spec_.selectors) {
      json::Set(patch, {"spec", "template", "spec", "nodeSelector", key}, value);
    }
    if (spec_.tolerations.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(json::Array tolerations, ParseTolerations(spec_.tolerations));
    json::Set(patch, {"spec", "template", "spec", "tolerations"}, std::move(tolerations));
    return Status::Ok();
  }

  const Flags* flags_ = nullptr;
  ServingFilter filter_;
  UpdatePace pace_;
  PyTorchSpec spec_;  // of one replica: what was said of it
  ServerFlags server_{spec_};
};

}  // namespace

Command ServeUpdateSpec() {
  Command update{.name = "update", .summary = "Change a server."};
  for (const ServingType& type : ServingTypes()) {
    Command one{
        .name = std::string(type.names[0]),
        .summary = StrCat("Change a server of type ", type.shown, "."),
        .usage = "[\"COMMAND\"]",
        .examples = {{"Three replicas",
                      StrCat("arena serve update ", type.names[0], " --name bert --replicas 3")}},
    };
    one.notes =
        "A flag that is not given changes nothing. Variables, labels, annotations, devices and "
        "selectors that are not named stay; --toleration replaces all tolerations.";
    one.aliases.assign(type.names.begin() + 1, type.names.end());
    one.make = [&type] { return std::make_unique<ServeUpdateAction>(type); };
    update.children.push_back(std::move(one));
  }
  return update;
}

}  // namespace swell::cli::arena
