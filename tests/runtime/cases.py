"""What a container is and has, case by case: a table that every engine must pass.

A row is a pod and what it must come to. `run` is a script for the container's shell; `container` and `spec` are laid
over the pod's own. The image has busybox and two users: root and app (1000:1001, also in group 44).
"""

import json
import re
from dataclasses import dataclass, field
from typing import Callable, Optional, Union

BOX = "runtime/box:1"      # Cmd: sh
ENTRY = "runtime/entry:1"  # all of an image's config is set


@dataclass
class Case:
    name: str
    run: Optional[str] = None
    out: Union[str, re.Pattern, None] = None  # of the container `main`, without blanks at the ends
    image: str = BOX
    container: dict = field(default_factory=dict)
    spec: dict = field(default_factory=dict)
    meta: dict = field(default_factory=dict)
    objects: tuple = ()
    phase: str = "Succeeded"
    code: Optional[int] = None
    reason: str = ""    # of the pod, or of the end of `main`
    waiting: str = ""   # `main` never starts, for this reason
    event: str = ""     # a reason of an event
    message: str = ""   # a part of what the state or the event says
    check: Optional[Callable] = None  # more, with a Probe of the pod; then neither phase nor out are awaited


def config_map(name, data=None, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}, **more}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def volume(source, path="/v", **more):
    """The spec and the container of a pod with one volume."""
    return {"spec": {"volumes": [{"name": "v", **source}]},
            "container": {"volumeMounts": [{"name": "v", "mountPath": path, **more}]}}


def security(**fields):
    return {"container": {"securityContext": fields}}


def pod_security(**fields):
    return {"spec": {"securityContext": fields}}


def capabilities(*names):
    numbers = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
               "SETPCAP": 8, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "SYS_CHROOT": 18,
               "AUDIT_WRITE": 29, "SETFCAP": 31}
    return f"{sum(1 << numbers[name] for name in names):016x}"


DEFAULTS = capabilities("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
                        "NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "AUDIT_WRITE", "SETFCAP")
EFFECTIVE = "sed -n 's/^CapEff:[^0-9a-f]*//p' /proc/self/status"
NO_NEW = "sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/self/status"
SECCOMP = "sed -n 's/^Seccomp:[^0-9]*//p' /proc/self/status"
NO_MKDIR = json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
    {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]})
FOR_EVER = "while :; do sleep 0.1; done"

# ---- what is executed ----

START = [
    Case("entrypoint_and_cmd_of_the_image", image=ENTRY, out="entry cmd"),
    Case("args_replace_cmd", image=ENTRY, container={"args": ["mine"]}, out="entry mine"),
    Case("command_replaces_entrypoint_and_cmd", image=ENTRY, container={"command": ["echo", "only"]}, out="only"),
    Case("command_with_args", container={"command": ["echo"], "args": ["a b", "c"]}, out="a b c"),
    Case("env_of_the_image_and_of_the_pod", image=ENTRY, container={
        "command": ["sh", "-c", "echo $COLOUR $PLACE"], "env": [{"name": "PLACE", "value": "pod"}]}, out="blue pod"),
    Case("user_home_and_directory_of_the_image", image=ENTRY, container={
        "command": ["sh", "-c", "id -u; id -g; id -G; pwd; echo $HOME"]}, out="1000\n1001\n1001 44\n/work\n/home/app"),
    Case("volume_of_the_image", "cat /vol/kept; echo more >>/vol/kept; cat /vol/kept", "kept\nkept\nmore", image=ENTRY,
         container={"securityContext": {"runAsUser": 0}}),
    Case("working_directory_is_made", "pwd", "/made/for/it", container={"workingDir": "/made/for/it"}),
    Case("command_that_is_not_there", container={"command": ["nothing-here"]}, phase="Failed", code=128,
         reason="StartError", message="executable file not found in $PATH"),
    Case("command_that_may_not_run", container={"command": ["/etc/passwd"]}, phase="Failed", code=128,
         reason="StartError", message="permission denied"),
    Case("exit_code", "exit 7", phase="Failed", code=7, reason="Error"),
    Case("exit_by_a_signal", "kill -TERM $$$$", phase="Failed", code=143, reason="Error"),
    Case("terminal", "test -t 1 && echo $TERM", "xterm", container={"tty": True, "stdin": True}),
    Case("image_that_is_not_here", container={"imagePullPolicy": "Never"}, image="runtime/none:1", run="true",
         waiting="ErrImageNeverPull"),
    Case("image_without_a_name", image="Not/A name", run="true", waiting="InvalidImageName"),
]

# ---- environment ----

ENVIRONMENT = [
    Case("variables_are_expanded", "echo \"$B|$C|$D|$0\"", "12|$(A)|$(NONE)|sh", container={
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}, {"name": "C", "value": "$$(A)"},
                {"name": "D", "value": "$(NONE)"}]}),
    Case("args_are_expanded", container={"command": ["echo"], "args": ["$(A)", "$$(A)", "$(A", "$(B)"],
                                         "env": [{"name": "A", "value": "x y"}]}, out="x y $(A) $(A $(B)"),
    Case("fields", "echo $NAME $SPACE $LABEL $NOTE $ACCOUNT; test $IP = $(hostname -i) && test -n \"$NODE$HOST\" && "
         "test ${#ID} = 36 && echo fine", "fields default red a,b default\nfine",
         meta={"labels": {"colour": "red"}, "annotations": {"note/it": "a,b"}}, container={"env": [
             {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in {
                 "NAME": "metadata.name", "SPACE": "metadata.namespace", "ID": "metadata.uid", "IP": "status.podIP",
                 "LABEL": "metadata.labels['colour']", "NOTE": "metadata.annotations['note/it']",
                 "NODE": "spec.nodeName", "HOST": "status.hostIP", "ACCOUNT": "spec.serviceAccountName"}.items()]}),
    Case("resources_as_variables", "echo $CPU $MILLI $MEMORY $MIB $REQUEST", "1 300 67108864 64 200", container={
        "resources": {"limits": {"cpu": "300m", "memory": "64Mi"}, "requests": {"cpu": "200m"}},
        "env": [{"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, **more}}}
                for name, resource, more in (
                    ("CPU", "limits.cpu", {}), ("MILLI", "limits.cpu", {"divisor": "1m"}),
                    ("MEMORY", "limits.memory", {}), ("MIB", "limits.memory", {"divisor": "1Mi"}),
                    ("REQUEST", "requests.cpu", {"divisor": "1m"}))]}),
    Case("env_from_maps_and_secrets", "echo $P_A $B $C", "1 2 own", objects=(
        config_map("env-map", {"A": "1", "C": "map"}), secret("env-secret", B="2")), container={
            "envFrom": [{"prefix": "P_", "configMapRef": {"name": "env-map"}}, {"configMapRef": {"name": "env-map"}},
                        {"secretRef": {"name": "env-secret"}},
                        {"configMapRef": {"name": "env-none", "optional": True}}],
            "env": [{"name": "C", "value": "own"}]}),
    Case("key_that_may_be_missing", "echo \"$A|$B\"", "|2", objects=(config_map("env-key", {"b": "2"}),), container={
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env-key", "key": "a", "optional": True}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env-key", "key": "b"}}}]}),
    Case("key_that_is_missing", "true", waiting="CreateContainerConfigError", message="couldn't find key a",
         objects=(config_map("env-gap"),), container={
             "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env-gap", "key": "a"}}}]}),
    Case("address_of_the_api_server", "test -n \"$KUBERNETES_SERVICE_HOST$KUBERNETES_SERVICE_PORT\" && echo there",
         "there", spec={"enableServiceLinks": False}),
]

# ---- who it is and what it may ----

RIGHTS = [
    Case("a_user_without_an_entry_is_in_group_0", "id -u; id -g; id -G", "1234\n0\n0", **security(runAsUser=1234)),
    Case("a_user_with_an_entry_has_its_groups", "id -u; id -g; id -G", "1000\n1001\n1001 44", 
         **security(runAsUser=1000)),
    Case("groups_of_the_pod_alone", "id -G", "1001",
         **pod_security(runAsUser=1000, supplementalGroupsPolicy="Strict")),
    Case("groups_of_the_pod", "id -u; id -g; id -G", "1234\n2345\n2345 3456 4567",
         **pod_security(runAsUser=1234, runAsGroup=2345, supplementalGroups=[3456], fsGroup=4567)),
    Case("the_containers_user_counts_before_the_pods", "id -u", "1500",
         spec={"securityContext": {"runAsUser": 1234}}, container={"securityContext": {"runAsUser": 1500}}),
    Case("non_root_without_a_user", "id", waiting="CreateContainerConfigError", message="image will run as root",
         **security(runAsNonRoot=True)),
    Case("non_root_as_root", "id", waiting="CreateContainerConfigError", message="breaks non-root policy",
         **security(runAsNonRoot=True, runAsUser=0)),
    Case("default_capabilities", EFFECTIVE, DEFAULTS),
    Case("capabilities_dropped", EFFECTIVE, capabilities("NET_BIND_SERVICE"),
         **security(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})),
    Case("capabilities_added", f"{EFFECTIVE}; ip link set lo down && echo done",
         f"{int(DEFAULTS, 16) | int(capabilities('NET_ADMIN'), 16):016x}\ndone",
         **security(capabilities={"add": ["NET_ADMIN"]})),
    Case("other_users_have_none", EFFECTIVE, "0" * 16, **security(runAsUser=1234)),
    Case("no_such_capability", "true", phase="Failed", reason="SecurityForbidden",
         message="is not a capability of Linux", **security(capabilities={"add": ["FLY"]})),
    Case("privileges_may_grow", NO_NEW, "0"),
    Case("privileges_may_not_grow", NO_NEW, "1", **security(allowPrivilegeEscalation=False)),
    Case("system_calls_are_filtered", f"{SECCOMP}; unshare -r true 2>/dev/null || echo refused", "2\nrefused"),
    Case("system_calls_are_not_filtered", SECCOMP, "0", **security(seccompProfile={"type": "Unconfined"})),
    Case("filter_of_the_nodes_own", "mkdir /tmp/x 2>/dev/null || echo refused; touch /tmp/y && echo fine",
         "refused\nfine", **security(seccompProfile={"type": "Localhost", "localhostProfile": "no-mkdir.json"})),
    Case("filter_that_is_missing", "true", waiting="CreateContainerConfigError", message="none.json",
         **security(seccompProfile={"type": "Localhost", "localhostProfile": "none.json"})),
    Case("proc_is_masked", "cat /proc/kcore 2>/dev/null | wc -c; ls /proc/acpi /proc/scsi 2>/dev/null | "
         "grep -v : | grep -c .; echo 1 2>/dev/null >/proc/sys/kernel/domainname || echo read-only; "
         "echo b 2>/dev/null >/proc/sysrq-trigger || echo refused", re.compile(r"0\n0\nread-only\nrefused")),
    Case("proc_is_not_masked", "mount | grep -c ' on /proc/kcore '", "0", phase="Failed",
         spec={"hostUsers": False}, container={"securityContext": {"procMount": "Unmasked"}}),
    Case("sys_is_read_only", "for dir in /sys/fs/cgroup /sys/kernel; do mkdir $dir/x 2>/dev/null || echo no; done",
         "no\nno"),
    Case("root_is_read_only", "touch /x 2>/dev/null || echo no; touch /v/x && echo yes; "
         "echo end >/dev/termination-log && echo yes", "no\nyes\nyes",
         spec={"volumes": [{"name": "v", "emptyDir": {}}]}, container={
             "securityContext": {"readOnlyRootFilesystem": True}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    Case("safe_settings_of_the_kernel", "cat /proc/sys/net/ipv4/ip_local_port_range", "40000\t50000",
         **pod_security(sysctls=[{"name": "net.ipv4.ip_local_port_range", "value": "40000 50000"}])),
    Case("other_settings_of_the_kernel", "true", phase="Failed", reason="SecurityForbidden", message="kernel.msgmax",
         **pod_security(sysctls=[{"name": "kernel.msgmax", "value": "1"}])),
    Case("processes_are_its_own", "ls -d /proc/[0-9]* | wc -l | awk '{ print ($1 < 9) }'; "
         "ls /sys/class/net | sort | tr '\\n' ' '", re.compile(r"1\n.*\blo\b")),
    Case("another_system", "true", phase="Failed", reason="PodOSNotSupported", message="this node runs Linux",
         spec={"os": {"name": "windows"}}),
    Case("mounts_that_reach_the_machine", "true", phase="Failed", reason="UnsupportedField",
         message="volumeMounts[v].mountPropagation: Bidirectional", spec={"volumes": [{"name": "v", "emptyDir": {}}]},
         container={"securityContext": {"privileged": True}, "volumeMounts": [
             {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]}),
    Case("a_runtime_that_is_not_here", "true", phase="Pending", event="FailedCreatePodSandBox",
         message="is configured", spec={"runtimeClassName": "boxed"}, objects=(
             {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "boxed"},
              "handler": "kata"},)),
    Case("a_runtime_by_its_usual_name", "echo fine", "fine", spec={"runtimeClassName": "nvidia"}, objects=(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
         "handler": "nvidia"},)),
    Case("shared_processes", "true", phase="Failed", reason="SecurityForbidden", message="shareProcessNamespace",
         spec={"shareProcessNamespace": True}),
]

# ---- how much it may have ----

SHOW_LIMITS = ("cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes 2>/dev/null || cat memory.max; "
               "cat cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 cpu.max")

LIMITS = [
    Case("memory_beyond_the_limit", "tail /dev/zero", phase="Failed", code=137, reason="OOMKilled",
         container={"resources": {"limits": {"memory": "24Mi"}}}),
    Case("limits_are_seen", SHOW_LIMITS, "67108864\n30000",
         container={"resources": {"limits": {"cpu": "300m", "memory": "64Mi"}}}),
    Case("limits_of_the_whole_pod", f"{SHOW_LIMITS}; echo $MIB", "67108864\n30000\n64",
         spec={"resources": {"limits": {"cpu": "300m", "memory": "64Mi"}}}, container={
             "env": [{"name": "MIB", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory",
                                                                        "divisor": "1Mi"}}}]}),
    Case("memory_beyond_the_limit_of_the_whole_pod", "tail /dev/zero", phase="Failed", code=137, reason="OOMKilled",
         spec={"resources": {"limits": {"memory": "24Mi"}}}),
    Case("ended_first_where_memory_is_short", "cat /proc/self/oom_score_adj", "1000"),
    Case("ended_later_where_memory_is_asked_for", "cat /proc/self/oom_score_adj", "999",
         container={"resources": {"requests": {"memory": "1Mi"}}}),
    Case("processes_are_limited", "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max",
         re.compile(r"\d+")),
    Case("devices", "ls /dev | tr '\\n' ' '; echo; echo x >/dev/null && head -c 4 /dev/urandom | wc -c",
         re.compile(r"(core )?(console )?fd full mqueue null ptmx pts random shm stderr stdin stdout "
                    r"termination-log tty urandom zero *\n4")),
    Case("shared_memory_of_the_pods_size", "df -k /dev/shm | awk 'NR == 2 { print $2 }'", "65536",
         container={"resources": {"limits": {"memory": "64Mi"}}}),
    Case("shared_memory_by_a_volume", "df -k /dev/shm | awk 'NR == 2 { print $2 }'", "8192",
         **volume({"emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}, "/dev/shm")),
    Case("ephemeral_storage_is_taken", "echo fine", "fine", container={
        "resources": {"limits": {"ephemeral-storage": "1Gi"}, "requests": {"ephemeral-storage": "1Mi"}}}),
    Case("ephemeral_storage_beyond_the_limit", f"head -c 4000000 /dev/zero >/home/large; {FOR_EVER}", phase="Failed",
         reason="Evicted", message="exceeded its local ephemeral storage limit \"1Mi\"", container={
             "resources": {"limits": {"ephemeral-storage": "1Mi"}}}),
    Case("time_of_the_pod", FOR_EVER, phase="Failed", reason="DeadlineExceeded", spec={"activeDeadlineSeconds": 1}),
]

# ---- volumes ----

MAP = config_map("files", {"a": "one", "b": "two", "deep": "x"}, binaryData={"bytes": "AAH/"})
MODES = "cd /v; for f in *; do echo $f $(stat -L -c %a $f) $(xxd -p $f); done"

VOLUMES = [
    Case("directory_of_the_pod", "cat /v/from-init; stat -c %a /v", "told\n777", spec={
        "volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{
            "name": "first", "image": BOX, "command": ["sh", "-c", "echo told >/v/from-init"],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
         container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    Case("directory_beyond_its_limit", f"head -c 4000000 /dev/zero >/v/large; {FOR_EVER}", phase="Failed",
         reason="Evicted", message="Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\"",
         **volume({"emptyDir": {"sizeLimit": "1Mi"}})),
    Case("directory_in_memory_of_its_size", "df -k /v | awk 'NR == 2 { print $2 }'", "8192",
         **volume({"emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}})),
    Case("directory_in_memory_of_the_pods_size", "df -k /v | awk 'NR == 2 { print $2 }'", "65536",
         spec={"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
         container={"resources": {"limits": {"memory": "64Mi"}},
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    Case("directory_in_memory", "stat -f -c %T /v", "tmpfs", **volume({"emptyDir": {"medium": "Memory"}})),
    Case("keys_of_a_map", MODES, "a 644 6f6e65\nb 644 74776f\nbytes 644 0001ff\ndeep 644 78", objects=(MAP,),
         **volume({"configMap": {"name": "files"}})),
    Case("items_and_modes_of_a_map", "stat -L -c %a /v/x/y /v/b; cat /v/x/y; ls /v", "400\n440\noneb\nx",
         objects=(MAP,), **volume({"configMap": {"name": "files", "defaultMode": 0o440, "items": [
             {"key": "a", "path": "x/y", "mode": 0o400}, {"key": "b", "path": "b"}]}})),
    Case("map_that_is_missing", "true", phase="Pending", event="FailedMount", message="not found",
         **volume({"configMap": {"name": "no-such-map"}})),
    Case("map_that_may_be_missing", "ls /v | wc -l", "0",
         **volume({"configMap": {"name": "no-map", "optional": True}})),
    Case("a_secret", MODES, "user 644 6d65", objects=(secret("login", user="me"),),
         **volume({"secret": {"secretName": "login"}})),
    Case("a_secret_of_a_group", "stat -L -c '%a %g' /v/user; cat /v/user; touch /e/x; stat -c '%g' /e /e/x",
         "640 4567\nme4567\n4567", objects=(secret("group-login", user="me"),), spec={
             "securityContext": {"fsGroup": 4567, "runAsUser": 1234},
             "volumes": [{"name": "v", "secret": {"secretName": "group-login", "defaultMode": 0o600}},
                         {"name": "e", "emptyDir": {}}]},
         container={"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "e", "mountPath": "/e"}]}),
    Case("sources_joined", "cd /v; cat a; echo; cat s/user; echo; cat name; echo; cut -c1-2 token", "one\nme\n"
         "sources-joined\ney", objects=(MAP, secret("joined", user="me")), **volume({"projected": {"sources": [
             {"configMap": {"name": "files", "items": [{"key": "a", "path": "a"}]}},
             {"secret": {"name": "joined", "items": [{"key": "user", "path": "s/user"}]}},
             {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
             {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}})),
    Case("fields_as_files", "cd /v; cat labels; echo; cat cpu; echo; stat -L -c %a labels",
         'colour="red"\nshape="round"\n300\n400', meta={"labels": {"shape": "round", "colour": "red"}}, spec={
             "volumes": [{"name": "v", "downwardAPI": {"items": [
                 {"path": "labels", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.labels"}},
                 {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu",
                                                      "divisor": "1m"}}]}}]},
         container={"resources": {"limits": {"cpu": "300m"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    Case("a_file_of_a_volume", "cat /etc/one; ls /etc | grep -c passwd", "one1", objects=(MAP,),
         **volume({"configMap": {"name": "files"}}, "/etc/one", subPath="a")),
    Case("a_part_of_a_volume_by_name", "echo x >/v/x; ls /all", "sub-me", spec={
        "volumes": [{"name": "v", "emptyDir": {}}]}, container={
            "env": [{"name": "WHO", "value": "me"}], "volumeMounts": [
                {"name": "v", "mountPath": "/v", "subPathExpr": "sub-$(WHO)"}, {"name": "v", "mountPath": "/all"}]}),
    Case("a_volume_to_read", "touch /v/x 2>/dev/null || echo no", "no", **volume({"emptyDir": {}}, readOnly=True)),
    Case("a_path_of_the_machine", "cat /v", re.compile(r"root:x:0:0:.*", re.S),
         **volume({"hostPath": {"path": "/etc/passwd", "type": "File"}}, readOnly=True)),
    Case("a_path_that_is_a_link_of_the_machine", "test -e /v/lock && echo there", "there",
         **volume({"hostPath": {"path": "/var/run", "type": "Directory"}}, readOnly=True)),
    Case("a_path_of_another_type", "true", phase="Pending", event="FailedCreatePodSandBox|FailedMount",
         message="is not a directory", **volume({"hostPath": {"path": "/etc/passwd", "type": "Directory"}})),
    Case("a_device_of_the_machine", "test -c /v && echo there", "there",
         **volume({"hostPath": {"path": "/dev/null", "type": "CharDevice"}})),
    Case("an_account_that_it_does_not_want", "ls /var/run/secrets/kubernetes.io 2>/dev/null | wc -l", "0",
         spec={"automountServiceAccountToken": False}),
]

# ---- names ----

NAMES = [
    Case("its_name", "hostname; cat /etc/hostname", "its-name\nits-name"),
    Case("another_name", "hostname; grep -c 'other' /etc/hosts", "other\n1", spec={"hostname": "other"}),
    Case("its_full_name", "hostname; hostname -f", "one\none.two.default.svc.cluster.local",
         spec={"hostname": "one", "subdomain": "two"}),
    Case("its_full_name_as_its_name", "hostname", "one.two.default.svc.cluster.local",
         spec={"hostname": "one", "subdomain": "two", "setHostnameAsFQDN": True}),
    Case("more_hosts", "awk '$1 == \"1.2.3.4\" { print $2, $3 }' /etc/hosts", "far away",
         spec={"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["far", "away"]}]}),
    Case("name_servers_of_its_own", "cat /etc/resolv.conf", "search a.example b.example\nnameserver 1.2.3.4\n"
         "options ndots:2 rotate", spec={"dnsPolicy": "None", "dnsConfig": {
             "nameservers": ["1.2.3.4"], "searches": ["a.example", "b.example"],
             "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]}}),
    Case("name_servers_added", "grep -c '^nameserver 1.2.3.4$' /etc/resolv.conf; grep -c 'ndots:7' /etc/resolv.conf",
         "1\n1", spec={"dnsConfig": {"nameservers": ["1.2.3.4"], "options": [{"name": "ndots", "value": "7"}]}}),
    Case("the_machines_network", "test $IP = $HOST && echo same", "same", spec={"hostNetwork": True},
         container={"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                            {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]}),
]
