// arena serve update: the number of replicas of a server, and what they run.
#include "base/strings.h"
#include "cli/arena/serve.h"
#include "cli/key_values.h"

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
    flags.Text("--name", &name_, "NAME", "name of the server");
    filter_.Declare(flags);
    flags.Int("--replicas", &replicas_, "N", "number of replicas");
    flags.Text("--image", &image_, "IMAGE", "image of each replica");
    flags.Text("--command", &command_, "COMMAND", "what the container runs");
    flags.Text("--shell", &shell_, "SHELL", "shell that runs the command (default sh)");
    flags.List("-e,--env", &env_, "KEY=VALUE", "environment variable, repeatable; others stay");
    flags.Int("--gpus", &gpus_, "N", "GPUs of each replica");
    flags.Text("--cpu", &cpu_, "AMOUNT", "CPU of each replica");
    flags.Text("--memory", &memory_, "AMOUNT", "memory of each replica");
    pace_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    if (command_.empty()) command_ = Join(words, " ");
    if (name_.empty()) return Misuse("--name is not set");
    if (replicas_ < 0) return Misuse(StrCat("--replicas ", replicas_, ": expected 0 or more"));
    if (gpus_ < 0) return Misuse(StrCat("--gpus ", gpus_, ": must not be negative"));
    SWELL_ASSIGN_OR_RETURN(json::Object container, MakeContainer());
    json::Value patch = json::Object();
    if (flags_->Seen("replicas")) json::Set(patch, {"spec", "replicas"}, replicas_);
    pace_.Set(patch);
    if (container.empty() && patch.get_object().empty()) {
      return Misuse("nothing to change; arena serve update custom --name bert --replicas 3");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Serving serving, FindServing(session, *api, name_, filter_));
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
  // What changes in it; empty: nothing.
  Result<json::Object> MakeContainer() const {
    json::Object container, amounts;
    if (!image_.empty()) container["image"] = image_;
    if (!command_.empty()) container["command"] = json::Array{shell_, "-c", command_};
    SWELL_ASSIGN_OR_RETURN(const KeyValues env, ParsePairs(env_, "--env"));
    json::Array variables;
    for (const auto& [key, value] : env) {
      variables.push_back(json::Object{{"name", key}, {"value", value}});
    }
    if (!variables.empty()) container["env"] = std::move(variables);
    if (flags_->Seen("gpus")) amounts["nvidia.com/gpu"] = std::to_string(gpus_);
    if (!cpu_.empty()) amounts["cpu"] = cpu_;
    if (!memory_.empty()) amounts["memory"] = memory_;
    if (!amounts.empty()) {
      container["resources"] = json::Object{{"limits", amounts}, {"requests", amounts}};
    }
    return container;
  }

  const Flags* flags_ = nullptr;
  ServingFilter filter_;
  UpdatePace pace_;
  std::string name_, image_, command_, shell_ = "sh", cpu_, memory_;
  std::vector<std::string> env_;
  int64_t replicas_ = 0, gpus_ = 0;
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
    one.aliases.assign(type.names.begin() + 1, type.names.end());
    one.make = [&type] { return std::make_unique<ServeUpdateAction>(type); };
    update.children.push_back(std::move(one));
  }
  return update;
}

}  // namespace swell::cli::arena
