// swell cp: files to and from a pod, through the tar of its container.
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/interactive.h"
#include "cli/pods/pod_choice.h"
#include "cli/pods/tar.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr Duration kForEver = std::chrono::hours(24 * 365);
constexpr size_t kErrorTextMax = 64 << 10;

// "pod:path", "namespace/pod:path" or a local path.
struct Place {
  std::string ns, pod, path;
  bool remote() const { return !pod.empty(); }
};

Result<Place> ParsePlace(const std::string& text) {
  Place place;
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.starts_with('.') || text.starts_with('/')) {
    place.path = text;
    return place;
  }
  place.pod = text.substr(0, colon);
  place.path = text.substr(colon + 1);
  const size_t slash = place.pod.find('/');
  if (slash != std::string::npos) {
    place.ns = place.pod.substr(0, slash);
    place.pod = place.pod.substr(slash + 1);
  }
  if (place.pod.empty() || place.path.empty()) {
    return Misuse(StrCat(Quote(text),
                         ": filespec must match the canonical format: "
                         "[[namespace/]pod:]file/path"));
  }
  return place;
}

std::string WithoutEndSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string DirName(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class CpAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-c,--container", &container_, "NAME", "container (default: the first)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 2) return Misuse("source and destination are required: swell cp SRC DEST");
    SWELL_ASSIGN_OR_RETURN(const Place from, ParsePlace(words[0]));
    SWELL_ASSIGN_OR_RETURN(const Place to, ParsePlace(words[1]));
    if (from.remote() == to.remote()) {
      return Misuse(StrCat(Quote(words[0]), " and ", Quote(words[1]), " are both ",
                           from.remote() ? "in pods; one of them must be a path of this machine"
                                         : "on this machine; write one of them as POD:PATH"));
    }
    return to.remote() ? Upload(session, from.path, to) : Download(session, from, to.path);
  }

 private:
  Result<edge::CommandOptions> At(Session& session, const Place& place) {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const std::string ns = place.ns.empty() ? session.Namespace() : place.ns;
    SWELL_ASSIGN_OR_RETURN(const ChosenPod chosen, ChoosePod(*api, ns, place.pod));
    SWELL_RETURN_IF_ERROR(CheckHasContainers(*chosen.pod, "copy to or from"));
    edge::CommandOptions options;
    options.ns = api::Namespace(*chosen.pod);
    options.pod = api::Name(*chosen.pod);
    SWELL_ASSIGN_OR_RETURN(options.container, ChooseContainer(*chosen.pod, container_));
    return options;
  }

  // Runs the command to its end. Its errors are the user's to read.
  Result<int> Await(Session& session,
                    const edge::CommandOptions& options,
                    const std::function<void(edge::CommandClient&)>& feed,
                    const std::function<void(std::string_view)>& take) {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    std::optional<Result<int>> code;
    std::string errors;
    std::unique_ptr<edge::CommandClient> command;
    edge::CommandEvents events;
    events.on_open = [&] {
      if (feed) feed(*command);
    };
    events.on_output = [&](bool error, const api::Chunk& bytes) {
      if (!error) return take(*bytes);
      if (errors.size() < kErrorTextMax) errors += *bytes;
    };
    events.on_exit = [&](Result<int> result) { code = std::move(result); };
    const Connection& connection = api->connection();
    command = edge::StartCommand(session.env().loop->executor(), connection.server, connection.user,
                                 options, std::move(events));
    session.env().loop->RunUntil([&] { return code.has_value(); }, kForEver);
    command.reset();
    if (!code) return 130;
    if (code->ok() && **code == 0) return 0;
    if (!errors.empty()) session.env().err(errors);
    return *code;
  }

  // Whether the destination is a directory already: then the source goes into it.
  Result<bool> IsRemoteDirectory(Session& session, edge::CommandOptions options, std::string path) {
    options.command = {"test", "-d", std::move(path)};
    options.error = false;
    SWELL_ASSIGN_OR_RETURN(const int code, Await(session, options, nullptr, [](auto) {}));
    return code == 0;
  }

  Result<int> Upload(Session& session, const std::string& local, const Place& to) {
    struct stat info;
    if (::lstat(local.c_str(), &info) != 0) {
      return Status(Code::kNotFound, StrCat(local, " doesn't exist in local filesystem"));
    }
    SWELL_ASSIGN_OR_RETURN(edge::CommandOptions options, At(session, to));
    std::string target = WithoutEndSlash(to.path);
    SWELL_ASSIGN_OR_RETURN(const bool into, IsRemoteDirectory(session, options, target));
    if (into) {
      const std::string name = BaseName(WithoutEndSlash(std::filesystem::absolute(local).string()));
      target += StrCat(target == "/" ? "" : "/", name);
    }
    options.input = true;
    options.command = {"tar", "-xmf", "-"};
    const std::string dir = DirName(target);
    if (dir != ".") options.command.insert(options.command.end(), {"-C", dir});
    TarWriter archive(WithoutEndSlash(local), BaseName(target));
    Status failed;
    // As much as the connection takes, then again when that has gone.
    std::function<void(edge::CommandClient&)> feed = [&](edge::CommandClient& command) {
      while (command.queued_bytes() <= api::kDuplexHighWater) {
        auto piece = archive.Next();
        if (!piece.ok()) failed = piece.status();
        if (!piece.ok() || piece->empty()) return command.CloseInput();
        if (!command.Write(api::MakeChunk(std::move(*piece)))) return;
      }
      command.OnDrained([&feed, &command] { feed(command); });
    };
    auto code = Await(session, options, feed, [](auto) {});
    if (!failed.ok()) return failed;
    return code;
  }

  Result<int> Download(Session& session, const Place& from, const std::string& local) {
    SWELL_ASSIGN_OR_RETURN(edge::CommandOptions options, At(session, from));
    const std::string path = WithoutEndSlash(from.path);
    options.command = {"tar", "cf", "-", path};
    std::string destination = WithoutEndSlash(local);
    if (IsDirectory(destination)) destination += "/" + BaseName(path);
    std::string prefix = path;
    while (prefix.starts_with('/')) prefix.erase(0, 1);
    TarReader archive(prefix, destination,
                      [&](std::string_view text) { session.ErrLine(StrCat("warning: ", text)); });
    Status failed;
    auto code = Await(session, options, nullptr, [&](std::string_view bytes) {
      if (failed.ok()) failed = archive.Feed(bytes);
    });
    if (!code.ok() || *code != 0) return code;
    SWELL_RETURN_IF_ERROR(failed);
    SWELL_RETURN_IF_ERROR(archive.Finish());
    return 0;
  }

  std::string container_;
};

}  // namespace

Command CpCommandSpec() {
  return {
      .name = "cp",
      .group = "Pods",
      .summary = "Copy files and directories to and from a pod.",
      .usage = "SRC DEST",
      .examples = {{"Copy a data set into a pod", "swell cp ./data mnist-master-0:/data"},
                   {"Copy checkpoints out of a pod", "swell cp team-a/mnist:/ckpt ./ckpt"}},
      .notes = "The container must have tar. A pod's path is POD:PATH or NAMESPACE/POD:PATH.",
      .make = Makes<CpAction>(),
  };
}

}  // namespace swell::cli
