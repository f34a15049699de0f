// swell project: who is guaranteed how much, and of which nodes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/job_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/project.h"
#include "kube/client/optimistic_update.h"

namespace swell::cli {
namespace {

constexpr std::string_view kApiVersion = "swell.dev/v1";

// "4", "0.5", "500m", "64Gi", "unlimited" or "-1".
Result<double> ParseShare(const std::string& text, std::string_view flag) {
  if (text == "unlimited" || text == "-1") return kUnlimitedShare;
  auto quantity = api::Quantity::Parse(text);
  if (!quantity.ok() || quantity->MilliValue() < 0) {
    return Misuse(StrCat("--", flag, " ", Quote(text),
                         ": expected an amount like 4, 0.5 or 64Gi, or unlimited"));
  }
  return static_cast<double>(quantity->MilliValue()) / 1000.0;
}

json::Value NumberJson(double value) {
  return value == std::floor(value) ? json::Value(static_cast<int64_t>(value)) : json::Value(value);
}

// The flags of quotas, limits and weights, as spec.resources.
struct ShareFlags {
  struct One {
    std::string flag, resource, field, text;
  };
  std::vector<One> all = {
      {"gpu-quota", "gpu", "quota", ""},
      {"gpu-limit", "gpu", "limit", ""},
      {"gpu-lending-limit", "gpu", "lendingLimit", ""},
      {"over-quota-weight", "gpu", "overQuotaWeight", ""},
      {"cpu-quota", "cpu", "quota", ""},
      {"cpu-limit", "cpu", "limit", ""},
      {"memory-quota", "memory", "quota", ""},
      {"memory-limit", "memory", "limit", ""},
  };

  void Declare(Flags& flags) {
    flags.Group("Quotas");
    flags.Text("--gpu-quota", &all[0].text, "N", "GPU quota: 4, 0.5 or unlimited");
    flags.Text("--gpu-limit", &all[1].text, "N", "GPU limit (default unlimited)");
    flags.Text("--limit", &all[1].text, "N", "the same").hidden = true;
    flags.Text("--gpu-lending-limit", &all[2].text, "N",
               "idle GPUs of the quota that others may use (default unlimited: all of them)");
    flags.Text("--over-quota-weight", &all[3].text, "N",
               "weight for idle GPUs, relative to sibling projects (default 1)");
    flags.Text("--cpu-quota", &all[4].text, "N", "CPU quota: 16, 500m");
    flags.Text("--cpu-limit", &all[5].text, "N", "CPU limit");
    flags.Text("--memory-quota", &all[6].text, "AMOUNT", "memory quota: 64Gi");
    flags.Text("--memory-limit", &all[7].text, "AMOUNT", "memory limit");
  }

  bool any() const {
    return std::any_of(all.begin(), all.end(), [](const One& one) { return !one.text.empty(); });
  }

  Result<json::Value> Resources() const {
    json::Value out = json::Object{};
    for (const One& one : all) {
      if (one.text.empty()) continue;
      SWELL_ASSIGN_OR_RETURN(double amount, ParseShare(one.text, one.flag));
      if (one.field == "overQuotaWeight" && amount < 0) {
        return Misuse(StrCat("--", one.flag, " ", Quote(one.text), ": expected 0 or more"));
      }
      json::Set(out, {one.resource, one.field}, NumberJson(amount));
    }
    return out;
  }
};

// Whether a limit is below its quota, in shares as they will stand: those of `now`, changed by
// `change`. `what` names them: `project "a"`.
Status CheckLimits(const json::Value* now, const json::Value* change, const std::string& what) {
  auto share = [&](std::string_view resource, std::string_view field) -> std::optional<double> {
    for (const json::Value* shares : {change, now}) {
      if (shares == nullptr) continue;
      const json::Value* amount = json::Find(*shares, {resource, field});
      if (amount != nullptr && amount->is_number()) return amount->to_number<double>();
    }
    return std::nullopt;
  };
  for (std::string_view resource : kShareNames) {
    const std::optional<double> quota = share(resource, "quota"), limit = share(resource, "limit");
    if (!quota || !limit || *limit < 0) continue;
    if (*quota >= 0 && *limit >= *quota) continue;
    return Misuse(StrCat("--", resource, "-limit: the ", resource, " limit of ", what, " would be ",
                         json::Print(NumberJson(*limit)), ", below its quota of ",
                         *quota < 0 ? "unlimited" : json::Print(NumberJson(*quota)),
                         "; raise the limit, or lower the quota with --", resource, "-quota"));
  }
  return Status::Ok();
}

// The same for a whole spec: the shares of all pools, and those of each pool that `change` lists.
Status CheckLimitsOf(const json::Value* now, const json::Value& change, std::string_view name) {
  const std::string project = StrCat("project ", Quote(name));
  SWELL_RETURN_IF_ERROR(CheckLimits(now == nullptr ? nullptr : json::Find(*now, {"resources"}),
                                    json::Find(change, {"resources"}), project));
  const json::Value* pools = json::Find(change, {"nodePools"});
  if (pools == nullptr || !pools->is_array()) return Status::Ok();
  for (const json::Value& pool : pools->get_array()) {
    SWELL_RETURN_IF_ERROR(
        CheckLimits(nullptr, json::Find(pool, {"resources"}),
                    StrCat(project, " in pool ", Quote(json::GetString(pool, {"name"}, "")))));
  }
  return Status::Ok();
}

// "alice", "group:team-ml", "serviceaccount:ns/robot": who it is, as a member of a project.
Result<json::Value> ParseMember(std::string_view text, std::string_view flag) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"user:", "User"}, {"group:", "Group"}, {"serviceaccount:", "ServiceAccount"}};
  std::string_view kind = "User";
  std::string_view name = text;
  for (const auto& [prefix, word] : kKinds) {
    if (!text.starts_with(prefix)) continue;
    kind = word;
    name = text.substr(prefix.size());
  }
  json::Value member = json::Object{{"kind", kind}};
  const size_t slash = kind == "ServiceAccount" ? name.find('/') : std::string_view::npos;
  if (slash != std::string_view::npos) {
    json::Set(member, {"namespace"}, name.substr(0, slash));
    name = name.substr(slash + 1);
  }
  if (name.empty()) {
    return Misuse(StrCat(flag, " ", Quote(text),
                         ": expected a name, or group:NAME, or serviceaccount:NAMESPACE/NAME"));
  }
  json::Set(member, {"name"}, name);
  return member;
}

bool SameMember(const json::Value& a, const json::Value& b) {
  return api::ProjectMember(a).SameSubject(api::ProjectMember(b));
}

// The flags of members, as spec.members: who is there already stays.
struct MemberFlags {
  std::vector<std::string> add, remove;

  void Declare(Flags& flags, bool may_remove) {
    flags.Group("Members");
    flags.List("--member", &add, "NAME=ROLE",
               "add USER, group:NAME or serviceaccount:NAMESPACE/NAME with the role project-admin, "
               "researcher or viewer; repeatable");
    if (!may_remove) return;
    flags.List("--remove-member", &remove, "NAME", "remove a member, repeatable");
  }

  Status SetIn(const json::Value* known, json::Value& spec) const {
    if (add.empty() && remove.empty()) return Status::Ok();
    json::Array members = known ? api::MembersOf(*known) : json::Array{};
    for (const std::string& text : remove) {
      SWELL_ASSIGN_OR_RETURN(const json::Value member, ParseMember(text, "--remove-member"));
      if (!Take(members, member)) {
        return Misuse(StrCat("--remove-member ", Quote(text), ": not a member of the project"));
      }
    }
    for (const std::string& text : add) {
      const size_t equals = text.rfind('=');
      const std::string role = equals == std::string::npos ? "" : text.substr(equals + 1);
      if (role != "project-admin" && role != "researcher" && role != "viewer") {
        return Misuse(StrCat("--member ", Quote(text),
                             ": expected NAME=project-admin, NAME=researcher or NAME=viewer"));
      }
      SWELL_ASSIGN_OR_RETURN(json::Value member, ParseMember(text.substr(0, equals), "--member"));
      json::Set(member, {"role"}, role);
      Take(members, member);
      members.push_back(std::move(member));
    }
    json::Set(spec, {"members"}, std::move(members));
    return Status::Ok();
  }

 private:
  // Whether it was there.
  static bool Take(json::Array& members, const json::Value& member) {
    const size_t before = members.size();
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [&](const json::Value& one) { return SameMember(one, member); }),
                  members.end());
    return members.size() < before;
  }
};

// The flags of the rules between a project's users, as spec.users.
struct UserFlags {
  std::string gpu_limit;
  bool fair = false, by_age = false;

  void Declare(Flags& flags) {
    flags.Group("Users");
    flags.Text("--user-gpu-limit", &gpu_limit, "N",
               "the most GPUs that one user's work holds: 4, 0.5 or unlimited");
    flags.Switch("--user-fair-share", &fair, "the user who holds the fewest GPUs goes first");
    flags.Switch("--no-user-fair-share", &by_age, "the oldest work goes first (default)");
  }

  Status SetIn(json::Value& spec) const {
    if (fair && by_age) {
      return Misuse("--user-fair-share and --no-user-fair-share exclude each other");
    }
    if (fair || by_age) json::Set(spec, {"users", "fairShare"}, json::Value(fair));
    if (gpu_limit.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(const double limit, ParseShare(gpu_limit, "user-gpu-limit"));
    json::Set(spec, {"users", "gpuLimit"}, NumberJson(limit));
    return Status::Ok();
  }
};

// The flags of directories of nodes, as spec.allowedHostPaths: who is there already stays.
struct HostPathFlags {
  std::vector<std::string> add, remove;

  void Declare(Flags& flags, bool may_remove) {
    flags.Group("Directories of the nodes");
    flags.List("--allow-host-path", &add, "PATH[:ro]",
               "members' pods may mount this directory of their node, such as /home; repeatable");
    if (!may_remove) return;
    flags.List("--remove-host-path", &remove, "PATH", "stop allowing this directory, repeatable");
  }

  Status SetIn(const json::Value* known, json::Value& spec) const {
    if (add.empty() && remove.empty()) return Status::Ok();
    json::Array paths =
        known ? json::GetArray(*known, {"spec", "allowedHostPaths"}) : json::Array{};
    for (const std::string& path : remove) {
      if (Take(paths, path)) continue;
      return Misuse(StrCat("--remove-host-path ", Quote(path), ": the project does not allow it"));
    }
    for (const std::string& text : add) {
      const bool read_only = text.ends_with(":ro");
      const std::string path = read_only ? text.substr(0, text.size() - 3) : text;
      if (path.empty() || path[0] != '/' || path.find(':') != std::string::npos) {
        return Misuse(StrCat("--allow-host-path ", Quote(text),
                             ": expected an absolute path, like /home or /data/sets:ro"));
      }
      Take(paths, path);
      json::Value one = json::Object{{"path", path}};
      if (read_only) json::Set(one, {"readOnly"}, true);
      paths.push_back(std::move(one));
    }
    json::Set(spec, {"allowedHostPaths"}, std::move(paths));
    return Status::Ok();
  }

 private:
  // Whether it was there.
  static bool Take(json::Array& paths, const std::string& path) {
    const size_t before = paths.size();
    paths.erase(std::remove_if(paths.begin(), paths.end(),
                               [&path](const json::Value& one) {
                                 return json::GetString(one, {"path"}) == path;
                               }),
                paths.end());
    return paths.size() < before;
  }
};

// Jobs that still run or wait: "mnist", and "default/mnist" of those outside its namespace.
Result<std::vector<std::string>> WorkOf(Api& api,
                                        const ProjectTree& tree,
                                        const ProjectView& project) {
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobsOfProject(api, tree, project));
  std::vector<std::string> names;
  for (const JobView& job : jobs) {
    if (job.over()) continue;
    names.push_back(job.ns == project.ns ? job.name : StrCat(job.ns, "/", job.name));
  }
  return names;
}

// " still has 2 jobs: a, b"; empty: it has none.
Result<std::string> WorkText(Api& api, const ProjectTree& tree, const ProjectView& project) {
  constexpr size_t kShown = 5;
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> work, WorkOf(api, tree, project));
  if (work.empty()) return std::string();
  const size_t count = work.size();
  if (count > kShown) work.resize(kShown);
  return StrCat(" still has ", count, count == 1 ? " job: " : " jobs: ", Join(work, ", "),
                count > kShown ? ", …" : "");
}

// What create and edit share.
class ProjectWrite : public Action {
 public:
  // Whether the command is about a project that exists already.
  virtual bool Exists() const = 0;
  void Declare(Flags& flags) override {
    flags.Group("Project");
    flags.Text("--description", &description_, "TEXT", "description");
    flags.Text("--parent", &parent_, "PROJECT", "parent project (department)");
    flags.Text("--priority", &priority_, "N",
               "projects of higher priority share idle capacity first (default 100)");
    flags.Text("--work-namespace", &work_ns_, "NAMESPACE",
               "namespace of the project (default: its name)");
    flags.Text("--min-runtime", &min_runtime_, "DURATION",
               "how long a pod runs before higher-priority pods of the project may preempt it");
    flags.Text("--reclaim-min-runtime", &reclaim_min_runtime_, "DURATION",
               "how long a pod runs before other projects may reclaim its resources");
    flags.Choice("--autoscaling", &autoscaling_, "MODE", {"Goodput", "None", "inherit"},
                 "autoscaling of the project's elastic TrainingJobs that name no mode: Goodput, "
                 "None, or inherit that of the project above it, else of the cluster (default)");
    flags.Switch("--isolated", &isolated_, "only pods of the project reach its pods");
    flags.Switch("--no-isolated", &open_, "pods of other projects reach them, too (default)");
    flags.Choice("--pod-security", &pod_security_, "LEVEL",
                 {"privileged", "baseline", "restricted"},
                 "Pod Security level of the project's pods: privileged, baseline or restricted "
                 "(default baseline)");
    flags.Text("--max-objects", &max_objects_, "N",
               "the most objects of one kind, such as pods, in the project's namespace "
               "(default 20000)");
    flags.Text("--max-objects-mib", &max_objects_mib_, "N",
               "the most MiB that all objects of the project's namespace have (default 512)");
    shares_.Declare(flags);
    flags.Text("--node-pool", &pool_, "POOL",
               "node pool of these quotas and limits (default: all nodes together)");
    users_.Declare(flags);
    members_.Declare(flags, Exists());
    host_paths_.Declare(flags, Exists());
    flags.Group("Output");
    flags.Text("--dry-run", &dry_run_, "none|client|server", "show what would change").implied =
        "client";
    flags.Text("-o,--output", &output_, "FORMAT", "output format: yaml, json or name");
  }

 protected:
  // The part of the spec that the flags say.
  Result<json::Value> Spec(Api& api, const ProjectTree& tree, const std::string& name) {
    json::Value spec = json::Object{};
    if (!description_.empty()) json::Set(spec, {"description"}, description_);
    if (!parent_.empty()) {
      SWELL_RETURN_IF_ERROR(CheckParent(api, tree, name));
      json::Set(spec, {"parent"}, parent_);
    }
    if (!priority_.empty()) {
      auto number = ParseInt(priority_);
      if (!number) {
        return Misuse(StrCat("--priority ", Quote(priority_), ": expected a whole number"));
      }
      json::Set(spec, {"priority"}, *number);
    }
    if (!work_ns_.empty()) {
      if (std::string wrong = api::CheckDnsLabel(work_ns_); !wrong.empty()) {
        return Misuse(StrCat("--work-namespace ", Quote(work_ns_), ": ", wrong));
      }
      const ProjectView* owner = tree.OfNamespace(work_ns_);
      if (owner != nullptr && owner->name != name) {
        return Misuse(StrCat("--work-namespace ", Quote(work_ns_), ": it is project ", owner->name,
                             "'s namespace already"));
      }
      json::Set(spec, {"namespace"}, work_ns_);
    }
    if (isolated_ && open_) return Misuse("--isolated and --no-isolated exclude each other");
    if (isolated_ || open_) json::Set(spec, {"isolated"}, json::Value(isolated_));
    if (!pod_security_.empty()) json::Set(spec, {"podSecurity"}, pod_security_);
    SWELL_RETURN_IF_ERROR(SetCount("--max-objects", max_objects_, "maxObjectsPerKind", spec));
    SWELL_RETURN_IF_ERROR(SetCount("--max-objects-mib", max_objects_mib_, "maxObjectsMib", spec));
    const bool fresh = tree.Find(name) == nullptr;
    if (autoscaling_ == "inherit" && !fresh) {
      json::Set(spec, {"autoscaling"}, json::Value(nullptr));
    } else if (!autoscaling_.empty() && autoscaling_ != "inherit") {
      json::Set(spec, {"autoscaling", "default"}, autoscaling_);
    }
    SWELL_RETURN_IF_ERROR(SetSeconds("--min-runtime", min_runtime_, "minRuntimeSeconds", spec));
    SWELL_RETURN_IF_ERROR(SetSeconds("--reclaim-min-runtime", reclaim_min_runtime_,
                                     "reclaimMinRuntimeSeconds", spec));
    SWELL_RETURN_IF_ERROR(users_.SetIn(spec));
    SWELL_RETURN_IF_ERROR(SetShares(api, tree, name, spec));
    const ProjectView* known = tree.Find(name);
    SWELL_RETURN_IF_ERROR(members_.SetIn(known ? known->object.get() : nullptr, spec));
    SWELL_RETURN_IF_ERROR(host_paths_.SetIn(known ? known->object.get() : nullptr, spec));
    return spec;
  }

  Result<OutputForm> ReadHow() {
    if (!dry_run_.empty() && dry_run_ != "none" && dry_run_ != "client" && dry_run_ != "server") {
      return WrongValue("--dry-run", dry_run_, {"none", "client", "server"});
    }
    return ParseOutputForm(output_);
  }
  WriteOptions Options() const {
    return {.dry_run = dry_run_ == "server", .field_validation = "Strict"};
  }
  bool client_only() const { return dry_run_ == "client"; }
  std::string program_;  // the front end that was called

  void Say(Session& session,
           const OutputForm& form,
           const json::Value& object,
           std::string_view what) const {
    std::string name = StrCat("project.swell.dev/", api::Name(object));
    std::string_view note = client_only()          ? " (dry run)"
                            : dry_run_ == "server" ? " (server dry run)"
                                                   : "";
    if (form.table()) {
      session.OutLine(StrCat(name, " ", what, note));
    } else {
      session.Out(FormatObject(form, object, name));
    }
  }

 private:
  Status CheckParent(Api& api, const ProjectTree& tree, const std::string& name) const {
    auto parent = FindProject(tree, parent_);
    if (!parent.ok()) return parent.status().WithContext("--parent");
    const ProjectView* at = tree.Find(parent_);
    for (int depth = 0; at != nullptr && depth < api::kProjectDepthMax; ++depth) {
      if (at->name == name) {
        return Misuse(StrCat("--parent ", Quote(parent_), ": ", name,
                             " is below it; a project cannot be its own ancestor"));
      }
      at = at->parent.empty() ? nullptr : tree.Find(at->parent);
    }
    if (parent->department) return Status::Ok();
    // Nobody would be charged for it: work belongs to projects that have none below them.
    SWELL_ASSIGN_OR_RETURN(const std::string work, WorkText(api, tree, *parent));
    if (work.empty()) return Status::Ok();
    return Status(Code::kConflict,
                  StrCat("--parent: project ", Quote(parent_), work,
                         "; delete that first: a project with projects below it has no work of its "
                         "own"));
  }

  static Status SetCount(std::string_view flag,
                         const std::string& text,
                         std::string_view field,
                         json::Value& spec) {
    if (text.empty()) return Status::Ok();
    const auto number = ParseInt(text);
    if (!number || *number < 1 || *number > INT32_MAX) {
      return Misuse(StrCat(flag, " ", Quote(text), ": expected an integer from 1 to ", INT32_MAX));
    }
    json::Set(spec, {field}, *number);
    return Status::Ok();
  }

  static Status SetSeconds(std::string_view flag,
                           const std::string& text,
                           std::string_view field,
                           json::Value& spec) {
    if (text.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(Duration span, ParseDuration(text, flag));
    json::Set(spec, {field}, std::chrono::duration_cast<std::chrono::seconds>(span).count());
    return Status::Ok();
  }

  // A project that has its quota in one pool means that one when it names none.
  Result<std::string> PoolMeant(const ProjectTree& tree, const std::string& name) const {
    const ProjectView* known = tree.Find(name);
    if (!pool_.empty() || known == nullptr || !shares_.any() ||
        api::ProjectSpec(*known->object).HasQuotaInOtherPools()) {
      return pool_;
    }
    if (known->pools.size() == 1) return known->pools[0];
    return Misuse(StrCat("project ", Quote(name), " has quotas in several node pools; say which: ",
                         "--node-pool ", Join(known->pools, " or ")));
  }

  Status SetShares(Api& api,
                   const ProjectTree& tree,
                   const std::string& name,
                   json::Value& spec) const {
    SWELL_ASSIGN_OR_RETURN(json::Value resources, shares_.Resources());
    SWELL_ASSIGN_OR_RETURN(std::string pool_name, PoolMeant(tree, name));
    if (pool_name.empty()) {
      if (shares_.any()) json::Set(spec, {"resources"}, std::move(resources));
      return Status::Ok();
    }
    auto found = api.Get(client::resources::kNodePools, "", pool_name);
    if (!found.ok()) {
      if (found.status().code() != Code::kNotFound) return found.status();
      return Status(Code::kNotFound, StrCat("--node-pool: node pool ", Quote(pool_name),
                                            " not found; create it with: ", program_,
                                            " nodepool create ", pool_name, " --all-nodes"));
    }
    // The other pools of the project stay as they are.
    json::Array pools;
    const ProjectView* known = tree.Find(name);
    json::Value mine = json::Object{{"name", pool_name}};
    for (const json::Value& pool :
         known ? json::GetArray(*known->object, {"spec", "nodePools"}) : json::Array{}) {
      if (json::GetString(pool, {"name"}) == pool_name) {
        mine = pool;
      } else {
        pools.push_back(pool);
      }
    }
    for (const auto& resource : resources.get_object()) {
      std::string_view key{resource.key().data(), resource.key().size()};
      for (const auto& field : resource.value().get_object()) {
        json::Set(mine, {"resources", key, {field.key().data(), field.key().size()}},
                  field.value());
      }
    }
    pools.push_back(std::move(mine));
    json::Set(spec, {"nodePools"}, std::move(pools));
    return Status::Ok();
  }

  ShareFlags shares_;
  UserFlags users_;
  MemberFlags members_;
  HostPathFlags host_paths_;
  std::string description_, parent_, priority_, work_ns_, pool_, min_runtime_, reclaim_min_runtime_,
      dry_run_, output_;
  std::string pod_security_, autoscaling_, max_objects_, max_objects_mib_;
  bool isolated_ = false, open_ = false;
};

class ProjectCreate final : public ProjectWrite {
 public:
  bool Exists() const override { return false; }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ReadHow());
    program_ = session.root().name;
    if (words.size() != 1) {
      return Misuse(StrCat("expected one name: ", program_, " project create NAME"));
    }
    if (std::string wrong = api::CheckDnsLabel(words[0]); !wrong.empty()) {
      return Misuse(StrCat("project name ", Quote(words[0]), ": ", wrong));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    SWELL_ASSIGN_OR_RETURN(json::Value spec, Spec(*api, tree, words[0]));
    SWELL_RETURN_IF_ERROR(CheckLimitsOf(nullptr, spec, words[0]));
    json::Value project = json::Object{{"apiVersion", kApiVersion},
                                       {"kind", "Project"},
                                       {"metadata", json::Object{{"name", words[0]}}},
                                       {"spec", std::move(spec)}};
    if (client_only()) {
      Say(session, form, project, "created");
      return 0;
    }
    auto made = api->Create(client::resources::kProjects, "", project, Options());
    if (made.status().code() == Code::kAlreadyExists) {
      const std::string_view how = " already exists; to change it: swell project edit ";
      return Status(Code::kAlreadyExists, StrCat("project ", Quote(words[0]), how, words[0]));
    }
    if (!made.ok()) return made.status();
    Say(session, form, **made, "created");
    // The next command may use its namespace.
    const std::string ns(json::GetString(**made, {"spec", "namespace"}, words[0]));
    if (!Options().dry_run && !AwaitNamespace(*api, ns)) {
      session.ErrLine(
          StrCat("Its namespace ", ns, " does not exist yet; a controller creates it."));
    }
    return 0;
  }
};

class ProjectEdit final : public ProjectWrite {
 public:
  bool Exists() const override { return true; }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ReadHow());
    program_ = session.root().name;
    if (words.size() != 1) {
      return Misuse(StrCat("expected one name: ", program_, " project edit NAME --gpu-quota 8"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    auto read = [&] { return ReadProject(*api, words[0]); };
    if (client_only()) {
      SWELL_ASSIGN_OR_RETURN(const Seen seen, read());
      Say(session, form, *seen.project.object, "edited");
      return 0;
    }
    auto write = [&](const Seen& seen) {
      auto changed = api->Patch(client::resources::kProjects, "", seen.project.name,
                                client::PatchType::kMerge, seen.patch, Options());
      if (changed.ok()) {
        const bool same =
            api::ResourceVersion(**changed) == api::ResourceVersion(*seen.project.object);
        Say(session, form, **changed, same ? "unchanged" : "edited");
      }
      return changed;
    };
    SWELL_RETURN_IF_ERROR(client::UpdateWithRetry(read, write).status());
    return 0;
  }

 private:
  struct Seen {
    ProjectView project;
    json::Value patch;
  };

  // With the version that was looked at: lists are written whole, with what others have put there.
  Result<Seen> ReadProject(Api& api, const std::string& name) {
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(api));
    SWELL_ASSIGN_OR_RETURN(ProjectView project, FindProject(tree, name));
    SWELL_ASSIGN_OR_RETURN(json::Value spec, Spec(api, tree, project.name));
    if (spec.get_object().empty()) {
      return Misuse(StrCat("say what to change: ", program_, " project edit ", name,
                           " --gpu-quota 8, or edit the whole object: kubectl edit project ",
                           name));
    }
    SWELL_RETURN_IF_ERROR(CheckLimitsOf(json::Find(*project.object, {"spec"}), spec, name));
    json::Value patch = json::Object{{"spec", std::move(spec)}};
    client::SayVersionSeen(patch, *project.object);
    return Seen{std::move(project), std::move(patch)};
  }
};

class ProjectDelete final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--force", &force_, "even if it has jobs, which then have no quota");
    flags.Switch("--ignore-not-found", &ignore_, "do not fail if a project does not exist");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(StrCat("expected names: ", session.root().name, " project delete NAME..."));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    for (const std::string& name : words) {
      // Anew each time: the last one may have been this one's child.
      SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
      auto view = FindProject(tree, name);
      if (!view.ok() && ignore_) continue;
      if (!view.ok()) return view.status();
      if (!force_) SWELL_RETURN_IF_ERROR(CheckIdle(*api, tree, *view));
      auto gone = api->Delete(client::resources::kProjects, "", view->name);
      if (!gone.ok()) return gone.status();
      SWELL_RETURN_IF_ERROR(LiftGuard(*api, **gone));
      session.OutLine(StrCat("project.swell.dev ", Quote(name), " deleted"));
      if (!view->department) {
        session.ErrLine(StrCat("Its namespace is kept; kubectl delete namespace ", view->ns,
                               " deletes it with everything in it."));
      }
    }
    return 0;
  }

 private:
  // Removes the finalizer that keeps projects in use, from the project as the deletion left it: its
  // use was checked here, or shall not count. Nobody puts the finalizer back.
  static Status LiftGuard(Api& api, const json::Value& project) {
    json::Array kept = api::Finalizers(project);
    const size_t before = kept.size();
    kept.erase(std::remove(kept.begin(), kept.end(), json::Value(api::keys::kProjectInUse)),
               kept.end());
    if (kept.size() == before) return Status::Ok();
    json::Value patch =
        json::Object{{"metadata", json::Object{{"uid", api::Uid(project)}, {"finalizers", kept}}}};
    auto lifted = api.Patch(client::resources::kProjects, "", std::string(api::Name(project)),
                            client::PatchType::kMerge, patch);
    if (lifted.ok() || lifted.status().code() == Code::kNotFound) return Status::Ok();
    return lifted.status();
  }

  static Status CheckIdle(Api& api, const ProjectTree& tree, const ProjectView& project) {
    std::vector<std::string> children;
    for (const ProjectView& other : tree.projects) {
      if (other.parent == project.name) children.push_back(other.name);
    }
    if (!children.empty()) {
      return Status(Code::kConflict, StrCat("project ", Quote(project.name),
                                            " still has projects in it: ", Join(children, ", "),
                                            "; delete or move them first, or use --force"));
    }
    SWELL_ASSIGN_OR_RETURN(const std::string work, WorkText(api, tree, project));
    if (work.empty()) return Status::Ok();
    return Status(Code::kConflict, StrCat("project ", Quote(project.name), work,
                                          "; delete what is left first, or use --force"));
  }

  bool force_ = false, ignore_ = false;
};

class ProjectList final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT",
               "output format: json, yaml, wide, name or jsonpath=TEMPLATE");
    flags.Switch("--pools", &pools_, "show the use of each node pool");
    flags.Switch("--no-headers", &no_headers_, "omit the header");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    std::vector<ProjectView> shown = tree.projects;
    if (!words.empty()) {
      shown.clear();
      for (const std::string& word : words) {
        SWELL_ASSIGN_OR_RETURN(ProjectView view, FindProject(tree, word));
        shown.push_back(std::move(view));
      }
    }
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const ProjectView& view : shown) {
        objects.push_back(view.object);
        if (form.kind == OutputForm::Kind::kName) {
          session.OutLine(StrCat("project.swell.dev/", view.name));
        }
      }
      if (form.kind != OutputForm::Kind::kName) {
        session.Out(FormatObject(form, MakeList(objects), ""));
      }
      return 0;
    }
    if (shown.empty()) {
      session.ErrLine(StrCat("There are no projects. Create one with: ", session.root().name,
                             " project create NAME --gpu-quota N"));
      return 0;
    }
    if (pools_) return PrintPools(session, shown);
    session.Out(
        ProjectTable(session, tree, shown,
                     {.wide = form.kind == OutputForm::Kind::kWide, .headers = !no_headers_}));
    return 0;
  }

 private:
  Result<int> PrintPools(Session& session, const std::vector<ProjectView>& shown) const {
    if (std::all_of(shown.begin(), shown.end(),
                    [](const ProjectView& view) { return view.pool_use.empty(); })) {
      session.ErrLine(StrCat("The cluster has no node pools. Create one with: ",
                             session.root().name, " nodepool create NAME --all-nodes"));
      return 0;
    }
    session.Out(ProjectPoolTable(session, shown, !no_headers_));
    return 0;
  }

  std::string output_;
  bool pools_ = false, no_headers_ = false;
};

Command Child(std::string name,
              std::string summary,
              std::string usage,
              std::vector<Example> examples,
              std::function<std::unique_ptr<Action>()> make) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .usage = std::move(usage),
      .examples = std::move(examples),
      .make = std::move(make),
  };
}

}  // namespace

Command ProjectCommandSpec(const std::string& program) {
  Command command{
      .name = "project",
      .aliases = {"projects"},
      .group = "Share",
      .summary = "Manage projects and their quotas.",
  };
  Command list = Child("list", "List projects with use, quota and fair share.", "[NAME...]",
                       {{"All", program + " project list"}}, Makes<ProjectList>());
  list.aliases = {"ls", "get"};
  list.examples.push_back({"The use of each node pool", program + " project list --pools"});
  list.notes =
      "If a project's quota names no node pool, it counts in all of them together. --pools shows "
      "it as shared.";
  command.children = {
      Child("create", "Create a project and its namespace.", "NAME",
            {{"A project with a quota of four GPUs of a pool",
              program + " project create project-a --node-pool single-node-pool --gpu-quota 4"},
             {"A department and a project in it",
              program + " project create research --gpu-quota 16 && " + program +
                  " project create vision --parent research --gpu-quota 8 --over-quota-weight 2"}},
            Makes<ProjectCreate>()),
      std::move(list),
      Child("edit", "Change the quotas, members and settings of a project.", "NAME",
            {{"Raise the GPU quota", program + " project edit project-a --gpu-quota 8"},
             {"Remove the GPU limit", program + " project edit project-a --gpu-limit unlimited"},
             {"Members", program + " project edit project-a --member alice=researcher "
                                   "--member group:ml=viewer --remove-member bob"}},
            Makes<ProjectEdit>()),
      Child("delete", "Delete projects that have no jobs and no child projects.", "NAME...",
            {{"A project", program + " project delete project-a"}}, Makes<ProjectDelete>())};
  return command;
}

}  // namespace swell::cli
