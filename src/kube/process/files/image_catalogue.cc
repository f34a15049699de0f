#include "kube/process/files/image_catalogue.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/nearest_word.h"
#include "base/programs.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/process/files/program_files.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

// In place of the program that an image runs by itself.
constexpr std::string_view kNoProgram = R"sh(#!/bin/sh
echo "This image is not on this machine; programs of the machine stand in for it, and the image's own entry point is" \
  "not one of them. Give a command, or import the image (swell images import)." >&2
exit 127
)sh";

// What arena's init containers and git-sync users expect of the image, on top of the host's git.
constexpr std::string_view kGitSync = R"sh(#!/bin/sh
# Clones GIT_SYNC_REPO to GIT_SYNC_ROOT/GIT_SYNC_DEST, once or over and over.
set -u
say() { echo "git-sync: $*" >&2; }
die() { say "$*"; exit 1; }
repo=${GIT_SYNC_REPO:-${GITSYNC_REPO:-}}
[ -n "$repo" ] || die "GIT_SYNC_REPO is not set: which repository?"
command -v git >/dev/null || die "git is not installed on this machine (apt install git)"
root=${GIT_SYNC_ROOT:-${GITSYNC_ROOT:-$PWD/git}}
name=$(basename "$repo" .git)
dest=${GIT_SYNC_DEST:-${GITSYNC_LINK:-$name}}
branch=${GIT_SYNC_BRANCH:-}
rev=${GIT_SYNC_REV:-${GITSYNC_REF:-}}
depth=${GIT_SYNC_DEPTH:-${GITSYNC_DEPTH:-}}
user=${GIT_SYNC_USERNAME:-${GITSYNC_USERNAME:-}}
password=${GIT_SYNC_PASSWORD:-${GITSYNC_PASSWORD:-}}
once=${GIT_SYNC_ONE_TIME:-${GITSYNC_ONE_TIME:-false}}
wait=${GIT_SYNC_WAIT:-60}
case $dest in /*) target=$dest ;; *) target=$root/$dest ;; esac
mkdir -p "$root" || die "cannot make $root"
# A repository on this machine may belong to another user. The process that git starts to read it
# knows of this by a file alone.
config=$(mktemp) || die "cannot make a file in ${TMPDIR:-/tmp}"
printf '[include]\n\tpath = "%s"\n[safe]\n\tdirectory = *\n' \
  "${GIT_CONFIG_GLOBAL:-${HOME:-/root}/.gitconfig}" >"$config"
server=$(expr "$repo" : '\(https*://[^/]*\)')
if [ -n "$user$password" ] && [ -n "$server" ]; then
  # The address may have the name, which an empty one would replace.
  [ -n "$user" ] || expr "$server" : '.*@' >/dev/null ||
    die "GIT_SYNC_PASSWORD is set, GIT_SYNC_USERNAME is not, and git sends no password without a" \
      "name. For an access token, GitHub and GitLab take any name, such as git"
  # No other server is told, even if this one leads to it.
  export SYNC_NAME="${user:+username=$user
}" SYNC_PASSWORD="$password"
  # The machine's own helpers would answer first, and keep the password.
  git config --file "$config" "credential.$server.helper" ""
  git config --file "$config" --add "credential.$server.helper" \
    '!f() { [ $1 = get ] && printf "%spassword=%s\n" "$SYNC_NAME" "$SYNC_PASSWORD"; }; f'
fi
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=$config
sync_once() {
  if [ -d "$target/.git" ]; then
    git -C "$target" fetch --quiet --tags origin || return 1
  else
    set -- --quiet
    [ -n "$branch" ] && set -- "$@" --branch "$branch"
    [ -n "$depth" ] && [ "$depth" != 0 ] && set -- "$@" --depth "$depth"
    git clone "$@" -- "$repo" "$target" || return 1
  fi
  if [ -n "$rev" ] && [ "$rev" != HEAD ]; then
    git -C "$target" checkout --quiet "$rev" || return 1
  elif [ -n "$branch" ]; then
    git -C "$target" checkout --quiet -B "$branch" "origin/$branch" || return 1
  else
    git -C "$target" merge --quiet --ff-only '@{upstream}' || return 1
  fi
  say "$repo at $(git -C "$target" rev-parse --short HEAD) in $target"
}
case $once in true|1|yes) one=1 ;; *) one=0 ;; esac
said=$(mktemp) || die "cannot make a file in ${TMPDIR:-/tmp}"
while :; do
  if sync_once 2>"$said"; then done=1; else done=0; fi
  cat "$said" >&2
  if [ $done = 0 ]; then
    # The last line is what commands show of a failure.
    why=$(grep -E '^(fatal|error):' "$said" | tail -n 1)
    case $why in
      *'unable to access'* | *'Could not resolve'* | *'unable to connect'*)
        why="$why (url.*.insteadOf in the host's git configuration can lead it elsewhere)" ;;
    esac
    die "cannot sync $repo to $target: $why"
  fi
  [ $one = 1 ] && exit 0
  sleep "$wait"
done
)sh";

// What the Jupyter images start. Without Jupyter the same port says what is missing.
constexpr std::string_view kNotebook = R"sh(#!/bin/sh
# Serves this directory as a notebook on port 8888, or a page that says so where Jupyter is missing.
port=${JUPYTER_PORT:-8888}
for name in jupyter-lab jupyter-notebook; do
  command -v "$name" >/dev/null || continue
  exec "$name" --ip=0.0.0.0 --port="$port" --no-browser --allow-root "$@"
done
missing="Jupyter is not installed on this machine, whose programs stand in for this image: \
install it there (apt install jupyter-notebook), or import the image (swell images import)"
echo "$missing; port $port only says so" >&2
page=$(mktemp -d) && cd "$page" || exit 1
printf '<!doctype html><title>No Jupyter</title><p>%s.</p>\n' "$missing" >index.html
exec python3 -m http.server "$port"
)sh";

// Init containers wait for a service with nslookup. A real one asks a DNS server, which a cluster
// on one machine lacks.
constexpr std::string_view kNslookup = R"sh(#!/bin/sh
# nslookup NAME: the addresses that the hosts file has, where the names of services are.
for word; do
  case $word in -*) ;; *) name=$word && break ;; esac
done
[ -n "${name:-}" ] || { echo "usage: nslookup NAME" >&2; exit 1; }
printf 'Server:\t\t/etc/hosts\n\n'
addresses=$(getent ahosts "${name%.}" | sed -n 's/ .*STREAM.*//p')
if [ -z "$addresses" ]; then
  echo "** server can't find $name: NXDOMAIN"
  exit 1
fi
for address in $addresses; do printf 'Name:\t%s\nAddress: %s\n' "$name" "$address"; done
)sh";

// `*` is any run of characters.
bool Glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view WithoutTag(std::string_view image) {
  image = image.substr(0, image.find('@'));
  size_t slash = image.rfind('/');
  size_t colon = image.rfind(':');
  bool tag = colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return tag ? image.substr(0, colon) : image;
}

// The repository without its registry, as Docker names it: "python" of
// "docker.io/library/python:3.12", "nvidia/pytorch" of "nvcr.io/nvidia/pytorch@sha256:…".
std::string_view RepositoryOf(std::string_view image) {
  std::string_view path = WithoutTag(image);
  const size_t slash = path.find('/');
  const std::string_view first = path.substr(0, std::min(slash, path.size()));
  const bool host = slash != std::string_view::npos &&
                    (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
  if (host) path.remove_prefix(slash + 1);
  // Mirrors keep Docker's own images in such places.
  for (std::string_view official : {"docker/library/", "library/"}) {
    if (path.starts_with(official)) return path.substr(official.size());
  }
  return path;
}

Status WriteScript(const std::string& path, std::string_view text) {
  return ReplaceFile(path, text, 0755);
}

Status WriteLink(const std::string& path, const std::string& target) {
  ::unlink(path.c_str());
  if (::symlink(target.c_str(), path.c_str()) == 0) return Status::Ok();
  return ErrnoStatus(errno, "link " + path);
}

Result<std::vector<std::string>> Strings(const json::Value& entry, std::string_view field) {
  std::vector<std::string> out;
  const json::Value* value = json::Find(entry, {field});
  if (value == nullptr) return out;
  if (!value->is_array()) return Status(Code::kInvalid, StrCat(field, ": must be a list of texts"));
  for (const json::Value& item : value->get_array()) {
    if (!item.is_string())
      return Status(Code::kInvalid, StrCat(field, ": must be a list of texts"));
    out.emplace_back(json::View(item.get_string()));
  }
  return out;
}

Result<ImageEntry> ReadEntry(const json::Value& value) {
  if (!value.is_object()) return Status(Code::kInvalid, "must be a map");
  ImageEntry entry;
  SWELL_ASSIGN_OR_RETURN(entry.match, Strings(value, "match"));
  if (entry.match.empty()) return Status(Code::kInvalid, "match: must name at least one image");
  entry.base = json::GetString(value, {"base"});
  SWELL_ASSIGN_OR_RETURN(entry.entrypoint, Strings(value, "entrypoint"));
  SWELL_ASSIGN_OR_RETURN(entry.args, Strings(value, "args"));
  SWELL_ASSIGN_OR_RETURN(entry.path, Strings(value, "path"));
  for (const auto& item : json::GetObject(value, {"env"})) {
    if (!item.value().is_string()) {
      return Status(Code::kInvalid,
                    StrCat("env.", std::string_view(item.key()), ": must be a text (quote it)"));
    }
    entry.env.emplace_back(item.key(), json::View(item.value().get_string()));
  }
  entry.working_dir = json::GetString(value, {"workingDir"});
  for (const json::Value& file : json::GetArray(value, {"files"})) {
    ImageFile out{std::string(json::GetString(file, {"host"})),
                  std::string(json::GetString(file, {"path"})),
                  json::GetBool(file, {"readOnly"}, true)};
    if (!out.host.starts_with('/') || !out.path.starts_with('/')) {
      return Status(Code::kInvalid, "files: host and path must be absolute");
    }
    entry.files.push_back(std::move(out));
  }
  entry.host_network = json::GetBool(value, {"hostNetwork"});
  entry.host_tmp = json::GetBool(value, {"hostTmp"});
  return entry;
}

Status ReadConfig(const std::string& file, std::vector<ImageEntry>& entries) {
  if (!FileExists(file)) return Status::Ok();
  auto text = ReadFile(file, 4 << 20);
  if (!text.ok()) return text.status();
  auto documents = json::ParseYaml(*text);
  if (!documents.ok()) return documents.status().WithContext(file);
  for (const json::Value& document : *documents) {
    int index = 0;
    for (const json::Value& item : json::GetArray(document, {"images"})) {
      auto entry = ReadEntry(item);
      if (!entry.ok()) return entry.status().WithContext(StrCat(file, ": images[", index, "]"));
      entries.push_back(std::move(*entry));
      ++index;
    }
  }
  return Status::Ok();
}

// What the base has and the entry does not say itself; lists and variables are put together.
void Inherit(const ImageEntry& base, ImageEntry& entry) {
  if (entry.entrypoint.empty()) {
    entry.entrypoint = base.entrypoint;
    // Another entry point's arguments are nobody else's.
    if (entry.args.empty()) entry.args = base.args;
  }
  if (entry.working_dir.empty()) entry.working_dir = base.working_dir;
  entry.python = base.python;
  entry.env.insert(entry.env.begin(), base.env.begin(), base.env.end());
  entry.path.insert(entry.path.end(), base.path.begin(), base.path.end());
  entry.files.insert(entry.files.end(), base.files.begin(), base.files.end());
  entry.host_network = entry.host_network || base.host_network;
  entry.host_tmp = entry.host_tmp || base.host_tmp;
}

// Where the source tree or the installation keeps the examples; empty: nowhere.
std::string FindExamples(const std::string& sdk_dir) {
  for (const char* sub : {"/../../examples", "/../examples"}) {
    if (sdk_dir.empty() || !FileExists(StrCat(sdk_dir, sub, "/imagenet/main.py"))) continue;
    std::error_code error;
    return std::filesystem::canonical(sdk_dir + sub, error).string();
  }
  return "";
}

// KubeDL's images: torch elastic's launcher with the imagenet example where it was, and the Master
// that such jobs have.
void AddTorchElastic(const ImageEntry& python,
                     const std::string& sdk_dir,
                     std::vector<ImageEntry>& entries) {
  std::string examples = FindExamples(sdk_dir);
  if (examples.empty()) return;
  constexpr std::string_view kData = "/usr/share/datasets/fashion-mnist";
  ImageEntry imagenet = python;
  imagenet.match = {"wanziyu/imagenet", "torchelastic/examples"};
  imagenet.alike.clear();
  imagenet.entrypoint = {"python3", "-m", "swell.launch"};
  imagenet.args.clear();
  imagenet.working_dir = "/workspace";
  imagenet.files.push_back({examples, "/workspace/examples", true});
  if (FileExists(std::string(kData))) {
    imagenet.files.push_back({std::string(kData), "/workspace/data/tiny-imagenet-200", true});
  }
  imagenet.env.emplace_back("OMP_NUM_THREADS", "1");
  ImageEntry master = imagenet;
  master.match = {"kubedl/pytorch-dist-example"};
  master.entrypoint = {"python3", "/workspace/examples/imagenet/master.py"};
  entries.push_back(std::move(imagenet));
  entries.push_back(std::move(master));
}

// Kubeflow's images of its example for MNIST: ours is where its manifests have it.
void AddMnist(const ImageEntry& python,
              const std::string& sdk_dir,
              std::vector<ImageEntry>& entries) {
  const std::string examples = FindExamples(sdk_dir);
  if (examples.empty()) return;
  ImageEntry mnist = python;
  mnist.match = {"kubeflow/pytorch-dist-mnist",     "kubeflow/pytorch-dist-mnist-test",
                 "kubeflowkatib/pytorch-mnist",     "kubeflowkatib/pytorch-mnist-cpu",
                 "kubeflowkatib/pytorch-mnist-gpu", "kubeflow-examples/pytorch-dist-mnist"};
  mnist.alike.clear();
  mnist.working_dir = "/opt/mnist/src";
  mnist.entrypoint = {"python3", "/opt/mnist/src/mnist.py"};
  mnist.args.clear();
  for (const char* path : {"/opt/mnist/src", "/opt/pytorch-mnist"}) {
    mnist.files.push_back({examples + "/mnist-pytorch", path, true});
  }
  entries.push_back(std::move(mnist));
}

// Where the link leads; empty: there is no link.
std::string LinkTarget(const std::string& link) {
  char path[4096];
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

// ElasticDL's jobs run this program's job master, and its documents have their data at these paths.
void AddElasticdl(const ImageEntry& python,
                  const std::string& program,
                  std::vector<ImageEntry>& entries) {
  ImageEntry elasticdl = python;
  elasticdl.match = {"elasticdl", "elasticdl/elasticdl"};
  elasticdl.alike = {"elasticdl*", "*/elasticdl*"};
  elasticdl.files.push_back({program, "/usr/local/bin/swell", true});
  constexpr std::string_view kData = "/usr/share/datasets/fashion-mnist/";
  for (std::string_view part : {"train", "t10k"}) {
    for (std::string_view file : {"-images-idx3-ubyte.gz", "-labels-idx1-ubyte.gz"}) {
      const std::string host = StrCat(kData, part, file);
      if (!FileExists(host)) continue;
      const std::string_view folder = part == "train" ? "train/" : "test/";
      elasticdl.files.push_back({host, StrCat("/data/mnist/", folder, part, file), true});
    }
  }
  entries.push_back(std::move(elasticdl));
}

std::string HostHome() {
  const char* home = ::getenv("HOME");
  return home == nullptr || *home == '\0' ? "/root" : home;
}

std::string BinOf(const std::string& tools_dir) { return tools_dir + "/bin"; }
std::string PythonLink(const std::string& tools_dir) { return BinOf(tools_dir) + "/python3"; }

// What images have on their PATH that this machine has elsewhere, or not at all.
Status WriteTools(const std::string& bin, const std::string& python, const std::string& program) {
  SWELL_RETURN_IF_ERROR(MakeDirs(bin));
  SWELL_RETURN_IF_ERROR(WriteLink(bin + "/python", python));
  SWELL_RETURN_IF_ERROR(WriteLink(bin + "/python3", python));
  SWELL_RETURN_IF_ERROR(WriteLink(bin + "/swell", program));
  SWELL_RETURN_IF_ERROR(WriteScript(bin + "/swell-git-sync", kGitSync));
  SWELL_RETURN_IF_ERROR(WriteScript(bin + "/swell-no-program", kNoProgram));
  // By the names that the images have for it, too.
  for (const char* name : {"start-notebook.sh", "start-notebook.py", "start-singleuser.sh"}) {
    SWELL_RETURN_IF_ERROR(WriteScript(StrCat(bin, "/", name), kNotebook));
  }
  return Status::Ok();
}

ImageEntry GitEntry(const std::string& bin) {
  ImageEntry git;
  git.match = {"git-sync",
               "git-sync/git-sync",
               "acs/git-sync",
               "kubedl/git-sync",
               "google-containers/git-sync",
               "google_containers/git-sync",
               "google_containers/git-sync-amd64"};
  git.alike = {"*/git-sync", "*/git-sync-*"};
  git.entrypoint = {bin + "/swell-git-sync"};
  git.env = {{"HOME", HostHome()}};
  git.files = {{bin, bin, true}};
  // Homes are empty in a container; what leads git elsewhere is of the host.
  const std::string config = HostHome() + "/.gitconfig";
  git.files.push_back({config, config, true});
  git.working_dir = "/tmp";
  // A repository may be anywhere the host reaches: on the network, or in a directory of its own.
  git.host_network = true;
  git.host_tmp = true;
  return git;
}

ImageEntry PythonEntry(const std::string& bin,
                       const std::string& sdk_dir,
                       const std::string& program) {
  ImageEntry python;
  python.match = {"python",
                  "pytorch",
                  "pytorch/pytorch",
                  "pytorch/pytorch-nightly",
                  "nvidia/pytorch",
                  "rocm/pytorch",
                  "huggingface/transformers-pytorch-cpu",
                  "huggingface/transformers-pytorch-gpu",
                  "pytorchlightning/pytorch_lightning",
                  "ai-samples/pytorch-with-tensorboard",
                  "lumo/pytorch-with-tensorboard-style-transfer",
                  "kubeflow/pytorch-elastic-example-echo",
                  "kubeflow/pytorch-elastic-example-imagenet",
                  "deepspeed/deepspeed",
                  "deepspeed",
                  "acs/deepspeed",
                  "horovod/horovod",
                  "horovod/horovod-cpu",
                  "uber/horovod",
                  "tensorflow-samples/horovod",
                  "mpioperator/base",
                  "mpioperator/openmpi",
                  "mpioperator/mpi-pi",
                  "mpioperator/tensorflow-benchmarks",
                  "torchelastic/examples",
                  "kubedl/pytorch-dist-example",
                  "wanziyu/imagenet"};
  python.alike = {"*torch*",  "*horovod*",   "*mpioperator*", "*openmpi*",
                  "*/python", "*deepspeed*", "kubedl/*",      "wanziyu/*"};
  // As the real ones: no entry point, so that a pod's arguments alone are a command.
  python.args = {"python3"};
  python.path = {bin};
  // The program may be in a home, which is empty in a container.
  python.files = {{bin, bin, true}, {program, program, true}};
  // torch 1.13 reads its own default for these, "0", as nothing on Python 3.11, and torchrun fails.
  // A value for a tenth process of the pod is read by every version and changes nothing else.
  python.env = {{"PYTHONUNBUFFERED", "1"}, {"PET_REDIRECTS", "9:1"}, {"PET_TEE", "9:1"}};
  if (!sdk_dir.empty()) {
    python.env.emplace_back("PYTHONPATH", sdk_dir);
    python.files.push_back({sdk_dir, sdk_dir, true});
  }
  return python;
}

void AddProgramFiles(const std::string& program, ImageEntry& entry) {
  const ProgramFiles needed = FilesOf(program);
  for (const std::string& path : needed.paths) entry.files.push_back({path, path, true});
  if (!needed.user_base.empty()) entry.env.emplace_back("PYTHONUSERBASE", needed.user_base);
}

// A Python of an environment, with the programs beside it: pip, torchrun.
void UsePython(const std::string& program, ImageEntry& entry) {
  entry.python = program;
  if (program == kDefaultPython) return;
  const std::string own = std::filesystem::path(program).parent_path().string();
  // Before our links, through which a virtual environment's Python would not find its packages;
  // after them where `python3` in its directory is another Python.
  const bool is_python3 = Canonical(own + "/python3") == Canonical(program);
  entry.path.insert(is_python3 ? entry.path.begin() : entry.path.end(), own);
  AddProgramFiles(program, entry);
}

ImageEntry NotebookEntry(const std::string& bin, const ImageEntry& python) {
  ImageEntry notebook = python;
  notebook.match = {"jupyter",
                    "jupyter/docker-stacks-foundation",
                    "jupyter/base-notebook",
                    "jupyter/minimal-notebook",
                    "jupyter/scipy-notebook",
                    "jupyter/datascience-notebook",
                    "jupyter/pytorch-notebook",
                    "jupyter/tensorflow-notebook",
                    "jupyter/pyspark-notebook",
                    "jupyter/all-spark-notebook",
                    "jupyterhub/singleuser",
                    "kubeflownotebookswg/jupyter-scipy",
                    "kubeflownotebookswg/jupyter-pytorch",
                    "kubeflownotebookswg/jupyter-pytorch-full",
                    "kubeflownotebookswg/jupyter-pytorch-cuda",
                    "kubeflownotebookswg/jupyter-pytorch-cuda-full",
                    "kubeflownotebookswg/jupyter-tensorflow",
                    "kubeflownotebookswg/jupyter-tensorflow-full"};
  notebook.alike = {"*jupyter*", "*notebook*"};
  notebook.entrypoint = {bin + "/start-notebook.sh"};
  notebook.args.clear();
  return notebook;
}

// The first in the directories of `path`; empty: none has it.
std::string FindProgram(std::string_view name, std::string_view path) {
  std::vector<std::string> found = FindPrograms(name, path);
  return found.empty() ? "" : std::move(found[0]);
}

ImageEntry TensorboardEntry(const ImageEntry& python, std::string programs) {
  ImageEntry entry = python;
  entry.match = {"tensorboard", "tensorboard/tensorboard"};
  entry.alike = {"*/tensorboard"};
  if (programs.empty()) {
    const char* path = ::getenv("PATH");
    programs = StrCat(path == nullptr ? "" : path, ":", HostHome(), "/.local/bin");
  }
  const std::string program = FindProgram("tensorboard", programs);
  if (program.empty()) return entry;
  const std::string real = Canonical(program);
  entry.path.push_back(std::filesystem::path(real).parent_path().string());
  AddProgramFiles(real, entry);
  return entry;
}

ImageEntry EtcdEntry() {
  ImageEntry etcd;
  etcd.match = {"etcd",
                "coreos/etcd",
                "bitnami/etcd",
                "etcd-development/etcd",
                "google_containers/etcd",
                "google_containers/etcd-amd64",
                "etcd-amd64"};
  etcd.alike = {"*/etcd", "*/etcd-amd64"};
  etcd.entrypoint = {"/usr/bin/etcd"};
  // Images keep it elsewhere than Debian does, and manifests name that path.
  etcd.files = {{"/usr/bin/etcd", "/usr/local/bin/etcd", true},
                {"/usr/bin/etcdctl", "/usr/local/bin/etcdctl", true}};
  return etcd;
}

// What people expect of these images and a machine may lack.
constexpr std::string_view kBusyboxPrograms[] = {
    "arping",     "bc",    "dc",    "hostname", "ifconfig", "ip",    "killall", "less", "nc",
    "netstat",    "pgrep", "ping",  "pkill",    "ps",       "route", "telnet",  "time", "top",
    "traceroute", "tree",  "unzip", "vi",       "watch",    "wget",  "xxd"};

// Links of those names to the machine's busybox, where it has one; and nslookup.
Status WriteShellPrograms(const std::string& dir) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir));
  SWELL_RETURN_IF_ERROR(WriteScript(dir + "/nslookup", kNslookup));
  const char* variable = ::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
  const std::string busybox = FindProgram("busybox", path);
  if (busybox.empty()) return Status::Ok();
  for (std::string_view name : kBusyboxPrograms) {
    const std::string link = StrCat(dir, "/", name);
    ::unlink(link.c_str());
    if (FindProgram(name, path).empty()) SWELL_RETURN_IF_ERROR(WriteLink(link, busybox));
  }
  return Status::Ok();
}

ImageEntry ShellEntry(const std::string& programs) {
  // Not where the host has it: containers do not see the data directory's path.
  constexpr std::string_view kInside = "/opt/swell/bin";
  ImageEntry shell;
  shell.match = {"busybox", "alpine", "debian", "ubuntu", "bash"};
  shell.alike = {"*/busybox", "*/alpine", "*/debian", "*/ubuntu"};
  shell.args = {"/bin/sh"};
  shell.path = {std::string(kInside)};
  shell.files = {{programs, std::string(kInside), true}};
  return shell;
}

}  // namespace

std::string PythonOfTools(const std::string& tools_dir) {
  const std::string written = LinkTarget(PythonLink(tools_dir));
  return written.empty() ? std::string(kDefaultPython) : written;
}

bool ImageMatches(std::string_view pattern, std::string_view image) {
  if (Glob(pattern, image)) return true;
  return WithoutTag(pattern) == pattern && Glob(pattern, WithoutTag(image));
}

Result<ImageCatalogue> ImageCatalogue::Load(const Options& options) {
  ImageCatalogue catalogue;
  catalogue.config_file_ = options.config_dir + "/images.yaml";
  if (!options.config_dir.empty()) {
    SWELL_RETURN_IF_ERROR(ReadConfig(catalogue.config_file_, catalogue.entries_));
  }
  catalogue.configured_ = catalogue.entries_.size();
  const std::string bin = BinOf(options.tools_dir);
  const std::string program =
      options.program.empty() ? LinkTarget("/proc/self/exe") : options.program;
  const std::string python_program =
      options.python.empty() ? PythonOfTools(options.tools_dir) : options.python;
  const std::string shell_programs = options.tools_dir + "/shell";
  if (options.writes_tools) {
    SWELL_RETURN_IF_ERROR(WriteTools(bin, python_program, program));
    SWELL_RETURN_IF_ERROR(WriteShellPrograms(shell_programs));
  }
  ImageEntry python = PythonEntry(bin, options.sdk_dir, program);
  UsePython(python_program, python);
  // The first that matches counts: what is special comes before what is general.
  catalogue.entries_.push_back(GitEntry(bin));
  AddElasticdl(python, program, catalogue.entries_);
  catalogue.entries_.push_back(NotebookEntry(bin, python));
  catalogue.entries_.push_back(TensorboardEntry(python, options.programs));
  AddTorchElastic(python, options.sdk_dir, catalogue.entries_);
  AddMnist(python, options.sdk_dir, catalogue.entries_);
  catalogue.no_program_ = bin + "/swell-no-program";
  catalogue.entries_.push_back(python);
  catalogue.entries_.push_back(EtcdEntry());
  catalogue.entries_.push_back(ShellEntry(shell_programs));
  SWELL_RETURN_IF_ERROR(catalogue.ResolveBases());
  return catalogue;
}

bool ImageCatalogue::Serves(size_t entry, std::string_view image) const {
  const std::vector<std::string>& match = entries_[entry].match;
  return std::any_of(match.begin(), match.end(), [&](const std::string& pattern) {
    return entry < configured_ ? ImageMatches(pattern, image) : pattern == RepositoryOf(image);
  });
}

Status ImageCatalogue::ResolveBases() {
  for (size_t i = 0; i < configured_; ++i) {
    ImageEntry& entry = entries_[i];
    if (entry.base.empty()) continue;
    size_t base = configured_;
    while (base < entries_.size() && !Serves(base, entry.base)) ++base;
    if (base == entries_.size()) {
      return Status(Code::kInvalid, StrCat(config_file_, ": images[", i, "]: base: ",
                                           Quote(entry.base), " is not a built-in image"));
    }
    Inherit(entries_[base], entry);
  }
  return Status::Ok();
}

std::string ImageCatalogue::Nearest(std::string_view image) const {
  std::vector<std::string> own, built_in;
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (const std::string& name : entries_[i].match) {
      if (name.find('*') == std::string::npos) (i < configured_ ? own : built_in).push_back(name);
    }
  }
  std::string near = NearestName(WithoutTag(image), own);
  return near.empty() ? NearestName(RepositoryOf(image), built_in) : near;
}

Result<ImageEntry> ImageCatalogue::StandInFor(const std::string& image) const {
  auto served = Find(image);
  if (served.ok()) return served;
  for (const ImageEntry& entry : entries_) {
    for (const std::string& pattern : entry.alike) {
      if (!ImageMatches(pattern, image)) continue;
      ImageEntry stand_in = entry;
      // What the image runs by itself is not known.
      if (stand_in.entrypoint.empty()) {
        stand_in.entrypoint = {no_program_};
        stand_in.args.clear();
      }
      return stand_in;
    }
  }
  return served;
}

Result<ImageEntry> ImageCatalogue::Find(const std::string& image) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (Serves(i, image)) return entries_[i];
  }
  return Status(Code::kNotFound,
                StrCat("image ", Quote(image),
                       " is not in this machine's catalogue; to serve it by this machine's own "
                       "programs, add to ",
                       config_file_, ": images: [{match: [", Quote(WithoutTag(image)),
                       "], args: [python3]}]"));
}

}  // namespace swell::process
