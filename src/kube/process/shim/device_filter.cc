#include "kube/process/shim/device_filter.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::process {
namespace {

constexpr size_t kRulesMax = 512;

struct Rule {
  bool block = false;
  uint32_t major = 0;
  std::optional<uint32_t> minor;  // empty: all of them
};

Result<Rule> ParseRule(std::string_view text) {
  const size_t colon = text.find(':');
  const bool sound = text.size() > 4 && colon != std::string_view::npos && colon > 2 &&
                     (text.starts_with("c ") || text.starts_with("b "));
  const auto major = sound ? ParseInt(text.substr(2, colon - 2)) : std::nullopt;
  const std::string_view rest = sound ? text.substr(colon + 1) : "";
  const auto minor = ParseInt(rest);
  if (!major || *major < 0 || (rest != "*" && (!minor || *minor < 0))) {
    return Status(Code::kInvalid, StrCat(Quote(text), " is not a rule about devices"));
  }
  Rule rule{text[0] == 'b', static_cast<uint32_t>(*major), std::nullopt};
  if (minor) rule.minor = static_cast<uint32_t>(*minor);
  return rule;
}

// ---- version 2 ----

bpf_insn Instruction(int code, int to, int from, int offset, int32_t value) {
  bpf_insn out{};
  out.code = static_cast<uint8_t>(code);
  out.dst_reg = static_cast<uint8_t>(to & 15);
  out.src_reg = static_cast<uint8_t>(from & 15);
  out.off = static_cast<int16_t>(offset);
  out.imm = value;
  return out;
}

bpf_insn Load(int to, size_t offset) {
  return Instruction(BPF_LDX | BPF_MEM | BPF_W, to, BPF_REG_1, static_cast<int>(offset), 0);
}
bpf_insn SkipUnless(int reg, uint32_t value, int instructions) {
  return Instruction(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, instructions,
                     static_cast<int32_t>(value));
}
bpf_insn Answer(int value) {
  return Instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value);
}
bpf_insn Return() { return Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

constexpr int kAccess = BPF_REG_2, kType = BPF_REG_3, kMajor = BPF_REG_4, kMinor = BPF_REG_5;

std::vector<bpf_insn> MakeProgram(const std::vector<Rule>& rules) {
  // What is asked is in the upper half of a word, the kind of device in the lower one.
  std::vector<bpf_insn> out = {
      Load(kAccess, offsetof(bpf_cgroup_dev_ctx, access_type)),
      Instruction(BPF_ALU | BPF_MOV | BPF_X, kType, kAccess, 0, 0),
      Instruction(BPF_ALU | BPF_AND | BPF_K, kType, 0, 0, 0xffff),
      Instruction(BPF_ALU | BPF_RSH | BPF_K, kAccess, 0, 0, 16),
      Load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
      Load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)),
      SkipUnless(kAccess, BPF_DEVCG_ACC_MKNOD, 2),
      Answer(1),
      Return(),
  };
  for (const Rule& rule : rules) {
    const int rest = rule.minor ? 5 : 4;
    out.push_back(
        SkipUnless(kType, rule.block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR, rest - 1));
    out.push_back(SkipUnless(kMajor, rule.major, rest - 2));
    if (rule.minor) out.push_back(SkipUnless(kMinor, *rule.minor, 2));
    out.push_back(Answer(1));
    out.push_back(Return());
  }
  out.push_back(Answer(0));
  out.push_back(Return());
  return out;
}

int CallBpf(int command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

Result<UniqueFd> LoadProgram(const std::vector<Rule>& rules) {
  const std::vector<bpf_insn> program = MakeProgram(rules);
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<uint64_t>(program.data());
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.license = reinterpret_cast<uint64_t>("GPL");
  UniqueFd fd(CallBpf(BPF_PROG_LOAD, attributes));
  if (!fd.valid()) return ErrnoStatus(errno, "load a filter of devices");
  return fd;
}

Status AttachProgram(const std::string& group, const std::vector<Rule>& rules) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd program, LoadProgram(rules));
  const UniqueFd dir(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return ErrnoStatus(errno, "open " + group);
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.target_fd = static_cast<uint32_t>(dir.get());
  attributes.attach_bpf_fd = static_cast<uint32_t>(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  // The filters of the groups above hold, too.
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (CallBpf(BPF_PROG_ATTACH, attributes) == 0) return Status::Ok();
  return ErrnoStatus(errno, "filter the devices of " + group);
}

// ---- version 1 ----

Status WriteRule(const std::string& file, const std::string& rule) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + file);
  if (::write(fd.get(), rule.data(), rule.size()) >= 0) return Status::Ok();
  return ErrnoStatus(errno, StrCat("write ", Quote(rule), " to ", file));
}

Status WriteRules(const std::string& group, const DeviceRules& rules) {
  SWELL_RETURN_IF_ERROR(WriteRule(group + "/devices.deny", "a"));
  const std::string allow = group + "/devices.allow";
  for (const char* made : {"c *:* m", "b *:* m"}) SWELL_RETURN_IF_ERROR(WriteRule(allow, made));
  for (const std::string& rule : rules) SWELL_RETURN_IF_ERROR(WriteRule(allow, rule + " rw"));
  return Status::Ok();
}

}  // namespace

DeviceRules UsualDevices() {
  return {"c 1:3", "c 1:5", "c 1:7", "c 1:8", "c 1:9", "c 5:0", "c 5:2", "c 136:*"};
}

std::string DeviceRuleOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return "";
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) return "";
  return StrCat(S_ISCHR(info.st_mode) ? "c " : "b ", major(info.st_rdev), ":", minor(info.st_rdev));
}

Status AllowDevices(const std::string& group, const DeviceRules& rules) {
  if (rules.size() > kRulesMax) {
    return Status(Code::kTooLarge, StrCat("more than ", kRulesMax, " rules about devices"));
  }
  std::vector<Rule> parsed;
  for (const std::string& rule : rules) {
    SWELL_ASSIGN_OR_RETURN(const Rule one, ParseRule(rule));
    parsed.push_back(one);
  }
  if (FileExists(group + "/devices.deny")) return WriteRules(group, rules);
  return AttachProgram(group, parsed);
}

Status CanFilterDevices() { return LoadProgram({}).status(); }

}  // namespace swell::process
