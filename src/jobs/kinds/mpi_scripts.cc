#include "jobs/kinds/mpi_scripts.h"

#include <initializer_list>
#include <utility>

#include "base/strings.h"

namespace swell::jobs {
namespace {

// Options may also follow the host, as horovodrun writes them. A worker that starts at the same
// time as the launcher is waited for: it is in the hostfile, or has a pod. Errors end with 255, as
// those of ssh do.
//
// kubectl and swell come first: they know from the API server which pod is whose, and how it is.
// Both without a file of their own ask the cluster that they run in. For them any name that is not
// the job's is a mistake, and is refused at once. Where neither may ask, the image's own ssh is
// used. It tries the worker with a command that does nothing, so that what the launcher starts is
// started once.
constexpr std::string_view kRemoteShellText = R"sh(#!/bin/sh
# kubexec.sh [OPTIONS] WORKER [OPTIONS] COMMAND...: runs the command in that pod of the job.
die() { echo "kubexec.sh: $*" >&2; exit 255; }
quoted() { printf " '%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
target= options= known=
while [ $# -gt 0 ]; do
  case $1 in
    -[BbcDEeFIiJLlmOopQRSWw])
       options="$options$(quoted "$1")$(quoted "${2-}")"; shift; [ $# -eq 0 ] || shift ;;
    -*) options="$options$(quoted "$1")"; shift ;;
    *) [ -z "$target" ] || break
       target=$1; shift ;;
  esac
done
host=${target#*@}; worker=${host%%.*}
{ [ -n "$worker" ] && [ $# -gt 0 ]; } || die "usage: kubexec.sh WORKER COMMAND..."

# The image's own, which a link to this script may hide.
real_ssh() {
  IFS=:
  for dir in $PATH; do
    [ -x "$dir/ssh" ] || continue
    head -n 2 "$dir/ssh" | grep -q '^# kubexec.sh ' || { echo "$dir/ssh"; return; }
  done
}
ssh=$(real_ssh)
tool=
if [ -n "$MPI_BY_SSH" ]; then
  :
elif command -v kubectl >/dev/null; then
  KUBECONFIG=/dev/null; export KUBECONFIG; tool=kubectl
elif command -v swell >/dev/null; then
  unset KUBECONFIG; HOME=/; export HOME; tool=swell
fi
[ -n "$tool$ssh" ] || die "workers are reached by kubectl exec or by SSH," \
  "and the launcher's image has neither kubectl, swell nor ssh"

in_hostfile() { sed 's/[ :].*//' @FOLDER@/@HOSTFILE@ | grep -Fxq -e "$worker"; }
phase_of_worker() {
  $tool get pods --field-selector=metadata.name="$worker" \
    -l training.kubeflow.org/job-name=@JOB@ -o 'jsonpath={.items[*].status.phase}'
}
tries=0 failures=0
while [ -n "$tool" ]; do
  # A question that fails is asked again; one without an answer is about no pod of the job.
  if phase=$(phase_of_worker); then
    [ "$phase" != Running ] || exec $tool exec "$worker"@CONTAINER@ -- /bin/sh -c "$*"
    [ -n "$phase" ] || in_hostfile ||
      die "$host is not a worker of the job @JOB@; its workers are listed in @FOLDER@/@HOSTFILE@"
  else
    failures=$((failures + 1))
    # The pod's account has no right to ask.
    [ $failures -lt 3 ] || [ -z "$ssh" ] || break
  fi
  tries=$((tries + 1))
  [ $tries -lt 300 ] || die "worker $worker does not run${phase:+: its pod is $phase}"
  sleep 1
done

keys=@KEYS@
more="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
more="$more -o BatchMode=yes -o ConnectTimeout=10"
[ ! -r "$keys/id_rsa" ] || more="$more -i$(quoted "$keys/id_rsa")"
by_ssh() { eval "\"\$ssh\" $options $more \"\$target\" \"\$@\""; }
case $worker in
  @JOB@-worker-*) known=yes ;;
  *) ! in_hostfile || known=yes ;;
esac
# A server that refuses the keys will do so again, and no other host is waited for.
end=$(($(date +%s) + ${MPI_SSH_SECONDS:-300}))
while [ -n "$known" ] && ! said=$(by_ssh true 2>&1 </dev/null); do
  case $said in *"Permission denied"*) end=0 ;; esac
  [ "$(date +%s)" -lt "$end" ] || die "worker $worker cannot be reached by SSH: $said"
  sleep 1
done
eval "exec \"\$ssh\" $options $more \"\$target\" \"\$@\""
)sh";

// What elastic Horovod asks for its hosts: those that run now. A worker that was told to stop still
// runs in its grace period, and is no longer a host. Horovod keeps its hosts when the script fails,
// but takes an empty list as the loss of all of them. Without kubectl and swell, or the right to
// ask, the hosts are the workers of the hostfile whose SSH server lets the launcher in.
constexpr std::string_view kDiscoveryText = R"sh(#!/bin/sh
tool=
if command -v kubectl >/dev/null; then
  tool=kubectl
elif command -v swell >/dev/null; then
  tool=swell
fi
pods() {
  [ -n "$tool" ] || return
  if [ $tool = kubectl ]; then KUBECONFIG=/dev/null; export KUBECONFIG
  else unset KUBECONFIG; HOME=/; export HOME; fi
  $tool get pods --field-selector=status.phase=Running \
    -l training.kubeflow.org/job-name=@JOB@,training.kubeflow.org/job-role=worker \
    -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.deletionTimestamp}{"\n"}{end}'
}
if list=$(pods); then
  printf '%s\n' "$list" | while read -r host stops; do
    [ -z "$host" ] || [ -n "$stops" ] || echo "$host:@SLOTS@"
  done
  exit 0
fi
MPI_BY_SSH=yes MPI_SSH_SECONDS=0; export MPI_BY_SSH MPI_SSH_SECONDS
list=$(
  sed 's/[ :].*//' @FOLDER@/@HOSTFILE@ | {
    while read -r host; do
      case $host in (@JOB@-worker-*)
        ! @FOLDER@/@SHELL@ -o ConnectTimeout=3 "$host" true </dev/null >/dev/null 2>&1 ||
          echo "$host:@SLOTS@" & ;;
      esac
    done
    wait
  }
)
[ -n "$list" ] || { echo "discover_hosts.sh: no worker of @JOB@ answers" >&2; exit 1; }
printf '%s\n' "$list"
)sh";

// The server needs a directory and keys of its host, which an image may lack. Where it cannot
// start, as with another machine's keys, the worker can still be reached by exec.
constexpr std::string_view kServeText = R"sh(if command -v "$1" >/dev/null; then
  if [ "$(id -u)" = 0 ]; then
    mkdir -p /run/sshd
    ls /etc/ssh/ssh_host_*_key >/dev/null 2>&1 || ssh-keygen -A >/dev/null
  fi
  if "$@" -t; then exec "$@"; fi
  echo "$1 cannot start here: this worker waits, and is reached by exec alone" >&2
fi
exec sleep 365d
)sh";

using Replacement = std::pair<std::string_view, std::string_view>;

std::string Filled(std::string_view text, std::initializer_list<Replacement> words) {
  std::string out(text);
  for (const auto& [word, by] : words) {
    for (size_t at = out.find(word); at != std::string::npos; at = out.find(word, at + by.size())) {
      out.replace(at, word.size(), by);
    }
  }
  return out;
}

std::string ShellQuoted(std::string_view text) {
  return StrCat("'", Filled(text, {{"'", R"('\'')"}}), "'");
}

}  // namespace

std::string RemoteShellScript(std::string_view job,
                              std::string_view container,
                              std::string_view keys) {
  const std::string in = container.empty() ? "" : StrCat(" -c ", container);
  return Filled(kRemoteShellText, {{"@CONTAINER@", in},
                                   {"@JOB@", job},
                                   {"@FOLDER@", kMpiFolder},
                                   {"@HOSTFILE@", kMpiHostfile},
                                   {"@KEYS@", ShellQuoted(keys)}});
}

std::string DiscoverHostsScript(std::string_view job, int64_t slots) {
  const std::string number = std::to_string(slots);
  return Filled(kDiscoveryText, {{"@JOB@", job},
                                 {"@FOLDER@", kMpiFolder},
                                 {"@HOSTFILE@", kMpiHostfile},
                                 {"@SHELL@", kMpiRemoteShell},
                                 {"@SLOTS@", number}});
}

json::Array SshServer() {
  // The mode of a mounted directory is not the user's to choose, and StrictModes refuses it.
  return {"/usr/sbin/sshd", "-De", "-o", "StrictModes=no"};
}

json::Array ServeOrWait(const json::Array& server) {
  json::Array words{"/bin/sh", "-c", kServeText, "worker"};
  words.insert(words.end(), server.begin(), server.end());
  return words;
}

}  // namespace swell::jobs
