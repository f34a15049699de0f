// swell nodepool: which nodes are shared by the same quotas, and how they are filled.
#include <algorithm>
#include <map>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/key_values.h"
#include "cli/print/output.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/node_pool.h"

namespace swell::cli {
namespace {

// The pool of each node; nodes of no pool are not in it.
using PoolOfNode = std::map<std::string, std::string>;

PoolOfNode PoolsByNode(const std::vector<PoolView>& pools) {
  PoolOfNode by_node;
  for (const PoolView& pool : pools) {
    for (const std::string& node : pool.nodes) by_node[node] = pool.name;
  }
  return by_node;
}

// "node-1 (pa), node-2 (pb), …".
std::string NodesText(const std::vector<std::pair<std::string, std::string>>& nodes) {
  constexpr size_t kShown = 5;
  std::vector<std::string> texts;
  for (const auto& [node, pool] : nodes) {
    if (texts.size() == kShown) break;
    texts.push_back(StrCat(node, " (", pool, ")"));
  }
  return StrCat(Join(texts, ", "), nodes.size() > kShown ? ", …" : "");
}

// Reports the nodes that the pool has now, those it took from other pools, and those that it
// selects but another pool keeps.
Status ReportNodes(Session& session,
                   Api& api,
                   const json::Value& object,
                   const PoolOfNode& before) {
  const std::string name(api::Name(object));
  SWELL_ASSIGN_OR_RETURN(const std::vector<PoolView> pools, ReadPools(api));
  SWELL_ASSIGN_OR_RETURN(const auto nodes, api.List(client::resources::kNodes, ""));
  const PoolOfNode now = PoolsByNode(pools);
  const api::NodePoolSpec spec(object);
  std::vector<std::pair<std::string, std::string>> taken, kept;
  for (const json::SharedValue& node : nodes) {
    const auto at = now.find(std::string(api::Name(*node)));
    if (!spec.Selects(*node) || at == now.end()) continue;
    const auto was = before.find(at->first);
    if (at->second != name) {
      kept.emplace_back(at->first, at->second);
    } else if (was != before.end() && was->second != name) {
      taken.emplace_back(at->first, was->second);
    }
  }
  for (const PoolView& pool : pools) {
    if (pool.name != name) continue;
    const size_t count = pool.nodes.size();
    session.ErrLine(StrCat("It has ", count, count == 1 ? " node" : " nodes", " with ", pool.gpus,
                           pool.gpus == 1 ? " GPU." : " GPUs."));
  }
  if (!taken.empty()) {
    session.ErrLine(StrCat("Warning: these nodes leave other node pools: ", NodesText(taken)));
  }
  if (!kept.empty()) {
    session.ErrLine(StrCat("Warning: these nodes stay in other node pools: ", NodesText(kept)));
  }
  if (!taken.empty() || !kept.empty()) {
    session.ErrLine("A node that several node pools select is in the first of them by name.");
  }
  return Status::Ok();
}

class PoolCreate final : public Action {
 public:
  explicit PoolCreate(bool edit) : edit_(edit) {}
  void Declare(Flags& flags) override {
    flags.Group("Nodes");
    flags.Switch("--all-nodes", &all_, "all nodes");
    flags.List("-l,--selector", &selectors_, "KEY=VALUE", "nodes with these labels");
    flags.Group("Placement");
    flags.Text("--placement", &placement_, "pack|spread",
               "placement of pods with GPUs (default pack)");
    flags.Text("--cpu-placement", &cpu_placement_, "pack|spread", "placement of pods without GPUs");
    flags.Text("--gpu-type", &gpu_type_, "TEXT", "GPU model, for display");
    flags.Text("-o,--output", &output_, "FORMAT", "output format: yaml, json or name");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    std::string_view verb = edit_ ? "edit" : "create";
    if (words.size() != 1) {
      return Misuse(StrCat("expected one name: ", session.root().name, " nodepool ", verb,
                           " NAME --all-nodes"));
    }
    if (std::string wrong = api::CheckDnsLabel(words[0]); !wrong.empty()) {
      return Misuse(StrCat("node pool name ", Quote(words[0]), ": ", wrong));
    }
    SWELL_ASSIGN_OR_RETURN(json::Value spec, Spec());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    Result<json::SharedValue> made = json::SharedValue();
    WriteOptions options{.field_validation = "Strict"};
    const auto before = ReadPools(*api);
    if (edit_) {
      if (spec.get_object().empty()) {
        return Misuse("nothing to change; use --selector, --all-nodes, --placement, …");
      }
      json::Value patch = json::Object{{"spec", std::move(spec)}};
      made = api->Patch(client::resources::kNodePools, "", words[0], client::PatchType::kMerge,
                        patch, options);
    } else {
      json::Value pool = json::Object{{"apiVersion", "swell.dev/v1"},
                                      {"kind", "NodePool"},
                                      {"metadata", json::Object{{"name", words[0]}}},
                                      {"spec", std::move(spec)}};
      made = api->Create(client::resources::kNodePools, "", pool, options);
    }
    if (!made.ok()) return made.status();
    std::string name = StrCat("nodepool.swell.dev/", words[0]);
    if (form.table()) {
      session.OutLine(StrCat(name, edit_ ? " edited" : " created"));
      if (!before.ok()) return 0;  // the user may not read nodes
      SWELL_RETURN_IF_ERROR(ReportNodes(session, *api, **made, PoolsByNode(*before)));
    } else {
      session.Out(FormatObject(form, **made, name));
    }
    return 0;
  }

 private:
  static Status SetPlacement(const std::string& text,
                             std::string_view flag,
                             std::string_view field,
                             json::Value& spec) {
    if (text.empty()) return Status::Ok();
    std::string word = ToLower(text);
    if (word != "pack" && word != "spread") {
      return Misuse(StrCat("--", flag, " ", Quote(text), ": expected pack or spread"));
    }
    json::Set(spec, {"placement", field}, word == "pack" ? "Pack" : "Spread");
    return Status::Ok();
  }

  Result<json::Value> Spec() const {
    if (all_ && !selectors_.empty()) {
      return Misuse("--all-nodes and --selector exclude each other");
    }
    if (!edit_ && !all_ && selectors_.empty()) {
      return Misuse("no nodes selected; use --all-nodes or --selector KEY=VALUE");
    }
    json::Value spec = json::Object{};
    json::Object labels;
    std::vector<std::string> terms;
    for (const std::string& text : selectors_) {
      for (std::string_view term : Split(text, ',')) terms.emplace_back(term);
    }
    SWELL_ASSIGN_OR_RETURN(const KeyValues pairs, ParseLabels(terms, "--selector"));
    for (const auto& [key, value] : pairs) labels[key] = value;
    if (all_ && edit_) {
      json::Set(spec, {"nodeSelector"}, json::Value(nullptr));
    } else if (!labels.empty()) {
      json::Set(spec, {"nodeSelector"}, std::move(labels));
    }
    SWELL_RETURN_IF_ERROR(SetPlacement(placement_, "placement", "gpu", spec));
    SWELL_RETURN_IF_ERROR(SetPlacement(cpu_placement_, "cpu-placement", "cpu", spec));
    if (!gpu_type_.empty()) json::Set(spec, {"gpuType"}, gpu_type_);
    return spec;
  }

  bool edit_;
  bool all_ = false;
  std::vector<std::string> selectors_;
  std::string placement_, cpu_placement_, gpu_type_, output_;
};

class PoolList final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT",
               "output format: json, yaml, name or jsonpath=TEMPLATE");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<PoolView> pools, ReadPools(*api));
    PrintPools(session, pools, form,
               StrCat(" An administrator creates a pool with: ", session.root().name,
                      " nodepool create NAME --all-nodes"));
    return 0;
  }

 private:
  std::string output_;
};

Status PoolNotFound(Api& api, const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(const auto pools, api.List(client::resources::kNodePools, ""));
  std::vector<std::string> names;
  for (const json::SharedValue& pool : pools) names.emplace_back(api::Name(*pool));
  return NotFoundAmong("node pool", name, names);
}

class PoolDelete final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--force", &force_, "even if projects have quotas in it");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(StrCat("expected names: ", session.root().name, " nodepool delete NAME..."));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    for (const std::string& name : words) {
      std::vector<std::string> users;
      for (const ProjectView& project : tree.projects) {
        if (std::find(project.pools.begin(), project.pools.end(), name) != project.pools.end()) {
          users.push_back(project.name);
        }
      }
      if (!users.empty() && !force_) {
        return Status(Code::kConflict, StrCat("node pool ", Quote(name),
                                              " still has quotas of projects: ", Join(users, ", "),
                                              "; edit these first, or use --force"));
      }
      auto gone = api->Delete(client::resources::kNodePools, "", name);
      if (gone.status().code() == Code::kNotFound) return PoolNotFound(*api, name);
      if (!gone.ok()) return gone.status();
      session.OutLine(StrCat("nodepool.swell.dev ", Quote(name), " deleted"));
    }
    return 0;
  }

 private:
  bool force_ = false;
};

}  // namespace

Command NodePoolCommandSpec(const std::string& program) {
  Command command{
      .name = "nodepool",
      .aliases = {"nodepools", "node-pool", "node-pools"},
      .group = "Share",
      .summary = "Manage node pools.",
  };
  command.children = {
      {.name = "create",
       .summary = "Create a node pool.",
       .usage = "NAME --all-nodes | --selector KEY=VALUE",
       .examples = {{"All nodes", program + " nodepool create single-node-pool --all-nodes"},
                    {"Nodes with a label",
                     program +
                         " nodepool create a100 --selector gpu-type=a100 --placement spread"}},
       .make = [] { return std::make_unique<PoolCreate>(false); }},
      {.name = "list",
       .aliases = {"ls", "get"},
       .summary = "List node pools with their nodes and use.",
       .examples = {{"All", program + " nodepool list"}},
       .make = Makes<PoolList>()},
      {.name = "edit",
       .summary = "Change the nodes or the placement of a node pool.",
       .usage = "NAME",
       .examples = {{"Spread instead of pack", program + " nodepool edit a100 --placement spread"}},
       .make = [] { return std::make_unique<PoolCreate>(true); }},
      {.name = "delete",
       .summary = "Delete node pools without quotas.",
       .usage = "NAME...",
       .examples = {{"A node pool", program + " nodepool delete a100"}},
       .make = Makes<PoolDelete>()}};
  return command;
}

}  // namespace swell::cli
