#include "kube/api/objects/failure_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/control_characters.h"
#include "base/strings.h"

namespace swell::api {
namespace {

constexpr int kSignalExit = 128;
constexpr size_t kLastWordsMax = 400;
// A program's message about a system call that failed, with the count that dd prints after it.
constexpr size_t kLinesAfterCause = 4;
constexpr std::array<std::string_view, 7> kSystemErrors = {
    ": No space left on device", ": Permission denied",  ": No such file or directory",
    ": Read-only file system",   ": Input/output error", ": Disk quota exceeded",
    ": Too many open files"};

struct TextRule {
  FailureClass which;
  std::string_view text;  // in lower case, anywhere in a line
};

// The first rule that a line matches is the line's. Causes stand before what they bring about in
// other members. Which line decides is DecidingRule's business.
constexpr TextRule kTextRules[] = {
    {FailureClass::kHardware, "uncorrectable ecc"},
    {FailureClass::kHardware, "nvrm: xid"},
    {FailureClass::kHardware, "fallen off the bus"},
    {FailureClass::kHardware, "uncorrectable nvlink"},
    {FailureClass::kHardware, "cudaerrordevicesunavailable"},
    {FailureClass::kGpuMemory, "cuda out of memory"},
    {FailureClass::kGpuMemory, "cuda error: out of memory"},
    {FailureClass::kGpuMemory, "torch.cuda.outofmemoryerror"},
    {FailureClass::kGpuMemory, "torch.outofmemoryerror"},
    {FailureClass::kGpuMemory, "cublas_status_alloc_failed"},
    {FailureClass::kGpuMemory, "cudnn_status_alloc_failed"},
    {FailureClass::kGpuMemory, "resource_exhausted: out of memory"},
    {FailureClass::kHostMemory, "killed by signal: killed"},
    {FailureClass::kHostMemory, "cannot allocate memory"},
    {FailureClass::kHostMemory, "std::bad_alloc"},
    {FailureClass::kHostMemory, "memoryerror"},
    {FailureClass::kNotANumber, "loss is nan"},
    {FailureClass::kNotANumber, "loss: nan"},
    {FailureClass::kNotANumber, "loss=nan"},
    {FailureClass::kNotANumber, "returned nan values"},
    {FailureClass::kNotANumber, "nan detected"},
    {FailureClass::kNotANumber, "nan or inf"},
    {FailureClass::kNotANumber, "non-finite"},
    {FailureClass::kPeerLost, "connection reset by peer"},
    {FailureClass::kPeerLost, "connection closed by peer"},
    {FailureClass::kPeerLost, "connection refused"},
    {FailureClass::kPeerLost, "gloo/transport"},
    {FailureClass::kPeerLost, "connectfullmesh failed"},
    {FailureClass::kPeerLost, "ncclremoteerror"},
    {FailureClass::kPeerLost, "ncclsystemerror"},
    {FailureClass::kPeerLost, "nccl error"},
    {FailureClass::kPeerLost, "collective operation timeout"},
    {FailureClass::kPeerLost, "rendezvousconnectionerror"},
    {FailureClass::kPeerLost, "rendezvoustimeouterror"},
    {FailureClass::kPeerLost, "diststoreerror"},
    {FailureClass::kPeerLost, "waiting for clients"},
    {FailureClass::kPeerLost, "socket timeout"},
    {FailureClass::kPeerLost, "broken pipe"},
    {FailureClass::kUnknown, "no space left on device"},
    {FailureClass::kUnknown, "could not resolve host"},
    {FailureClass::kUnknown, "temporary failure in name resolution"},
    {FailureClass::kUnknown, "network is unreachable"},
    {FailureClass::kUserError, "modulenotfounderror"},
    {FailureClass::kUserError, "importerror"},
    {FailureClass::kUserError, "syntaxerror"},
    {FailureClass::kUserError, "indentationerror"},
    {FailureClass::kUserError, "nameerror"},
    {FailureClass::kUserError, "typeerror"},
    {FailureClass::kUserError, "valueerror"},
    {FailureClass::kUserError, "keyerror"},
    {FailureClass::kUserError, "indexerror"},
    {FailureClass::kUserError, "attributeerror"},
    {FailureClass::kUserError, "assertionerror"},
    {FailureClass::kUserError, "filenotfounderror"},
    {FailureClass::kUserError, "permissionerror"},
    {FailureClass::kUserError, "size mismatch"},
    {FailureClass::kUserError, "shapes cannot be multiplied"},
    {FailureClass::kUserError, "no such file or directory"},
    {FailureClass::kUserError, "can't open file"},
};

// What shells and Python say with their exit codes: an error, wrong arguments, a command that
// cannot be run, a command that is not there.
constexpr std::array<int64_t, 4> kUserExits = {1, 2, 126, 127};

struct NamedSignal {
  int number;
  std::string_view name;
};
// Linux's numbers, also where a record of another machine is read.
constexpr NamedSignal kSignals[] = {{1, "SIGHUP"},   {2, "SIGINT"},   {3, "SIGQUIT"},
                                    {4, "SIGILL"},   {6, "SIGABRT"},  {7, "SIGBUS"},
                                    {8, "SIGFPE"},   {9, "SIGKILL"},  {11, "SIGSEGV"},
                                    {13, "SIGPIPE"}, {15, "SIGTERM"}, {24, "SIGXCPU"}};

// "torch.cuda.OutOfMemoryError: …" and "bash: line 1: x: command not found", but no line of a
// trace, which is indented.
bool NamesAnError(std::string_view line) {
  if (line.find("not found") != std::string_view::npos) return true;
  const std::string_view word = line.substr(0, line.find_first_of(": "));
  for (std::string_view end : {"Error", "Exception", "Interrupt", "Exit"}) {
    if (word.ends_with(end)) return true;
  }
  return false;
}

bool IsSystemError(std::string_view line) {
  return std::any_of(kSystemErrors.begin(), kSystemErrors.end(),
                     [line](std::string_view end) { return line.ends_with(end); });
}

// Without colours and other control characters: people read it on terminals. A bar that wrote over
// its line leaves its last writing.
std::string PlainText(std::string_view text) {
  std::string plain;
  bool returned = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (returned && c != '\r' && c != '\n') plain.resize(plain.rfind('\n') + 1);
    returned = c == '\r';
    if (c == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {
      // A control sequence ends with its first letter.
      while (i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[i + 1])) == 0) ++i;
      ++i;
    } else if (c == '\n' || c == '\t') {
      plain += c == '\t' ? ' ' : '\n';
    } else if (const size_t bytes = ControlBytes(text, i); bytes > 0) {
      i += bytes - 1;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// torch prefixes what a process of a group says: "[rank1]: ValueError: …".
std::string_view WithoutRank(std::string_view line) {
  constexpr std::string_view kPrefix = "[rank";
  if (!line.starts_with(kPrefix)) return line;
  const size_t end = line.find("]: ");
  const bool number = end != std::string_view::npos &&
                      ParseUint(line.substr(kPrefix.size(), end - kPrefix.size())).has_value();
  return number ? line.substr(end + 3) : line;
}

constexpr std::string_view kReportedSignal = "(exitcode: -";

// The line by which torchrun begins its report of processes that failed.
bool BeginsReport(std::string_view line) {
  if (line.find("failed (exitcode:") == std::string_view::npos) return false;
  return line.find("torch.distributed.elastic") != std::string_view::npos ||
         line.find("torch/distributed/elastic") != std::string_view::npos;
}

// Such a line of a process that a signal ended: "failed (exitcode: -9) …". Empty: there is none.
std::string_view ReportOfSignal(std::string_view said) {
  for (std::string_view line : Split(said, '\n')) {
    if (BeginsReport(line)) return line.find(kReportedSignal) != line.npos ? line : "";
  }
  return "";
}

// 0: no signal has that number.
int KnownSignal(int64_t number) {
  constexpr int64_t kSignalsMax = 64;
  return number > 0 && number <= kSignalsMax ? static_cast<int>(number) : 0;
}

bool TellsOfPeer(std::string_view line) {
  const std::string lower = ToLower(line);
  return std::any_of(std::begin(kTextRules), std::end(kTextRules), [&lower](const TextRule& rule) {
    return rule.which == FailureClass::kPeerLost && lower.find(rule.text) != std::string::npos;
  });
}

bool BeginsTrace(std::string_view line) { return line.starts_with("Traceback ("); }

// Python's errors of objects that it clears away at its end. They follow from the end, and say
// nothing of its cause.
void RemoveIgnored(std::vector<std::string_view>& lines) {
  std::vector<std::string_view> kept;
  bool ignored = false;
  for (std::string_view line : lines) {
    const bool begins = line.starts_with("Exception ignored in");
    if (!ignored && !begins) {
      kept.push_back(line);
      continue;
    }
    // The first line after the trace names the error.
    ignored = begins || BeginsTrace(line) || line.starts_with(' ');
  }
  if (std::any_of(kept.begin(), kept.end(), NamesAnError)) lines = std::move(kept);
}

// What the program itself said, without prefixes of ranks, without torchrun's report and without
// errors that Python ignored. Where one container had several processes, one of them lost the
// others because another failed: what the other said counts.
std::string OwnWords(std::string_view said) {
  const std::string plain = PlainText(said);
  std::vector<std::string_view> lines;
  bool reported = false;
  for (std::string_view line : Split(plain, '\n')) {
    if ((reported = BeginsReport(line))) break;
    lines.push_back(WithoutRank(line));
  }
  const auto is_cause = [](std::string_view line) {
    return NamesAnError(line) && !TellsOfPeer(line);
  };
  if (reported && std::any_of(lines.begin(), lines.end(), is_cause)) {
    std::erase_if(lines, TellsOfPeer);
  }
  RemoveIgnored(lines);
  std::string words;
  for (std::string_view line : lines) words += StrCat(line, "\n");
  return words;
}

bool HasLetter(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c >= 0x80; });
}

constexpr size_t kNoRule = std::size(kTextRules);

size_t RuleOf(std::string_view line) {
  const std::string lower = ToLower(line);
  size_t i = 0;
  while (i < kNoRule && lower.find(kTextRules[i].text) == std::string::npos) ++i;
  return i;
}

FailureClass ClassOf(size_t rule) { return kTextRules[rule].which; }

// What a line says of the end. An error with its trace counts as one line.
struct Said {
  size_t rule = kNoRule;
  bool error = false;
  // A number that is NaN or infinite, in a line that says neither that it is an error nor that
  // the program stops: training continued after it.
  bool survived = false;
};

Said ReadLine(std::string_view line) {
  Said said{.rule = RuleOf(line), .error = NamesAnError(line)};
  if (said.rule == kNoRule || ClassOf(said.rule) != FailureClass::kNotANumber) return said;
  const std::string lower = ToLower(line);
  said.survived = !said.error;
  for (std::string_view word : {"stop", "abort", "exit", "terminat"}) {
    if (lower.find(word) != std::string::npos) said.survived = false;
  }
  return said;
}

// "    assert torch.isfinite(loss)", of which the error itself says nothing.
bool AssertsANumber(std::string_view line) {
  return Trim(line).starts_with("assert") && (line.find("isfinite") != std::string_view::npos ||
                                              line.find("isnan") != std::string_view::npos);
}

bool FollowsFromError(std::string_view line) {
  return line.starts_with("The above exception was the direct cause");
}

// Python's words between an error and another one that came while it was handled.
bool LinksErrors(std::string_view line) {
  return line.starts_with("During handling of the above exception") || FollowsFromError(line);
}

std::vector<Said> ReadLines(std::string_view words) {
  static const size_t not_a_number = RuleOf("loss is nan");
  std::vector<Said> all;
  bool trace = false, linked = false, asserts = false;
  for (std::string_view line : Split(words, '\n')) {
    if (!HasLetter(line)) continue;
    if (LinksErrors(line)) {
      linked = true;
    } else if (BeginsTrace(line)) {
      trace = true;
    } else if (trace && line.starts_with(' ')) {
      asserts = asserts || AssertsANumber(line);
    } else {
      Said said = ReadLine(line);
      if (asserts) said.rule = std::min(said.rule, not_a_number);
      // Where errors follow from each other, the cause counts.
      if (trace && linked && !all.empty()) {
        said.rule = std::min(said.rule, all.back().rule);
        all.pop_back();
      }
      all.push_back(said);
      trace = linked = asserts = false;
    }
  }
  return all;
}

// The rule of the line that says why the program ended; kNoRule if no line does. The last such line
// decides: what was said before it, the program survived.
// - A line of a NaN that training survived counts only where no error follows, and the program
//   ended by itself.
// - Of a container with several processes, some lose the one that failed. So a lost peer counts
//   only where nothing is said that would make it a consequence.
size_t DecidingRule(const std::vector<Said>& lines, bool by_signal) {
  bool error_follows = by_signal;
  size_t found = kNoRule;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->rule != kNoRule && !(line->survived && error_follows)) {
      const FailureClass which = ClassOf(line->rule);
      if (found == kNoRule && which != FailureClass::kPeerLost) return line->rule;
      const bool cause = which != FailureClass::kUserError && !line->survived;
      if (found == kNoRule || cause) found = std::min(found, line->rule);
    }
    error_follows = error_follows || line->error;
  }
  return found;
}

std::string Shortened(std::string words, size_t bytes_max) {
  if (words.size() <= bytes_max) return words;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(words[end]) & 0xC0) == 0x80) --end;
  words.resize(end);
  return words + "…";
}

}  // namespace

std::string_view FailureClassName(FailureClass which) {
  static constexpr std::string_view kNames[] = {"UserError",      "Preempted",   "HostOutOfMemory",
                                                "GpuOutOfMemory", "NotANumber",  "PeerLost",
                                                "Hardware",       "CannotStart", "Unknown"};
  return kNames[static_cast<size_t>(which)];
}

FailureClass FailureClassOf(std::string_view name) {
  for (int i = 0; i < static_cast<int>(FailureClass::kUnknown); ++i) {
    const auto which = static_cast<FailureClass>(i);
    if (FailureClassName(which) == name) return which;
  }
  return FailureClass::kUnknown;
}

FailureClass ClassifyEnd(const ContainerEnd& end) {
  if (end.reason == "OOMKilled") return FailureClass::kHostMemory;
  if (end.reason == "StartError" || end.reason == "ContainerCannotRun") {
    return FailureClass::kUserError;
  }
  const bool launched = LaunchedSignal(end.said) != 0;
  const size_t rule = DecidingRule(ReadLines(OwnWords(end.said)),
                                   /*by_signal=*/launched || SignalOf(end.exit_code) != 0);
  if (rule != kNoRule) return ClassOf(rule);
  if (launched) return FailureClass::kUnknown;
  const bool user =
      std::find(kUserExits.begin(), kUserExits.end(), end.exit_code) != kUserExits.end();
  return user ? FailureClass::kUserError : FailureClass::kUnknown;
}

int SignalOf(int64_t exit_code) {
  return exit_code > kSignalExit ? KnownSignal(exit_code - kSignalExit) : 0;
}

int LaunchedSignal(std::string_view said) {
  const std::string_view report = ReportOfSignal(said);
  if (report.empty()) return 0;
  const std::string_view number =
      report.substr(report.find(kReportedSignal) + kReportedSignal.size());
  return KnownSignal(ParseInt(number.substr(0, number.find(')'))).value_or(0));
}

std::string_view SignalName(int signal) {
  for (const NamedSignal& one : kSignals) {
    if (one.number == signal) return one.name;
  }
  return "";
}

std::string LastWords(std::string_view said) {
  const bool launched = LaunchedSignal(said) != 0;
  const std::string plain = launched ? PlainText(ReportOfSignal(said)) : OwnWords(said);
  std::string last, error, system_error, cause;
  size_t since_system_error = 0;
  bool follows = false;    // in "raise RuntimeError(…) from error", the second error tells more
  bool continues = false;  // "Error(s) in loading state_dict for Net:": the next line says which
  for (std::string_view line : Split(plain, '\n')) {
    if (!HasLetter(line)) continue;
    last = Trim(line);
    ++since_system_error;
    if (FollowsFromError(line)) {
      if (cause.empty()) cause = error;
      follows = true;
    } else if (NamesAnError(line)) {
      if (!follows) cause.clear();
      follows = false;
      error = last;
      system_error.clear();
    } else if (IsSystemError(last)) {
      system_error = last;
      since_system_error = 0;
    } else if (continues) {
      error += StrCat(" ", last);
    }
    continues = !error.empty() && error.ends_with(':');
  }
  if (!system_error.empty() && since_system_error <= kLinesAfterCause) {
    error = system_error;
    cause.clear();
  }
  if (error.empty()) return Shortened(last, kLastWordsMax);
  if (cause.empty() || cause == error) return Shortened(error, kLastWordsMax);
  return StrCat(Shortened(error, kLastWordsMax / 2), " (caused by ",
                Shortened(cause, kLastWordsMax / 2), ")");
}

bool HasLauncherReport(std::string_view log) {
  return log.find("ChildFailedError") != std::string_view::npos;
}

std::string BeforeLauncherReport(std::string_view log, size_t bytes_max) {
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    if (!BeginsReport(line)) {
      begin = end + 1;
      continue;
    }
    std::string_view before = log.substr(0, begin);
    if (before.size() > bytes_max) {
      before.remove_prefix(before.size() - bytes_max);
      before.remove_prefix(std::min(before.find('\n') + 1, before.size()));
    }
    return StrCat(before, line, "\n");
  }
  return std::string(log.substr(log.size() - std::min(log.size(), bytes_max)));
}

}  // namespace swell::api
