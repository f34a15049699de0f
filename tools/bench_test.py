"""Tests of tools/bench and its modules: every name resolves, and every part that needs no real cluster runs.

Clusters and the measured programs are replaced by stand-ins that answer at once, so the figures mean nothing here.
"""

import ast
import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import symtable
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))


def load(path):
    """The module in `path`, which needs no .py at its end."""
    name = path.stem if path.suffix else path.name + "_driver"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


PATHS = sorted(path for path in TOOLS.glob("bench*") if path.is_file() and path.stem != "bench_test")
MODULES = {path.stem: load(path) for path in PATHS}
bench, bench_kubernetes = MODULES["bench"], MODULES["bench_kubernetes"]


def unknown_names(text, module):
    """Names that a function reads as globals and that neither the module nor Python has."""
    unknown, tables = set(), [symtable.symtable(text, module.__name__, "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() and not hasattr(module, symbol.get_name()) \
                    and not hasattr(builtins, symbol.get_name()):
                unknown.add(symbol.get_name())
    return unknown


def unknown_attributes(text, module):
    """Attributes of imported modules that they do not have: json.dunps, http.client without its import."""
    tree = ast.parse(text)
    imported = {(alias.asname or alias.name).split(".")[0] for node in ast.walk(tree)
                if isinstance(node, ast.Import) for alias in node.names}
    unknown = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            if not hasattr(getattr(module, node.value.id), node.attr):
                unknown.add(f"{node.value.id}.{node.attr}")
    return unknown


class Names(unittest.TestCase):
    def test_every_name_resolves(self):
        for path in PATHS:
            with self.subTest(path=path.name):
                text, module = path.read_text(), MODULES[path.stem]
                self.assertEqual(unknown_names(text, module) | unknown_attributes(text, module), set())

    def test_a_missing_import_is_found(self):
        text = "import json\n\ndef f(x):\n    y = json.dunps(x)\n    return http.client.HTTPConnection(y)\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "example.py"
            path.write_text(text)
            module = load(path)
        self.assertEqual(unknown_names(text, module), {"http"})
        self.assertEqual(unknown_attributes(text, module), {"json.dunps"})


class Figures(dict):
    def __missing__(self, name):
        return 1.0


class FakeCluster:
    """Answers as a cluster or a control plane does, without one."""

    def __init__(self, *flags, data=None):
        self.data = data or tempfile.gettempdir()
        self.kubeconfig, self.start_ms = "kubeconfig", 1.0

    def load(self, *words):
        return Figures()

    def get(self, path):
        return {"metadata": {"remainingItemCount": 49_999}}

    def rss_mb(self):
        return 1.0

    def restart_seconds(self):
        return 20.0

    def namespace(self, name):
        pass

    stop = kill = lambda self: None


# Two programs in one: `swell job-master` answers each request with {}, the load prints its figures.
JOB_MASTER = """
    import http.server, sys

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *words):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[sys.argv.index("--port-file") + 1], "w") as file:
        file.write(str(server.server_port))
    server.serve_forever()
"""
MASTER_LOAD = """
    print('{"per_second": 60000.0, "p50_ms": 0.5, "p99_ms": 1.5}')
"""
# Google Benchmark: a result for each of the names that bench_scheduler reads.
SCHED_BENCH = """
    import json
    names = %r
    print(json.dumps({"benchmarks": [
        {"name": name, "run_name": name, "cpu_time": 1.0, "time_unit": "ms", "items_per_second": 1.0,
         "MiB_with_decisions": 1.0, "p50_ms": 1.0, "p99_ms": 1.0} for name in names]}))
"""
DECISIONS = """
    print('{"per_second": 1.0}')
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        self.report = bench.Report(self.folder / "build" / "bench.json", {"cpu": "none"})

    def names(self):
        return [result["name"] for result in self.report.results]

    def written(self):
        return json.loads(self.report.path.read_text())

    def test_each_figure_is_written_as_it_comes(self):
        self.assertEqual(self.written(), {"machine": {"cpu": "none"}, "results": [], "series": {}})
        self.report.add("speed", 3, "/s", 2, at_least=True)
        self.assertEqual([(one["name"], one["ok"]) for one in self.written()["results"]], [("speed", True)])
        self.report.add_series("curve", [1, 2])
        self.assertEqual(self.written()["series"], {"curve": [1, 2]})
        self.assertEqual(os.listdir(self.report.path.parent), ["bench.json"])

    def test_a_part_that_cannot_be_measured_does_not_end_the_run(self):
        def measured(report, quick):
            report.add("speed", 1, "s", 2)

        def broken(report, quick):
            raise SystemExit("no such program")

        said = io.StringIO()
        with mock.patch.object(bench, "ROOT", self.folder), mock.patch.object(sys, "argv", ["bench", "--quick"]), \
                mock.patch.object(bench, "BENCHES", {"first": measured, "second": broken, "third": measured}), \
                contextlib.redirect_stdout(said):
            self.assertEqual(bench.main(), 1)
        self.assertEqual([one["name"] for one in self.written()["results"]], ["speed", "speed"])
        self.assertIn("FAIL second: no such program", said.getvalue())

    def test_job_master(self):
        program(self.folder / "swell", JOB_MASTER)
        load = program(self.folder / "swell_master_load", MASTER_LOAD)
        with mock.patch.multiple(bench, BIN=self.folder, MASTER_LOAD=load):
            bench.bench_job_master(self.report, quick=True)
        self.assertEqual([result["ok"] for result in self.report.results], [True, True])

    def test_scheduler(self):
        scheduler = MODULES["bench_scheduler"]
        text = (TOOLS / "bench_scheduler.py").read_text()
        names = re.findall(r'"(BM_\w+/[\d/]+)"', text) + ["BM_PreemptDecisions", "BM_HugeReclaim",
                                                          "BM_ReclaimManyJobs", "BM_EmptyCycle"]
        names += [f"BM_PlaceGangs/{gangs}" for gangs in ("3000/3", "9/1000", "10/5000")]
        names += [f"{name}/{nodes}" for name in scheduler.SCALED.values() for nodes in scheduler.NODES]
        program(self.folder / "src" / "sched" / "sched_bench", SCHED_BENCH % names)
        program(self.folder / "bin" / "swell_decisions", DECISIONS)
        scheduler.run(self.report, self.folder, quick=True)
        self.assertIn("an empty cycle, 4,000 nodes and 140,000 pods", self.names())
        self.assertEqual(list(self.written()["series"]), ["us for one more pod, by nodes"])

    def test_parts_that_load_a_cluster(self):
        with mock.patch.object(bench, "Cluster", FakeCluster), mock.patch("time.sleep"):
            for part in (bench.bench_start, bench.bench_api, bench.bench_recovery):
                before = len(self.report.results)
                part(self.report, quick=True)
                self.assertGreater(len(self.report.results), before, part.__name__)

    def test_fairness(self):
        with mock.patch.object(bench, "Cluster", FakeCluster), mock.patch("time.sleep"), \
                mock.patch.object(bench.subprocess, "run"), mock.patch.object(bench.subprocess, "Popen"):
            bench.bench_fairness(self.report, quick=True)
        self.assertEqual(len(self.report.results), 4)

    def test_beside_kubernetes(self):
        with mock.patch.multiple(bench_kubernetes, Cluster=FakeCluster, ControlPlane=FakeCluster,
                                 kubernetes_programs=lambda: True):
            bench_kubernetes.beside(self.report, quick=True)
        self.assertIn("start-up", self.names())

    def peers_figures(self, seconds, partial=0, idle=0, pods=500):
        peers = MODULES["bench_peers"]
        loads = ["single pods", *(f"gangs of {gang}" for gang in peers.QUICK.gangs), "reclaim"]
        return {load: peers.Figures(seconds, pods, 500, partial, idle, seconds / 10, seconds) for load in loads}

    def test_peers(self):
        peers = MODULES["bench_peers"]
        results = {"Swell": ("0.1", self.peers_figures(4), 30), "kube-scheduler": ("1.37", self.peers_figures(24), 90),
                   "quick but partial": ("1", self.peers_figures(1, partial=1), 200)}
        peers.judge(self.report, peers.QUICK, (3.9, 4), results)
        figures = {one["name"]: (one["value"], one["ok"]) for one in self.report.results}
        self.assertEqual(figures["500 single pods: of a bare client's rate"], (97.5, True))
        self.assertEqual(figures["gangs of 64: time beside single pods"], (1, True))
        # A peer that placed gangs in part is not a measure to compare with.
        self.assertEqual(figures["  faster than the best peer"], (6, True))
        self.assertEqual(figures["peak memory beside the best peer"], (0.333, False))
        line = peers.row("Swell 0.1", "single pods", results["Swell"][1]["single pods"], 30)
        self.assertEqual(len(line), len(peers.HEADER), "columns stand below their titles")

    def test_peers_that_placed_too_little_are_named_so(self):
        peers = MODULES["bench_peers"]
        results = {"Swell": ("0.1", self.peers_figures(4, partial=2, idle=3), 30),
                   "slow": ("1", self.peers_figures(900, pods=17), 90)}
        peers.judge(self.report, peers.QUICK, (4, 4), results)
        figures = {one["name"]: (one["value"], one["ok"]) for one in self.report.results}
        self.assertNotIn("  faster than the best peer", figures)
        self.assertEqual(figures["gangs that were placed in part, by Swell"], (8, False))
        self.assertEqual(figures["pods that Swell preempted in vain"], (3, False))
        self.assertIn("17/500", peers.row("slow 1", "single pods", results["slow"][1]["single pods"], 90))

    def test_gangs_of_peers_are_whole(self):
        peers, systems = MODULES["bench_peers"], MODULES["bench_peer_systems"]
        for peer in (systems.Swell(), systems.KubeScheduler(), systems.Volcano(), systems.Kai()):
            (path, group), *members = peer.gang("g", 3, "low")
            self.assertEqual(path, peer.groups)
            spec = group["spec"]
            least = spec.get("podSets", [spec.get("schedulingPolicy", {}).get("gang", spec)])[0]
            self.assertEqual(least.get("minMember", least.get("minCount")), 3)
            self.assertEqual(spec["priorityClassName"], "low")
            self.assertEqual([one["metadata"]["name"] for _, one in members], ["g-0", "g-1", "g-2"])
            self.assertEqual({peers.gang_of(one["metadata"]["name"]) for _, one in members}, {"g"})
            self.assertEqual({one["spec"]["schedulerName"] for _, one in members}, {peer.scheduler})

    def test_a_gang_of_kueue_is_a_job_in_its_queue(self):
        peers, systems = MODULES["bench_peers"], MODULES["bench_peer_systems"]
        [(path, job)] = systems.Kueue().gang("g", 3, "low")
        self.assertTrue(path.endswith("/jobs"), path)
        self.assertEqual((job["spec"]["parallelism"], job["spec"]["completions"], job["spec"]["suspend"]), (3, 3, True))
        self.assertEqual(job["spec"]["template"]["spec"]["priorityClassName"], "low")
        self.assertEqual(peers.gang_of(f"{job['metadata']['name']}-x7k2p"), "g")

    def test_a_peer_without_its_programs_is_left_out(self):
        systems = MODULES["bench_peer_systems"]
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"PEERS_BIN_DIR": folder}):
            self.assertEqual(systems.Kueue().missing, "PEERS_BIN_DIR has no program kueue")
            self.assertEqual(systems.Volcano().missing,
                             "PEERS_BIN_DIR/volcano has no vc-controller-manager, vc-scheduler, crds, version")
            home = Path(folder, "volcano")
            (home / "crds").mkdir(parents=True)
            for name in ("version", *systems.Volcano.commands):
                (home / name).touch(mode=0o755)
            self.assertEqual(systems.Volcano().missing, "")

    def test_stalls_of_an_elastic_job(self):
        elastic = MODULES["bench_elastic"]
        steps = [(0.0, 1, 4), (1.0, 2, 4), (2.0, 3, 4), (5.5, 4, 2), (6.5, 4, 2)]
        self.assertEqual(elastic.stalls(steps), [(4, 2, 2.5)])
        self.assertEqual(elastic.lost(steps), 1)

    def test_growth_of_a_soak(self):
        grown = [{"files": count} for count in (9, 1, 5, 3, 4, 6, 7, 8)]
        self.assertEqual(MODULES["bench_soak"]._growth(grown, "files"), 3)


if __name__ == "__main__":
    unittest.main()
