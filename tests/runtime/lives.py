"""Cases about a pod's life: order, hooks, probes, restarts, its end; and commands that look into it.

Each has a check that watches the pod (a `Pod` of test_runtime.py).
"""

from cases import BOX, ENTRY, FOR_EVER, Case

SHARED = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def shell(name, script, **more):
    return {"name": name, "image": BOX, "command": ["sh", "-c", script], **more}


def noted(word):
    return f"echo {word} >>/v/order"


def init_containers_come_in_order(pod):
    pod.ends("Succeeded")
    pod.same(pod.log(), "one\ntwo\nmain")


def a_failed_init_container_ends_the_pod(pod):
    pod.ends("Failed")
    state = pod.now()["status"]["initContainerStatuses"][0]["state"]["terminated"]
    pod.same((state["exitCode"], pod.status("main")["state"]["waiting"]["reason"]), (3, "PodInitializing"))


def a_sidecar_starts_before_and_ends_after(pod):
    pod.ends("Succeeded")
    pod.same(pod.log(), "sidecar\nmain")
    states = pod.now()["status"]["initContainerStatuses"][0]["state"]["terminated"]
    pod.same(pod.log("beside").splitlines()[-1], "end")
    pod.same(states["finishedAt"] >= pod.status("main")["state"]["terminated"]["finishedAt"], True)


def a_hook_runs_when_it_starts(pod):
    pod.comes(lambda: pod.run("cat", "/started").stdout == "main\n", "the hook's file")


def a_hook_that_fails_restarts_it(pod):
    pod.comes(lambda: pod.status("main").get("restartCount", 0) > 0, "a restart")
    pod.same("FailedPostStartHook" in pod.events(), True)


def a_hook_runs_before_the_end(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    pod.follow_to_the_end()
    pod.same(pod.followed, "up\nhook\nterm\n")


def the_stop_signal_of_the_image(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    pod.follow_to_the_end()
    pod.same(pod.followed, "up\nusr1\n")


def the_stop_signal_of_the_container(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    pod.follow_to_the_end()
    pod.same(pod.followed, "up\nusr2\n")


def the_signal_is_for_the_first_process(pod):
    pod.comes(lambda: "child" in pod.log(), "its child's first word")
    pod.follow_to_the_end()
    pod.same(pod.followed, "child\nfirst\n")


def a_grace_period_ends(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    seconds = pod.follow_to_the_end()
    pod.same((pod.followed, 1 <= seconds < 25), ("up\nno\n", True))


def readiness_by_a_command(pod):
    pod.comes(lambda: pod.status("main").get("started"), "its start")
    pod.same(pod.status("main")["ready"], False)
    pod.run("touch", "/ready")
    pod.comes(lambda: pod.status("main")["ready"], "readiness")
    pod.run("rm", "/ready")
    pod.comes(lambda: not pod.status("main")["ready"], "no readiness")
    pod.same((pod.status("main")["restartCount"], "Unhealthy" in pod.events()), (0, True))


def becomes_ready(pod):
    pod.comes(lambda: pod.status("main").get("ready"), "readiness")


def liveness_restarts_it(pod):
    pod.comes(lambda: pod.status("main").get("restartCount", 0) > 0, "a restart")
    pod.same("Killing" in pod.events(), True)


def others_wait_for_the_startup_probe(pod):
    pod.comes(lambda: pod.status("main").get("ready"), "readiness")
    # The liveness probe would have restarted it before its file was there.
    pod.same((pod.status("main")["restartCount"], pod.status("main")["started"]), (0, True))


def message(pod, text, phase="Succeeded"):
    pod.ends(phase)
    pod.same(pod.status("main")["state"]["terminated"].get("message", "").strip(), text)


def it_starts_again_after_a_failure(pod):
    pod.ends("Succeeded")
    pod.same((pod.status("main")["restartCount"], pod.status("main")["lastState"]["terminated"]["exitCode"]), (1, 4))
    pod.same(pod.log("main", "--previous"), "first")
    pod.same(pod.log(), "second")


def it_waits_longer_after_each_failure(pod):
    pod.comes(lambda: pod.status("main")["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff", "the wait")
    pod.same((pod.now()["status"]["phase"], "BackOff" in pod.events()), ("Running", True))


def commands_run_in_it(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    pod.same(pod.run("sh", "-c", "pwd; echo $WHO; exit 3").stdout, "/tmp\nme\n")
    pod.same(pod.run("sh", "-c", "exit 3").returncode != 0, True)
    pod.same(pod.run("cat", options=["-i"], input="through\n").stdout, "through\n")
    pod.same(pod.run("id", "-u").stdout, "1234\n")
    pod.same("executable file not found" in pod.run("nothing-here").stderr, True)


def it_is_attached_to(pod):
    pod.comes(lambda: pod.status("main")["state"].get("running"), "its start")
    done = pod.kubectl("attach", "-i", pod.name, input="hello\n")
    pod.same("heard hello" in done.stdout + pod.log(), True)


def logs_are_cut(pod):
    pod.ends("Succeeded")
    lines = [f"line {number}" for number in range(1, 6)]
    pod.same(pod.log(), "\n".join(lines))
    pod.same(pod.log("main", "--tail=2"), "\n".join(lines[-2:]))
    pod.same(pod.log("main", "--limit-bytes=6"), "line 1")
    stamped = pod.log("main", "--timestamps", "--tail=1").split(" ", 1)
    pod.same((stamped[0].endswith("Z"), stamped[1]), (True, "line 5"))
    pod.same(pod.log("main", "--since=24h", "--tail=1"), "line 5")
    pod.same(len(pod.log("main", "--prefix", "--tail=1").split("] ")), 2)


def long_lines_are_whole(pod):
    pod.ends("Succeeded")
    pod.same(len(pod.log()), 40000)


def a_debug_container_looks_at_it(pod):
    pod.comes(lambda: "up" in pod.log(), "its first word")
    done = pod.kubectl("debug", pod.name, "--image", BOX, "--target", "main", "--container", "look", "--profile",
                       "general", "--", "sh", "-c", "ps | grep -c 'sleep 0.[1]'; hostname")
    pod.same(done.returncode, 0)
    pod.comes(lambda: pod.status("look", "ephemeralContainerStatuses").get("state", {}).get("terminated"), "its end")
    pod.same(pod.log("look").splitlines()[-1], pod.name)


def volumes_follow_their_source(pod):
    pod.comes(lambda: pod.run("cat", "/v/word").stdout == "old", "the first word")
    pod.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "changing"}, "data": {"word": "new"}})
    pod.comes(lambda: pod.run("cat", "/v/word").stdout == "new", "the new word", 150)


QUICK = {"periodSeconds": 1, "failureThreshold": 1}
# What a server of grpc.health.v1.Health says of itself, as printf takes it: its settings, then its answer.
NOT_SERVING = r"\0\0\0\4\0\0\0\0\0\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10\2"
SERVING = NOT_SERVING[:-1] + "1"
CHILD = "sh -c \"trap 'echo no' TERM; echo child; while :; do sleep 0.05; done\" &"

LIVES = [
    Case("init_containers", "cat /v/order; echo main", check=init_containers_come_in_order, container=MOUNT, spec={
        **SHARED, "initContainers": [shell("one", noted("one"), **MOUNT), shell("two", noted("two"), **MOUNT)]}),
    Case("failing_init_container", "true", check=a_failed_init_container_ends_the_pod,
         spec={"initContainers": [shell("one", "exit 3"), shell("two", "true")]}),
    Case("sidecar", "until test -s /v/order; do sleep 0.05; done; cat /v/order; echo main", container=MOUNT,
         check=a_sidecar_starts_before_and_ends_after, spec={**SHARED, "initContainers": [
             shell("beside", f"trap 'echo end; exit 0' TERM; {noted('sidecar')}; {FOR_EVER}", restartPolicy="Always",
                   **MOUNT)]}),
    Case("post_start", FOR_EVER, check=a_hook_runs_when_it_starts, container={"lifecycle": {
        "postStart": {"exec": {"command": ["sh", "-c", "echo main >/started"]}}}}),
    Case("failing_post_start", FOR_EVER, check=a_hook_that_fails_restarts_it, spec={"restartPolicy": "Always"},
         container={"lifecycle": {"postStart": {"exec": {"command": ["false"]}}}}),
    Case("post_start_asks_nobody", FOR_EVER, check=a_hook_that_fails_restarts_it, spec={"restartPolicy": "Always"},
         container={"lifecycle": {"postStart": {"httpGet": {"port": 81}}}}),
    Case("pre_stop", "trap 'echo term; exit 0' TERM; echo up; "
         "while :; do test -e /asked && echo hook && rm /asked; sleep 0.05; done",
         check=a_hook_runs_before_the_end, spec={"terminationGracePeriodSeconds": 30}, container={
             "lifecycle": {"preStop": {"exec": {"command": [
                 "sh", "-c", "touch /asked; while test -e /asked; do sleep 0.05; done"]}}}}),
    Case("stop_signal", image=ENTRY, check=the_stop_signal_of_the_image, spec={"terminationGracePeriodSeconds": 30},
         container={"command": ["sh", "-c", "trap 'echo usr1; exit 0' USR1; trap 'echo term' TERM; echo up; "
                                + FOR_EVER]}),
    Case("stop_signal_of_the_container", image=ENTRY, check=the_stop_signal_of_the_container,
         spec={"terminationGracePeriodSeconds": 30, "os": {"name": "linux"}},
         container={"lifecycle": {"stopSignal": "SIGUSR2"},
                    "command": ["sh", "-c", "trap 'echo usr2; exit 0' USR2; trap 'echo usr1' USR1; echo up; "
                                + FOR_EVER]}),
    Case("stop_signal_for_the_first", f"{CHILD} trap 'echo first; sleep 0.3; exit 0' TERM; {FOR_EVER}",
         check=the_signal_is_for_the_first_process, spec={"terminationGracePeriodSeconds": 30}),
    Case("grace_period", f"trap 'echo no' TERM; echo up; {FOR_EVER}", check=a_grace_period_ends,
         spec={"terminationGracePeriodSeconds": 2}),
    Case("readiness_probe", FOR_EVER, check=readiness_by_a_command, container={
        "readinessProbe": {"exec": {"command": ["test", "-e", "/ready"]}, **QUICK}}),
    Case("http_probe", "mkdir /www; echo ok >/www/fine; httpd -f -p 8080 -h /www", check=becomes_ready, container={
        "ports": [{"name": "web", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/fine", "port": "web"}, "periodSeconds": 1}}),
    Case("tcp_probe", "httpd -f -p 8080 -h /", check=becomes_ready, container={
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}),
    Case("grpc_probe", f"while :; do printf '{SERVING}' | nc -l -p 8080; done", check=becomes_ready, container={
        "readinessProbe": {"grpc": {"port": 8080, "service": "train"}, "periodSeconds": 1}}),
    Case("grpc_probe_of_another_server", f"while :; do printf '{NOT_SERVING}' | nc -l -p 8080; done",
         check=lambda pod: pod.comes(lambda: "NOT_SERVING" in pod.events().get("Unhealthy", ""), "the event"),
         container={"readinessProbe": {"grpc": {"port": 8080}, **QUICK}}),
    Case("https_probe_of_a_server_without", "httpd -f -p 8080 -h /", container={
        "readinessProbe": {"httpGet": {"port": 8080, "scheme": "HTTPS"}, **QUICK}},
         check=lambda pod: pod.comes(lambda: "TLS handshake failed" in pod.events().get("Unhealthy", ""), "the event")),
    Case("liveness_probe", FOR_EVER, check=liveness_restarts_it, spec={"restartPolicy": "Always"}, container={
        "livenessProbe": {"exec": {"command": ["false"]}, **QUICK}}),
    Case("startup_probe", f"sleep 3; touch /up; {FOR_EVER}", check=others_wait_for_the_startup_probe, container={
        "startupProbe": {"exec": {"command": ["test", "-e", "/up"]}, "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {"exec": {"command": ["test", "-e", "/up"]}, **QUICK}}),
    Case("termination_message", "echo said >/dev/termination-log; echo log", check=lambda pod: message(pod, "said")),
    Case("termination_message_elsewhere", "echo said >/tmp/end", check=lambda pod: message(pod, "said"),
         container={"terminationMessagePath": "/tmp/end"}),
    Case("termination_message_of_the_log", "echo last words; exit 1",
         check=lambda pod: message(pod, "last words", "Failed"),
         container={"terminationMessagePolicy": "FallbackToLogsOnError"}),
    Case("no_message_of_the_log_after_success", "echo last words", check=lambda pod: message(pod, ""),
         container={"terminationMessagePolicy": "FallbackToLogsOnError"}),
    Case("restart_on_failure", "test -e /v/x && echo second && exit 0; echo first; touch /v/x; exit 4",
         check=it_starts_again_after_a_failure, container=MOUNT, spec={**SHARED, "restartPolicy": "OnFailure"}),
    Case("back_off", "exit 1", check=it_waits_longer_after_each_failure, spec={"restartPolicy": "Always"}),
    Case("exec", f"echo up; {FOR_EVER}", check=commands_run_in_it, container={
        "workingDir": "/tmp", "env": [{"name": "WHO", "value": "me"}], "securityContext": {"runAsUser": 1234}}),
    Case("attach", "read word; echo heard $word", check=it_is_attached_to,
         container={"stdin": True, "stdinOnce": True}),
    Case("logs", "for n in 1 2 3 4 5; do echo line $n; done", check=logs_are_cut),
    Case("long_lines", "head -c 40000 /dev/zero | tr '\\0' x; echo", check=long_lines_are_whole),
    Case("debug", f"echo up; {FOR_EVER}", check=a_debug_container_looks_at_it),
    Case("changing_map", FOR_EVER, check=volumes_follow_their_source, container=MOUNT, objects=(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "changing"}, "data": {"word": "old"}},),
         spec={"volumes": [{"name": "v", "configMap": {"name": "changing"}}]}),
]
