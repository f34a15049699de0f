"""Plays the table of cases.py and lives.py on every engine that this machine has: one cluster for each, a bounded
number of pods at a time. `SWELL_CASES=a,b` plays these only.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import engines
from cases import BOX, ENTRY, ENVIRONMENT, LIMITS, NAMES, NO_MKDIR, RIGHTS, START, VOLUMES, Case
from engines import ROOT, run
from lives import LIVES

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "images"))

import layout  # noqa: E402
from waiting import until  # noqa: E402

CASES = START + ENVIRONMENT + RIGHTS + LIMITS + VOLUMES + NAMES + LIVES
AT_ONCE = 4
WAIT_S = 90
TOOLS = run("busybox", "--list").stdout.split() if shutil.which("busybox") else []


def images():
    """Name and content of the images that cases use."""
    tools = {f"bin/{tool}": "/bin/busybox" for tool in TOOLS if tool != "busybox" and "/" not in tool}
    common = layout.tar({**tools, "tmp": (0o1777, None), "home/app/.keep": b""})
    upper = layout.tar({"bin/entry": (0o755, b"#!/bin/sh\necho entry \"$@\"\n"), "vol/kept": b"kept\n"})
    return {BOX: layout.busybox(common, Cmd=["sh"]),
            ENTRY: layout.busybox(common, upper, Entrypoint=["/bin/entry"], Cmd=["cmd"], User="app",
                                  Env=["PATH=/bin", "COLOUR=blue", "PLACE=image"], WorkingDir="/work",
                                  Volumes={"/vol": {}}, StopSignal="SIGUSR1")}


class Mismatch(AssertionError):
    pass


class Pod:
    """One case on a cluster."""

    def __init__(self, case, kubeconfig, more=None):
        self.case = case
        self.more = more or {}  # of the spec
        self.name = case.name.replace("_", "-")
        self.kubeconfig = kubeconfig
        self.followed = ""

    # ---- the cluster ----

    def kubectl(self, *words, **more):
        return run("kubectl", "--kubeconfig", self.kubeconfig, *words, **more)

    def apply(self, *objects):
        engines.must(self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List",
                                                                        "items": list(objects)})))

    def create(self):
        case = self.case
        main = {"name": "main", "image": case.image, "imagePullPolicy": "IfNotPresent", **case.container}
        if case.run is not None:
            main["command"] = ["sh", "-c", case.run]
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **case.spec, **self.more,
                "containers": [main]}
        self.apply(*case.objects, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name, **case.meta},
                                   "spec": spec})

    def remove(self):
        self.kubectl("delete", "pod", self.name, "--ignore-not-found", "--wait=false", "--grace-period=0", "--force")

    def now(self):
        done = self.kubectl("get", "pod", self.name, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {"status": {}}

    def status(self, container, status_list="containerStatuses"):
        found = [one for one in self.now()["status"].get(status_list, []) if one["name"] == container]
        return found[0] if found else {"state": {}}

    def log(self, container="main", *options):
        return self.kubectl("logs", self.name, "-c", container, *options).stdout.strip()

    def run(self, *command, options=(), **more):
        return self.kubectl("exec", *options, self.name, "-c", "main", "--", *command, **more)

    def events(self):
        """{reason: messages}"""
        done = self.kubectl("get", "events", "-o", "json", "--field-selector", f"involvedObject.name={self.name}")
        out = {}
        for event in json.loads(done.stdout or '{"items": []}')["items"]:
            out[event["reason"]] = f"{out.get(event['reason'], '')}{event['message']}\n"
        return out

    def follow_to_the_end(self):
        """Deletes the pod as people do, and reads its log to the end; the seconds it took."""
        began = time.monotonic()
        with ThreadPoolExecutor(1) as reader:
            words = ("logs", "-f", self.name, "-c", "main")
            log = reader.submit(lambda: self.kubectl(*words).stdout)
            self.comes(lambda: log.running(), "the reader")
            # What is there already has come: the reader is connected.
            self.kubectl("logs", self.name, "-c", "main")
            engines.must(self.kubectl("delete", "pod", self.name))
            self.followed = log.result()
        return time.monotonic() - began

    # ---- what must hold ----

    def comes(self, condition, what, seconds=WAIT_S):
        if not until(condition, seconds, pause=0.2):
            raise Mismatch(f"{what} did not come; status: {json.dumps(self.now()['status'])[:1500]}")

    @staticmethod
    def same(found, expected):
        if isinstance(expected, re.Pattern):
            if not expected.fullmatch(found):
                raise Mismatch(f"{found!r} is not {expected.pattern!r}")
        elif found != expected:
            raise Mismatch(f"{found!r} is not {expected!r}")

    def ends(self, phase):
        self.comes(lambda: self.now()["status"].get("phase") in ("Succeeded", "Failed"), "the end")
        self.same(self.now()["status"]["phase"], phase)

    def check(self):
        case = self.case
        if case.check:
            case.check(self)
        elif case.waiting:
            self.comes(lambda: self.status("main")["state"].get("waiting", {}).get("reason") == case.waiting,
                       case.waiting)
            self.says(json.dumps(self.status("main")["state"]))
        elif case.event:
            self.comes(lambda: any(re.fullmatch(case.event, reason) for reason in self.events()), case.event)
            self.says(json.dumps(self.events()))
            self.same(self.now()["status"]["phase"], case.phase)
        else:
            self.check_end()

    def check_end(self):
        case = self.case
        self.ends(case.phase)
        status = self.now()["status"]
        end = self.status("main")["state"].get("terminated", {})
        if case.code is not None:
            self.same(end.get("exitCode"), case.code)
        if case.reason:
            self.same(status.get("reason", end.get("reason")), case.reason)
        self.says(json.dumps(status))
        if case.out is not None:
            self.same(self.log(), case.out)

    def says(self, text):
        part = json.dumps(self.case.message)[1:-1]
        if part not in text:
            raise Mismatch(f"{part!r} is not in {text}")

    def play(self):
        """What went wrong; empty if nothing did."""
        try:
            self.create()
            self.check()
        except Mismatch as wrong:
            return str(wrong)
        except Exception:  # of a test's own: told with the others
            return traceback.format_exc()
        finally:
            self.remove()
        return ""


class Table:
    """The test of one engine."""

    engine_class = None

    @classmethod
    def setUpClass(cls):
        if why := cls.engine_class.missing():
            raise unittest.SkipTest(f"engine {cls.engine_class.name}: {why}")
        cls.scratch = Path(tempfile.mkdtemp(prefix="swell-runtime-"))
        cls.engine = cls.engine_class(cls.scratch / "data")
        try:
            cls.engine.up()
            for number, (name, image) in enumerate(images().items()):
                image.write(cls.scratch / str(number))
                cls.engine.load(cls.scratch / str(number), name)
            cls.engine.seccomp("no-mkdir.json", NO_MKDIR)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.engine.down()
        shutil.rmtree(cls.scratch, ignore_errors=True)

    def pod(self, case):
        return Pod(case, self.engine.kubeconfig, self.engine.wants.get(case.name))

    def test_every_case(self):
        names = [name for name in os.environ.get("SWELL_CASES", "").split(",") if name]
        played = [case for case in CASES if not names or case.name in names]
        self.assertEqual(len({case.name for case in played}), len(names or CASES), "names of cases")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = pool.map(lambda case: (case, self.pod(case).play()), played)
            for case, wrong in results:
                with self.subTest(case=case.name):
                    if why := self.engine.differs.get(case.name):
                        self.skipTest(why)
                    self.assertFalse(wrong, wrong)

    def test_nvidia_smi_says_the_same_of_a_node_and_in_its_pods(self):
        case = Case("virtual_gpu", "while :; do :; done", container={
            "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "200m"}}})
        pod = Pod(case, self.engine.kubeconfig)
        self.addCleanup(pod.remove)
        pod.create()

        def smi(*words):
            return engines.must(run(engines.SWELL, "nvidia-smi", "--kubeconfig", self.engine.kubeconfig, *words))

        def busy():
            figures = smi("--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits").splitlines()
            return {uuid: int(percent) for uuid, percent in (line.split(", ") for line in figures)}

        pod.comes(lambda: pod.run("nvidia-smi", "-L").returncode == 0, "its start")
        uuid = pod.run("nvidia-smi", "-L").stdout.partition("UUID: ")[2].strip(")\n")
        pod.comes(lambda: busy().get(uuid, 0) > 50, "its utilization")
        self.assertEqual(sorted(busy().values())[0], 0, "the other GPU is idle")
        self.assertIn(f"default/{pod.name}/main", smi())
        programs = smi("--query-compute-apps=gpu_uuid,process_name", "--format=csv,noheader")
        self.assertEqual(programs, f"{uuid}, default/{pod.name}/main\n")
        wrong = run(engines.SWELL, "nvidia-smi", "--kubeconfig", self.engine.kubeconfig, "--query-gpu=foo",
                    "--format=csv")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, 'Field "foo" is not a valid field to query.\n'))


for _engine in engines.chosen():
    _name = f"Runtime_{_engine.name}"
    globals()[_name] = type(_name, (Table, unittest.TestCase), {"engine_class": _engine})


if __name__ == "__main__":
    unittest.main()
