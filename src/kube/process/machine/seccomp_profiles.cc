#include "kube/process/machine/seccomp_profiles.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "json/value.h"
#include "kube/process/machine/system_calls.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

constexpr int kLastCall = 600;  // beyond the highest number that any kernel gives today
constexpr size_t kProfileBytesMax = 1 << 20;
constexpr size_t kProfilesMax = 64;

struct FilterEnd {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Filter = std::unique_ptr<void, FilterEnd>;

Status Failed(int result, std::string_view what) {
  return Status(Code::kInternal,
                StrCat("seccomp: ", what, ": ", ErrnoStatus(-result, "").message()));
}

Result<std::string> Export(const Filter& filter) {
  const UniqueFd file(static_cast<int>(::memfd_create("filter", MFD_CLOEXEC)));
  if (!file.valid()) return ErrnoStatus(errno, "memfd_create");
  // A tree of comparisons: a call costs a few of them instead of hundreds.
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (int result = ::seccomp_export_bpf(filter.get(), file.get()); result != 0) {
    return Failed(result, "compile");
  }
  ::lseek(file.get(), 0, SEEK_SET);
  std::string program;
  char buffer[16384];
  ssize_t n;
  while ((n = ::read(file.get(), buffer, sizeof buffer)) > 0) {
    program.append(buffer, static_cast<size_t>(n));
  }
  return program;
}

Result<Filter> NewFilter(uint32_t otherwise) {
  Filter filter(::seccomp_init(otherwise));
  if (!filter) return Status(Code::kInternal, "seccomp: no filter can be made");
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  // The shim decides about that.
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 0);
  if (::seccomp_arch_native() == SCMP_ARCH_X86_64) {
    if (int result = ::seccomp_arch_add(filter.get(), SCMP_ARCH_X86); result != 0) {
      return Failed(result, "add the 32-bit calls");
    }
  }
  return filter;
}

// Calls that the library has no name for on this machine are none of its kernel's.
Status Add(const Filter& filter,
           uint32_t action,
           std::string_view name,
           const std::vector<scmp_arg_cmp>& arguments = {}) {
  const int call = ::seccomp_syscall_resolve_name(std::string(name).c_str());
  if (call == __NR_SCMP_ERROR) return Status::Ok();
  const int result =
      ::seccomp_rule_add_array(filter.get(), action, call, static_cast<unsigned>(arguments.size()),
                               arguments.empty() ? nullptr : arguments.data());
  // Not on every one of the machine's two sets of calls: then on the one that has it.
  if (result == 0 || result == -EDOM || result == -EFAULT) return Status::Ok();
  return Failed(result, StrCat("rule for ", name));
}

bool Has(node::CapabilitySet set, std::string_view name) {
  return (set >> node::CapabilityNumber(name).value_or(63) & 1) != 0;
}

// Calls that are allowed with certain arguments alone.
Status AddPartly(const Filter& filter, node::CapabilitySet capabilities) {
  // Programs that emulate others; the rest of its values weakens what protects them.
  for (uint64_t value : {0x0ULL, 0x8ULL, 0x20000ULL, 0x20008ULL, 0xffffffffULL}) {
    SWELL_RETURN_IF_ERROR(
        Add(filter, SCMP_ACT_ALLOW, "personality", {SCMP_A0(SCMP_CMP_EQ, value, 0)}));
  }
  // Sockets to the machine's hypervisor have no namespaces.
  constexpr uint64_t kVsock = 40;
  SWELL_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, "socket", {SCMP_A0(SCMP_CMP_NE, kVsock, 0)}));
  if (Has(capabilities, "SYS_ADMIN")) return Status::Ok();
  // New processes, but no new namespaces.
  constexpr uint64_t kNamespaces = 0x7E020000;
  SWELL_RETURN_IF_ERROR(
      Add(filter, SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0)}));
  // clone3 has no rule: its arguments lie in memory, where no filter sees them. It answers ENOSYS,
  // as what is unknown does, and libraries then use clone.
  return Status::Ok();
}

// What decides about the default filter.
node::CapabilitySet Relevant(node::CapabilitySet set) {
  node::CapabilitySet relevant = 0;
  for (const CapabilityCalls& row : CallsOfCapabilities()) {
    const int number = node::CapabilityNumber(row.capability).value_or(63);
    relevant |= set & (node::CapabilitySet{1} << number);
  }
  return relevant;
}

// ---- Localhost ----

Status Wrong(std::string_view field, std::string_view why) {
  return Status(Code::kInvalid, StrCat(field, ": ", why));
}

Result<uint32_t> ActionOf(std::string_view name, int64_t errno_value, std::string_view field) {
  if (name == "SCMP_ACT_ALLOW") return SCMP_ACT_ALLOW;
  if (name == "SCMP_ACT_ERRNO") return SCMP_ACT_ERRNO(static_cast<uint16_t>(errno_value));
  if (name == "SCMP_ACT_KILL" || name == "SCMP_ACT_KILL_THREAD") return SCMP_ACT_KILL_THREAD;
  if (name == "SCMP_ACT_KILL_PROCESS") return SCMP_ACT_KILL_PROCESS;
  if (name == "SCMP_ACT_TRAP") return SCMP_ACT_TRAP;
  if (name == "SCMP_ACT_LOG") return SCMP_ACT_LOG;
  return Wrong(field, StrCat(Quote(name),
                             " must be SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, SCMP_ACT_LOG, "
                             "SCMP_ACT_TRAP or SCMP_ACT_KILL_PROCESS"));
}

Result<scmp_compare> ComparisonOf(std::string_view name, std::string_view field) {
  static constexpr std::pair<std::string_view, scmp_compare> kAll[] = {
      {"SCMP_CMP_NE", SCMP_CMP_NE},
      {"SCMP_CMP_LT", SCMP_CMP_LT},
      {"SCMP_CMP_LE", SCMP_CMP_LE},
      {"SCMP_CMP_EQ", SCMP_CMP_EQ},
      {"SCMP_CMP_GE", SCMP_CMP_GE},
      {"SCMP_CMP_GT", SCMP_CMP_GT},
      {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}};
  for (const auto& [known, value] : kAll) {
    if (known == name) return value;
  }
  return Wrong(field, StrCat(Quote(name), " is not a comparison"));
}

Result<std::vector<scmp_arg_cmp>> ArgumentsOf(const json::Value& rule, const std::string& field) {
  std::vector<scmp_arg_cmp> out;
  const json::Array& items = json::GetArray(rule, {"args"});
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = StrCat(field, ".args[", i, "]");
    const int64_t index = json::GetInt(items[i], {"index"}, -1);
    if (index < 0 || index > 5) return Wrong(at + ".index", "must be 0 to 5");
    SWELL_ASSIGN_OR_RETURN(const scmp_compare op,
                           ComparisonOf(json::GetString(items[i], {"op"}), at + ".op"));
    out.push_back({static_cast<unsigned>(index), op,
                   static_cast<scmp_datum_t>(json::GetInt(items[i], {"value"})),
                   static_cast<scmp_datum_t>(json::GetInt(items[i], {"valueTwo"}))});
  }
  return out;
}

bool SameIndexTwice(const std::vector<scmp_arg_cmp>& arguments) {
  std::set<unsigned> seen;
  return std::any_of(arguments.begin(), arguments.end(),
                     [&seen](const scmp_arg_cmp& one) { return !seen.insert(one.arg).second; });
}

Status AddOciRule(const Filter& filter,
                  const json::Value& rule,
                  const std::string& field,
                  uint32_t otherwise) {
  SWELL_ASSIGN_OR_RETURN(const uint32_t action,
                         ActionOf(json::GetString(rule, {"action"}),
                                  json::GetInt(rule, {"errnoRet"}, EPERM), field + ".action"));
  SWELL_ASSIGN_OR_RETURN(const std::vector<scmp_arg_cmp> arguments, ArgumentsOf(rule, field));
  const json::Array& names = json::GetArray(rule, {"names"});
  if (names.empty()) return Wrong(field + ".names", "must name a system call");
  if (action == otherwise) return Status::Ok();  // says what holds anyway
  for (const json::Value& name : names) {
    if (!name.is_string()) return Wrong(field + ".names", "must be strings");
    const std::string_view text = json::View(name.get_string());
    // Several conditions on one argument are alternatives; on different ones all must hold.
    if (!SameIndexTwice(arguments)) {
      SWELL_RETURN_IF_ERROR(Add(filter, action, text, arguments));
      continue;
    }
    for (const scmp_arg_cmp& one : arguments) {
      SWELL_RETURN_IF_ERROR(Add(filter, action, text, {one}));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> CompileDefaultFilter(node::CapabilitySet capabilities, Ports ports) {
  SWELL_ASSIGN_OR_RETURN(const Filter filter, NewFilter(SCMP_ACT_ERRNO(ENOSYS)));
  std::set<std::string_view> allowed(OrdinaryCalls().begin(), OrdinaryCalls().end());
  for (const CapabilityCalls& row : CallsOfCapabilities()) {
    if (Has(capabilities, row.capability)) allowed.insert(row.calls.begin(), row.calls.end());
  }
  // The 32-bit call that stands for all of a socket's would be a way around; the library allows the
  // others of them by their own names.
  constexpr std::string_view kAllOfSockets = "socketcall";
  if (ports == Ports::kClosed) {
    for (std::string_view name :
         {std::string_view("bind"), std::string_view("listen"), kAllOfSockets}) {
      allowed.erase(name);
    }
  }
  for (std::string_view name : allowed) {
    SWELL_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, name));
  }
  SWELL_RETURN_IF_ERROR(AddPartly(filter, capabilities));
  // Those that exist and are not for pods answer EPERM, as people expect of a refusal.
  static const std::set<std::string_view> kPartly = {"personality", "socket", "clone", "clone3"};
  std::vector<uint32_t> sets{::seccomp_arch_native()};
  if (sets[0] == SCMP_ARCH_X86_64) sets.push_back(SCMP_ARCH_X86);
  for (const uint32_t arch : sets) {
    for (int call = 0; call < kLastCall; ++call) {
      char* name = ::seccomp_syscall_resolve_num_arch(arch, call);
      if (name == nullptr) continue;
      const std::string copy = name;
      ::free(name);
      if (allowed.contains(copy) || kPartly.contains(copy) || copy == kAllOfSockets) continue;
      SWELL_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ERRNO(EPERM), copy));
    }
  }
  return Export(filter);
}

Result<std::string> CompileOciFilter(std::string_view profile_json) {
  SWELL_ASSIGN_OR_RETURN(const json::Value profile, json::Parse(profile_json));
  if (!profile.is_object()) return Wrong("profile", "must be an object");
  static const std::set<std::string_view> kKnown = {"defaultAction", "defaultErrnoRet",
                                                    "architectures", "flags", "syscalls"};
  for (const auto& item : profile.get_object()) {
    if (!kKnown.contains(std::string_view(item.key()))) {
      return Wrong(std::string_view(item.key()),
                   "is not supported; profiles have the form of the OCI runtime specification");
    }
  }
  for (const json::Value& flag : json::GetArray(profile, {"flags"})) {
    const std::string_view text = flag.is_string() ? json::View(flag.get_string()) : "";
    if (text != "SECCOMP_FILTER_FLAG_TSYNC")
      return Wrong("flags", Quote(text) + " is not supported");
  }
  SWELL_ASSIGN_OR_RETURN(
      const uint32_t otherwise,
      ActionOf(json::GetString(profile, {"defaultAction"}),
               json::GetInt(profile, {"defaultErrnoRet"}, EPERM), "defaultAction"));
  SWELL_ASSIGN_OR_RETURN(const Filter filter, NewFilter(otherwise));
  const json::Array& rules = json::GetArray(profile, {"syscalls"});
  for (size_t i = 0; i < rules.size(); ++i) {
    SWELL_RETURN_IF_ERROR(AddOciRule(filter, rules[i], StrCat("syscalls[", i, "]"), otherwise));
  }
  return Export(filter);
}

Result<std::string> SeccompProfiles::FileFor(const node::ContainerSecurity& security, Ports ports) {
  using Kind = node::SecurityProfile::Kind;
  if (security.privileged || security.seccomp.kind == Kind::kUnconfined) return std::string();
  if (ports == Ports::kMayOpen && security.seccomp.kind == Kind::kLocalhost) {
    return Localhost(security.seccomp.name);
  }
  std::string& file = defaults_[{Relevant(security.capabilities), ports}];
  if (file.empty() || !FileExists(file)) {
    SWELL_ASSIGN_OR_RETURN(const std::string filter,
                           CompileDefaultFilter(security.capabilities, ports));
    SWELL_ASSIGN_OR_RETURN(file, Keep(filter));
  }
  return file;
}

Result<std::string> SeccompProfiles::Localhost(const std::string& name) {
  const std::string what = StrCat("securityContext.seccompProfile.localhostProfile: ", Quote(name));
  if (name.starts_with('/') || StrCat("/", name, "/").find("/../") != std::string::npos) {
    return Status(Code::kForbidden, what + " must be a path below the node's profiles");
  }
  const std::string path = StrCat(data_dir_, "/seccomp/", name);
  auto text = ReadFile(path, kProfileBytesMax);
  if (!text.ok()) {
    return Status(Code::kForbidden, StrCat(what, ": there is no profile ", path,
                                           " on this node; an administrator "
                                           "puts it there"));
  }
  auto known = localhost_.find(*text);
  if (known != localhost_.end() && FileExists(known->second)) return known->second;
  auto filter = CompileOciFilter(*text);
  if (!filter.ok()) return Status(Code::kForbidden, StrCat(what, ": ", filter.status().message()));
  SWELL_ASSIGN_OR_RETURN(const std::string file, Keep(*filter));
  if (localhost_.size() >= kProfilesMax) localhost_.clear();
  localhost_[*text] = file;
  return file;
}

Result<std::string> SeccompProfiles::Keep(const std::string& filter) {
  const std::string dir = data_dir_ + "/run/seccomp";
  SWELL_RETURN_IF_ERROR(MakeDirs(dir));
  std::string file = StrCat(dir, "/", StableHash(filter), ".bpf");
  if (!FileExists(file)) SWELL_RETURN_IF_ERROR(ReplaceFile(file, filter, 0644));
  return file;
}

}  // namespace swell::process
