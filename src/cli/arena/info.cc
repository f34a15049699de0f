// arena data, whoami, version.
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/print/text_table.h"
#include "cli/setup/front_end_version.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

class DataListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto claims, api->List(client::resources::kPersistentVolumeClaims,
                                                  all_ ? "" : session.Namespace()));
    std::vector<std::string> header{"NAME", "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header, 2);
    for (const json::SharedValue& claim : claims) {
      if (api::StatusPhase(*claim) != "Bound") continue;
      const json::Array& modes = json::GetArray(*claim, {"spec", "accessModes"});
      std::string mode = modes.empty() || !modes[0].is_string()
                             ? ""
                             : std::string(json::View(modes[0].get_string()));
      std::vector<std::string> row{std::string(api::Name(*claim)), mode,
                                   std::string(api::Annotation(*claim, "description")),
                                   std::string(api::Annotation(*claim, "owner")),
                                   ShortDuration(session.Now() - api::CreationTime(*claim))};
      if (all_) row.insert(row.begin(), std::string(api::Namespace(*claim)));
      table.Add(std::move(row));
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  bool all_ = false;
};

class WhoamiAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::string user, UserName(session, *api));
    session.OutLine(StrCat("NAME: ", user));
    session.OutLine(StrCat("NAMESPACE: ", session.Namespace()));
    session.OutLine(StrCat("CLUSTER: ", api->connection().url));
    return 0;
  }
};

}  // namespace

Command DataSpec() {
  Command data{
      .name = "data",
      .summary = "Show volume claims for training data.",
  };
  Command list{
      .name = "list",
      .aliases = {"ls"},
      .summary = "List bound volume claims.",
      .examples = {{"For --data CLAIM:PATH", "arena data list"}},
      .make = Makes<DataListAction>(),
  };
  data.children.push_back(std::move(list));
  return data;
}

Command WhoamiSpec() {
  return {
      .name = "whoami",
      .summary = "Show the current user.",
      .make = Makes<WhoamiAction>(),
  };
}

Command VersionSpec() {
  return FrontEndVersionSpec(StrCat("arena: v0.5.0+swell-", Version()),
                             "  Commands of Arena v0.5.0, provided by Swell");
}

}  // namespace swell::cli::arena
