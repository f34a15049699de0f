#include "kube/node/spec/pod_spec.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/container_list.h"

namespace swell::node {
namespace {

// CPU in thousandths, everything else in whole units.
Amounts Whole(const api::Amounts& exact) {
  Amounts amounts;
  for (const auto& [name, amount] : exact) {
    amounts[name] = name == "cpu" ? amount.MilliValue() : amount.Value();
  }
  return amounts;
}

// The kernel limits each argument and variable of a program (MAX_ARG_STRLEN), and all of them
// together. References to variables in variables can multiply their length with each one, so the
// size is checked at each.
constexpr size_t kTextBytesMax = (128 << 10) - 1;
constexpr size_t kTextsBytesMax = 6 << 20;

// Texts for programs or the kernel, where they end at the first zero byte.
Status CheckText(std::string_view what, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Status(Code::kInvalid, StrCat(what,
                                         ": has a zero byte (\\u0000), and what follows it "
                                         "would be lost"));
  }
  if (text.size() <= kTextBytesMax) return Status::Ok();
  return Status(Code::kInvalid, StrCat(what, ": is longer than the ", kTextBytesMax,
                                       " bytes that a program can be given"));
}

Status CheckTotal(std::string_view what, size_t bytes) {
  if (bytes <= kTextsBytesMax) return Status::Ok();
  return Status(Code::kInvalid, StrCat(what, ": all together is longer than the ", kTextsBytesMax,
                                       " bytes that a program can be given"));
}

// Counts what a container's environment has so far, and whether the kernel would accept it.
class EnvChecks {
 public:
  explicit EnvChecks(const EnvList& env) : env_(env) {}
  // Counts the variables that were added since the last call.
  Status Rest() {
    for (; checked_ < env_.size(); ++checked_) {
      const auto& [name, value] = env_[checked_];
      bytes_ += name.size() + value.size();
      SWELL_RETURN_IF_ERROR(CheckText(StrCat("env[", name, "]"), value));
    }
    return CheckTotal("env", bytes_);
  }

 private:
  const EnvList& env_;
  size_t checked_ = 0;
  size_t bytes_ = 0;
};

Status AppendEnvFrom(const EnvContext& context,
                     const json::Value& container,
                     EnvList& env,
                     EnvChecks& checks) {
  for (const json::Value& from : json::GetArray(container, {"envFrom"})) {
    bool secret = json::Find(from, {"secretRef"}) != nullptr;
    std::string_view ref = secret ? "secretRef" : "configMapRef";
    std::string_view name = json::GetString(from, {ref, "name"});
    auto source = secret ? context.sources.Secret(name) : context.sources.ConfigMap(name);
    if (!source.ok()) {
      if (json::GetBool(from, {ref, "optional"})) continue;
      return source.status();
    }
    std::string_view prefix = json::GetString(from, {"prefix"});
    for (const auto& item : json::GetObject(**source, {"data"})) {
      if (!item.value().is_string()) continue;
      std::string value(json::View(item.value().get_string()));
      if (secret) value = Base64Decode(value).value_or("");
      env.emplace_back(StrCat(prefix, std::string_view(item.key())), std::move(value));
    }
    SWELL_RETURN_IF_ERROR(checks.Rest());
  }
  return Status::Ok();
}

// The value of one key; nullopt when it is missing and that is allowed.
Result<std::optional<std::string>> KeyRef(const EnvContext& context,
                                          const json::Value& ref,
                                          bool secret) {
  std::string_view name = json::GetString(ref, {"name"});
  std::string_view key = json::GetString(ref, {"key"});
  bool optional = json::GetBool(ref, {"optional"});
  auto source = secret ? context.sources.Secret(name) : context.sources.ConfigMap(name);
  if (!source.ok()) {
    if (optional) return std::optional<std::string>();
    return source.status();
  }
  const json::Value* value = json::Find(**source, {"data", key});
  if (value == nullptr || !value->is_string()) {
    if (optional) return std::optional<std::string>();
    return Status(Code::kNotFound,
                  StrCat("couldn't find key ", key, " in ", secret ? "Secret " : "ConfigMap ",
                         api::Namespace(context.pod), "/", name));
  }
  std::string text(json::View(value->get_string()));
  if (secret) text = Base64Decode(text).value_or("");
  return std::optional<std::string>(std::move(text));
}

Result<std::optional<std::string>> ValueFrom(const EnvContext& context,
                                             const json::Value& container,
                                             const json::Value& from) {
  if (const json::Value* ref = json::Find(from, {"configMapKeyRef"})) {
    return KeyRef(context, *ref, false);
  }
  if (const json::Value* ref = json::Find(from, {"secretKeyRef"})) {
    return KeyRef(context, *ref, true);
  }
  if (const json::Value* ref = json::Find(from, {"fieldRef"})) {
    SWELL_ASSIGN_OR_RETURN(std::string value,
                           FieldRef(context, json::GetString(*ref, {"fieldPath"})));
    return std::optional<std::string>(std::move(value));
  }
  if (const json::Value* ref = json::Find(from, {"resourceFieldRef"})) {
    SWELL_ASSIGN_OR_RETURN(std::string value, ResourceFieldRef(context, *ref, &container));
    return std::optional<std::string>(std::move(value));
  }
  return Status(Code::kInvalid, "env.valueFrom: names no source this agent knows");
}

Result<std::vector<std::string>> ExpandAll(const json::Value& container,
                                           std::string_view field,
                                           const EnvList& env) {
  std::vector<std::string> out;
  size_t bytes = 0;
  for (const json::Value& item : json::GetArray(container, {field})) {
    if (!item.is_string()) continue;
    out.push_back(ExpandVariables(json::View(item.get_string()), env));
    bytes += out.back().size();
    SWELL_RETURN_IF_ERROR(CheckText(StrCat(field, "[", out.size() - 1, "]"), out.back()));
    SWELL_RETURN_IF_ERROR(CheckTotal(field, bytes));
  }
  return out;
}

std::optional<int64_t> SecurityId(const json::Value& pod,
                                  const json::Value& container,
                                  std::string_view field) {
  const json::Value* value = json::Find(container, {"securityContext", field});
  if (value == nullptr) value = json::Find(pod, {"spec", "securityContext", field});
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

}  // namespace

Amounts ReadAmounts(const json::Value* list) { return Whole(api::ReadAmounts(list)); }

std::string FormatAmount(std::string_view resource, int64_t amount) {
  if (resource != "cpu") return std::to_string(amount);
  if (amount % 1000 == 0) return std::to_string(amount / 1000);
  return StrCat(amount, "m");
}

Amounts PodRequests(const json::Value& pod) {
  return Whole(api::PodAmounts(api::Spec(pod), api::AmountField::kRequests));
}

CpuAndMemory CpuAndMemoryOf(const json::Value& resources) {
  const Amounts limits = ReadAmounts(json::Find(resources, {"limits"}));
  Amounts requests = ReadAmounts(json::Find(resources, {"requests"}));
  requests.insert(limits.begin(), limits.end());
  const auto of = [](const Amounts& amounts, std::string_view name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? 0 : found->second;
  };
  return {of(requests, "cpu"), of(limits, "cpu"), of(limits, "memory")};
}

int64_t GraceSeconds(const json::Value& pod) {
  return std::max<int64_t>(0, json::GetInt(pod, {"spec", "terminationGracePeriodSeconds"}, 30));
}

std::string CheckpointKey(const json::Value& pod) {
  std::string group(api::Label(pod, api::keys::kPodGroup));
  if (group.empty()) group = api::Annotation(pod, api::keys::kPodGroup);
  auto owner = api::ControllerOf(pod);
  if (group.empty()) group = owner ? owner->name : std::string(api::Name(pod));
  // A pod without an owner is the job itself: its uid would lose the checkpoint when the pod is
  // created again, so its name alone is the key. The pods of an operator's gang may have different
  // controllers, and get others when they are created again: the group's owner is the key.
  std::string uid(api::Annotation(pod, api::keys::kGroupOwner));
  if (uid.empty() && owner) uid = owner->uid;
  const std::string suffix = uid.empty() ? "" : "-" + uid.substr(0, 8);
  return StrCat(api::Namespace(pod), "/", group, suffix);
}

std::string JobUid(const json::Value& pod) {
  const auto owner = api::ControllerOf(pod);
  if (!owner) return "";
  const std::string_view version = owner->api_version;
  const size_t slash = version.find('/');
  const std::string_view group = slash == std::string_view::npos ? "" : version.substr(0, slash);
  return group.empty() || group == "apps" || group == "batch" ? "" : owner->uid;
}

std::string ExpandVariables(std::string_view text, const EnvList& env) {
  std::string out;
  size_t at = 0;
  // A longer text would be refused anyway.
  while (at < text.size() && out.size() <= kTextBytesMax) {
    // NOLINTNEXTLINE(bugprone-branch-clone): the last branch is what no other took
    if (text[at] != '$' || at + 1 == text.size()) {
      out += text[at++];
    } else if (text[at + 1] == '$') {
      out += '$';
      at += 2;
    } else if (size_t end = text[at + 1] == '(' ? text.find(')', at) : std::string_view::npos;
               end != std::string_view::npos) {
      std::string_view name = text.substr(at + 2, end - at - 2);
      auto found = std::find_if(env.rbegin(), env.rend(),
                                [&](const auto& item) { return item.first == name; });
      out += found != env.rend() ? std::string_view(found->second) : text.substr(at, end - at + 1);
      at = end + 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

Result<EnvList> ContainerEnv(const EnvContext& context, const json::Value& container) {
  EnvList env = context.service_env;
  EnvChecks checks(env);
  SWELL_RETURN_IF_ERROR(checks.Rest());
  SWELL_RETURN_IF_ERROR(AppendEnvFrom(context, container, env, checks));
  for (const json::Value& item : json::GetArray(container, {"env"})) {
    std::string name(json::GetString(item, {"name"}));
    if (const json::Value* from = json::Find(item, {"valueFrom"})) {
      SWELL_ASSIGN_OR_RETURN(auto value, ValueFrom(context, container, *from));
      if (value) env.emplace_back(std::move(name), std::move(*value));
    } else {
      env.emplace_back(std::move(name), ExpandVariables(json::GetString(item, {"value"}), env));
    }
    SWELL_RETURN_IF_ERROR(checks.Rest());
  }
  return env;
}

namespace {

// Files that the agent writes: a container that could put links among them would have the agent
// write, and remove, what these point at.
bool IsWrittenByAgent(const json::Value& pod, std::string_view name) {
  const json::Array& volumes = json::GetArray(pod, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), [name](const json::Value& volume) {
    return json::GetString(volume, {"name"}) == name && IsOfFiles(volume);
  });
}

Result<MountSpec> ReadMount(const json::Value& pod, const json::Value& mount, const EnvList& env) {
  MountSpec out{std::string(json::GetString(mount, {"name"})),
                std::string(json::GetString(mount, {"mountPath"})),
                std::string(json::GetString(mount, {"subPath"})),
                json::GetBool(mount, {"readOnly"})};
  out.read_only = out.read_only || IsWrittenByAgent(pod, out.volume);
  const std::string_view expression = json::GetString(mount, {"subPathExpr"});
  if (!expression.empty()) out.sub_path = ExpandVariables(expression, env);
  const std::string what = StrCat("volumeMounts[", out.volume, "].");
  if (out.sub_path.starts_with('/') ||
      StrCat("/", out.sub_path, "/").find("/../") != std::string::npos) {
    return Status(Code::kInvalid,
                  StrCat(what, "subPath: ", Quote(out.sub_path), " leaves the volume"));
  }
  SWELL_RETURN_IF_ERROR(CheckText(what + "mountPath", out.container_path));
  SWELL_RETURN_IF_ERROR(CheckText(what + "subPath", out.sub_path));
  return out;
}

void ReadUser(const json::Value& pod, const json::Value& container, ContainerSpec& spec) {
  spec.run_as_user = SecurityId(pod, container, "runAsUser");
  spec.run_as_group = SecurityId(pod, container, "runAsGroup");
  spec.run_as_non_root =
      json::GetBool(container, {"securityContext", "runAsNonRoot"},
                    json::GetBool(pod, {"spec", "securityContext", "runAsNonRoot"}));
  for (const json::Value& group :
       json::GetArray(pod, {"spec", "securityContext", "supplementalGroups"})) {
    if (group.is_int64()) spec.supplemental_groups.push_back(group.get_int64());
  }
  spec.strict_groups =
      json::GetString(pod, {"spec", "securityContext", "supplementalGroupsPolicy"}) == "Strict";
}

int64_t AmountOf(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

// The memory that the pod requests beyond its containers' requests: an equal part for each.
int64_t MemoryPart(const json::Value& pod_spec) {
  const Amounts whole = Whole(api::ReadWholePod(pod_spec).requests);
  const Amounts own = Whole(api::ContainersAmounts(pod_spec, api::AmountField::kRequests));
  const size_t containers = json::GetArray(pod_spec, {"containers"}).size() +
                            json::GetArray(pod_spec, {"initContainers"}).size();
  const int64_t rest = AmountOf(whole, "memory") - AmountOf(own, "memory");
  return containers == 0 ? 0 : std::max<int64_t>(0, rest) / static_cast<int64_t>(containers);
}

void ReadAmountsOf(const json::Value& pod, const json::Value& container, ContainerSpec& spec) {
  const json::Value* resources = json::Find(container, {"resources"});
  const CpuAndMemory amounts =
      CpuAndMemoryOf(WithPodLimits(resources == nullptr ? json::Value(json::Object()) : *resources,
                                   json::Find(pod, {"spec", "resources"})));
  const Amounts requests = ReadAmounts(json::Find(container, {"resources", "requests"}));
  const Amounts limits = ReadAmounts(json::Find(container, {"resources", "limits"}));
  spec.memory_request_bytes = AmountOf(requests.contains("memory") ? requests : limits, "memory");
  spec.whole_pod = WholePod(api::Spec(pod));
  if (spec.whole_pod) spec.memory_request_bytes += MemoryPart(api::Spec(pod));
  spec.cpu_request_milli = amounts.cpu_request_milli;
  spec.cpu_limit_milli = amounts.cpu_limit_milli;
  spec.memory_limit_bytes = amounts.memory_limit_bytes;
}

}  // namespace

json::Value WithPodLimits(json::Value resources, const json::Value* of_pod) {
  if (of_pod == nullptr) return resources;
  const Amounts own = ReadAmounts(json::Find(resources, {"limits"}));
  for (const std::string_view name : {"cpu", "memory"}) {
    const json::Value* limit = json::Find(*of_pod, {"limits", name});
    if (limit == nullptr || AmountOf(own, name) > 0) continue;
    json::Set(resources, {"limits", name}, *limit);
  }
  return resources;
}

std::optional<CpuAndMemory> WholePod(const json::Value& pod_spec) {
  const api::WholePodAmounts whole = api::ReadWholePod(pod_spec);
  if (whole.empty()) return std::nullopt;
  const Amounts limits = Whole(api::PodAmounts(pod_spec, api::AmountField::kLimits));
  auto limit = [&](std::string_view name) {
    return whole.limits.contains(name) ? AmountOf(limits, name) : 0;
  };
  return CpuAndMemory{
      AmountOf(Whole(api::PodAmounts(pod_spec, api::AmountField::kRequests)), "cpu"), limit("cpu"),
      limit("memory")};
}

Result<ContainerSpec> MakeContainerSpec(const EnvContext& context,
                                        const json::Value& container,
                                        int attempt) {
  const json::Value& pod = context.pod;
  ContainerSpec spec;
  spec.ref = {std::string(api::Uid(pod)), std::string(json::GetString(container, {"name"})),
              attempt};
  spec.image = json::GetString(container, {"image"});
  spec.target = json::GetString(container, {"targetContainerName"});
  SWELL_ASSIGN_OR_RETURN(spec.env, ContainerEnv(context, container));
  SWELL_ASSIGN_OR_RETURN(spec.command, ExpandAll(container, "command", spec.env));
  SWELL_ASSIGN_OR_RETURN(spec.args, ExpandAll(container, "args", spec.env));
  spec.working_dir = json::GetString(container, {"workingDir"});
  SWELL_RETURN_IF_ERROR(CheckText("workingDir", spec.working_dir));
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    SWELL_ASSIGN_OR_RETURN(MountSpec out, ReadMount(pod, mount, spec.env));
    spec.mounts.push_back(std::move(out));
  }
  ReadUser(pod, container, spec);
  spec.stop_signal = json::GetString(container, {"lifecycle", "stopSignal"});
  spec.read_only_root = json::GetBool(container, {"securityContext", "readOnlyRootFilesystem"});
  SWELL_ASSIGN_OR_RETURN(spec.security, ReadContainerSecurity(pod, container));
  spec.host_network = json::GetBool(pod, {"spec", "hostNetwork"});
  ReadAmountsOf(pod, container, spec);
  spec.grace_seconds = GraceSeconds(pod);
  spec.open_stdin = json::GetBool(container, {"stdin"});
  spec.stdin_once = json::GetBool(container, {"stdinOnce"});
  spec.tty = json::GetBool(container, {"tty"});
  spec.termination_path =
      json::GetString(container, {"terminationMessagePath"}, "/dev/termination-log");
  SWELL_RETURN_IF_ERROR(CheckText("terminationMessagePath", spec.termination_path));
  return spec;
}

int64_t PodMemoryLimit(const json::Value& pod) {
  const Amounts whole = Whole(api::ReadWholePod(api::Spec(pod)).limits);
  if (const int64_t limit = AmountOf(whole, "memory"); limit > 0) return limit;
  int64_t sum = 0;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    const Amounts limits = ReadAmounts(json::Find(container, {"resources", "limits"}));
    const auto limit = limits.find("memory");
    if (limit == limits.end() || limit->second <= 0) return 0;
    sum += limit->second;
  }
  return sum;
}

const json::Value* FindContainer(const json::Value& pod, std::string_view name) {
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::Array& containers = json::GetArray(pod, {"spec", list});
    if (const json::Value* found = api::ContainerIn(containers, name)) return found;
  }
  return nullptr;
}

}  // namespace swell::node
