"""Tests of tidy.py: each rule on the smallest tree that breaks it."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402: the path has to be set first

HEADER = "// What it is.\n// - Threads: one.\n#pragma once\n"


def breaches(files):
    """The `file:line rule` of every breach in a tree of these files. Trees without a README need none."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        found = tidy.Tidy(root).run()
    with_readme = any(path.endswith("README.md") for path in files)
    return [f"{path}:{line} {rule}" for path, line, rule, _ in found if rule != "readme" or with_readme]


def source(layer, text, **more):
    """A tree with one listed source file in a layer."""
    tree = {f"src/{layer}/a.cc": text, f"src/{layer}/CMakeLists.txt": "add_component(SRCS a.cc)\n"}
    tree.update(more)
    return tree


class Readers(unittest.TestCase):
    def test_a_phase_is_read_by_its_reader(self):
        text = 'auto phase =\n    json::GetString(*record.pod(), {"status", "phase"}, "none");\n'
        self.assertEqual(breaches(source("kube/node", text)), ["src/kube/node/a.cc:2 reader"])
        self.assertEqual(breaches(source("kube/api", text)), [])
        self.assertEqual(breaches(source("kube/node", 'json::Set(pod, {"status", "phase"}, "Failed");\n')), [])


class Layers(unittest.TestCase):
    def test_arrows_only_go_up(self):
        self.assertEqual(
            breaches(source("kube/store", '#include "json/value.h"\n#include "sched/cycle.h"\n')),
            ["src/kube/store/a.cc:2 layer"],
        )

    def test_within_a_layer_too(self):
        cmake = "add_component(SRCS tls/a.cc http/a.cc net.cc)\n"
        tree = {
            "src/net/CMakeLists.txt": cmake,
            "src/kube/net/tls/a.cc": '#include "kube/net/reactor/reactor.h"\n'
                                     '#include "kube/net/http/http.h"\n#include "kube/net/net.h"\n',
            "src/kube/net/http/a.cc": '#include "kube/net/tls/tls.h"\n',
            "src/kube/net/net.cc": '#include "kube/net/http/http.h"\n',
            "src/kube/net/tls/a_test.cc": '#include "kube/net/http/http.h"\n',
        }
        found = breaches(tree)
        self.assertIn("src/kube/net/tls/a.cc:2 folder", found)
        self.assertIn("src/kube/net/tls/a.cc:3 folder", found)
        self.assertEqual(len([row for row in found if row.endswith(" folder")]), 2)

    def test_within_a_folder_too(self):
        tree = {
            "src/kube/process/CMakeLists.txt": "add_component(SRCS shim/a.cc process.cc)\n",
            "src/kube/process/shim/a.cc": '#include "kube/net/http/http.h"\n#include "kube/process/streams/a.h"\n',
            "src/kube/process/process.cc": '#include "kube/process/shim/a.h"\n',
        }
        self.assertEqual(breaches(tree), ["src/kube/process/shim/a.cc:2 folder"])

    def test_allowances_are_transitive(self):
        self.assertEqual(breaches(source("kube/node", '#include "base/status.h"\n')), [])

    def test_the_simulator_does_without_the_network(self):
        self.assertEqual(
            breaches(source("sim", '#include "kube/node/agent.h"\n#include "kube/net/server.h"\n')),
            ["src/sim/a.cc:2 layer"],
        )

    def test_tests_may_use_what_cmake_gives_them(self):
        tree = {
            "src/json/CMakeLists.txt": "add_component(NAME json TESTS a_test.cc TEST_DEPS api)",
            "src/json/a_test.cc": '#include "kube/api/meta/meta.h"\n#include "kube/store/store.h"\n',
        }
        self.assertEqual(breaches(tree), ["src/json/a_test.cc:2 layer"])

    def test_cmake_follows_the_table(self):
        tree = {"src/sched/CMakeLists.txt": "add_component(NAME sched\n  DEPS base api\n  LIBS x)"}
        self.assertEqual(breaches(tree), ["src/sched/CMakeLists.txt:2 layer"])

    def test_unknown_layer(self):
        self.assertEqual(breaches(source("misc", "")), ["src/misc/a.cc:1 layer"])

    def test_paths_start_at_src(self):
        self.assertEqual(breaches(source("base", '#include "a.h"\n')), ["src/base/a.cc:1 include"])

    def test_a_folder_is_a_namespace(self):
        for layer, name in (("kube/edge", "swell::edge"), ("cli", "swell::cli::slurm"), ("bin", "swell")):
            with self.subTest(layer):
                self.assertEqual(breaches(source(layer, f"namespace {name} {{\n}}\n")), [])
        for layer, name in (("kube/process", "swell::edge"), ("ops", "swell"), ("base", "swell::base")):
            with self.subTest(layer):
                self.assertEqual(breaches(source(layer, f"\nnamespace {name} {{\n}}\n")),
                                 [f"src/{layer}/a.cc:2 namespace"])

    def test_what_another_layer_has_may_be_declared_there(self):
        text = "namespace swell::net {\nclass Reactor;\n}\nnamespace swell::edge {\n}\n"
        self.assertEqual(breaches(source("kube/edge", text)), [])

    def test_only_net_includes_the_network(self):
        text = "#include <boost/asio/ip/tcp.hpp>\n#include <openssl/ssl.h>\n"
        self.assertEqual(breaches(source("kube/net", text)), [])
        self.assertEqual(
            breaches(source("kube/edge", text)), ["src/kube/edge/a.cc:1 network", "src/kube/edge/a.cc:2 network"]
        )


class Headers(unittest.TestCase):
    def header(self, text, layer="base"):
        return breaches(source(layer, f'#include "{layer}/a.h"\n', **{f"src/{layer}/a.h": text}))

    def test_good(self):
        self.assertEqual(self.header(HEADER + "\n#include <string>\n"), [])

    def test_wants_a_comment(self):
        self.assertEqual(self.header("#pragma once\n"), ["src/base/a.h:1 header", "src/base/a.h:1 threads"])

    def test_wants_pragma_once_before_code(self):
        text = "// What it is.\n// - Threads: any.\n\n#include <string>\n"
        self.assertEqual(self.header(text), ["src/base/a.h:4 header"])

    def test_names_files_that_are_there(self):
        text = "// As base/a.h and a.cc say, not as b.h; foo_test.cc is any.\n// - Threads: one.\n#pragma once\n"
        self.assertEqual(self.header(text), ["src/base/a.h:1 name"])

    def test_says_which_thread_may_use_it(self):
        self.assertEqual(self.header("// What it is.\n#pragma once\n"), ["src/base/a.h:1 threads"])

    def test_says_so_in_one_form(self):
        self.assertEqual(self.header("// What it is. Thread-safety: none.\n#pragma once\n"), ["src/base/a.h:1 head"])

    def test_heavy_headers_stay_out(self):
        for name in ("<regex>", "<iostream>", "<spdlog/spdlog.h>", "<sqlite3.h>", "<fmt/core.h>"):
            text = f"{HEADER}#include {name}\n"
            self.assertEqual(self.header(text), ["src/base/a.h:4 heavy-header"], name)

    def test_the_json_library_comes_through_its_wrapper(self):
        text = f"{HEADER}#include <boost/json.hpp>\n"
        self.assertEqual(self.header(text, "json"), [])
        self.assertEqual(self.header(text, "kube/api"), ["src/kube/api/a.h:4 heavy-header"])
        self.assertEqual(self.header(f"{HEADER}#include <boost/json/fwd.hpp>\n", "kube/api"), [])

    def test_nobody_includes_it(self):
        tree = source("base", "", **{"src/base/a.h": HEADER})
        self.assertEqual(breaches(tree), ["src/base/a.h:1 dead"])


class Identifiers(unittest.TestCase):
    def test_real_time_is_banned_in_pure_layers(self):
        text = "auto t = std::chrono::steady_clock::now();\nint r = rand();\nsleep_for(1ms);\n"
        self.assertEqual(
            breaches(source("sched", text)), [f"src/sched/a.cc:{n} banned" for n in (1, 2, 3)]
        )
        self.assertEqual(breaches(source("kube/edge", text)), [])

    def test_words_and_longer_names_are_not_code(self):
        text = '// system_clock::now\nauto s = "rand()";\nint operand(int x);\nlong n = 1\'000;\n'
        self.assertEqual(breaches(source("sched", text)), [])

    def test_dialect(self):
        text = "auto v = std::views::all(x);\nstd::expected<int, int> e;\nthrow 1;\n"
        self.assertEqual(
            breaches(source("kube/edge", text)), [f"src/kube/edge/a.cc:{n} banned" for n in (1, 2, 3)]
        )

    def test_unannotated_mutex(self):
        self.assertEqual(breaches(source("kube/edge", "std::mutex m;\n")), ["src/kube/edge/a.cc:1 banned"])
        self.assertEqual(breaches(source("base", "std::mutex m;\n")), [])


class Text(unittest.TestCase):
    def test_unfinished(self):
        self.assertEqual(breaches({"docs/a.md": "x\nTO" "DO: y\n"}), ["docs/a.md:2 unfinished"])
        self.assertEqual(breaches({"docs/HACKING.md": "mktemp XXXXXX, HACKING\n"}), [])

    def test_machine_path(self):
        bad = "see /wo" "rk/main/x\n"
        self.assertEqual(breaches({"docs/a.md": bad}), ["docs/a.md:1 machine-path"])
        self.assertEqual(breaches({"docs/a.md": "/workspace $X/wo" "rk kube/api/wo" "rk\n"}), [])

    def test_private_registry(self):
        lock = '"resolved": "https://registry.npmjs.org/a"\n"resolved": "https://u:p@box.example/a"\n'
        self.assertEqual(
            breaches({"src/web/package-lock.json": lock}), ["src/web/package-lock.json:2 registry"]
        )

    def test_width(self):
        wide = "// " + "x" * 98 + "\n"
        self.assertEqual(breaches(source("base", wide)), ["src/base/a.cc:1 width"])
        self.assertEqual(breaches(source("base", "// https://" + "x" * 98 + "\n")), [])
        self.assertEqual(breaches(source("base", 'auto s = R"(\n' + "x" * 120 + '\n)";\n')), [])
        self.assertEqual(breaches({"a.py": "#" + "x" * 120 + "\n"}), ["a.py:1 width"])
        self.assertEqual(breaches({"web/a.tsx": "//" + "x" * 119 + "\n"}), ["web/a.tsx:1 width"])

    def test_suppression_needs_a_reason(self):
        word = "NOLI" "NT"
        text = f"int a;  // {word}\nint b;  // {word}(x-y)\nint c;  // {word}(x-y): since z\n"
        self.assertEqual(
            breaches(source("base", text)),
            ["src/base/a.cc:1 suppression", "src/base/a.cc:2 suppression"],
        )

    def test_python_compiles(self):
        self.assertEqual(breaches({"a.py": "x = 1\ndef f(:\n"}), ["a.py:2 python"])


class Prose(unittest.TestCase):
    def test_riddles_are_refused_in_comments_texts_and_documents(self):
        for text in ("// Whoever waits is served first.", "// Of a node, its name.", "// The queue; null: none.",
                     "// The job goes on.", 'Say("the pod looks again later");',
                     "// A watch is no list.", 'Say("these are no jobs");'):
            self.assertEqual(breaches(source("base", text + "\n")), ["src/base/a.cc:1 prose"], text)
        self.assertEqual(breaches({"docs/a.md": "- Who asks for much waits.\n"}), ["docs/a.md:1 prose"])
        for line in ("  name string: Of a pod.", "type Lease: Whom it is for."):
            self.assertEqual(breaches({"src/kube/api/schemas/core_v1.txt": line + "\n"}),
                             ["src/kube/api/schemas/core_v1.txt:1 prose"], line)

    def test_comments_and_docstrings_of_scripts_and_pages_are_read(self):
        for path, text in (("sdk/a.py", '"""Waits.\n\nWhoever waits is served.\n"""\nx = 1\n'),
                           ("tests/a", "#!/bin/sh\n\n# It goes on.\n"),
                           ("web/src/a.tsx", "\n\nf(); // a frame that is no JSON\n"),
                           ("deploy/a.yaml", "a: 1\n\nb: 2  # whoever comes\n")):
            self.assertEqual(breaches({path: text}), [f"{path}:3 prose"], path)
        for path, text in (("sdk/a.py", 'x = "# whoever"\ny = """\nwhoever\n"""\nz = 1  # None if there is none.\n'),
                           ("tests/a", "#!/bin/sh\necho whoever\n"),
                           ("web/src/a.ts", "f('whoever');\n"),
                           ("deploy/a.yaml", "a: whoever\n")):
            self.assertEqual(breaches({path: text}), [], path)

    def test_plain_sentences_code_and_past_decisions_pass(self):
        for text in ("// Clients that wait are served first.", "// The name of a node, or null.",
                     "int whoever = 0;", "// Who may write? The owner.",
                     "// There is no list.", "// The watch is no longer open.", "// Four at most: they are no more."):
            self.assertEqual(breaches(source("base", text + "\n")), [], text)
        self.assertEqual(breaches({"docs/adr/0001-a.md": "Whoever waits.\n", "docs/b.md": "`whoever` is refused\n"}),
                         [])


class Tree(unittest.TestCase):
    def test_every_source_is_built(self):
        tree = source("base", "", **{"src/base/b_test.cc": ""})
        self.assertEqual(breaches(tree), ["src/base/b_test.cc:1 unlisted"])

    def test_commented_out_is_not_listed(self):
        tree = {"src/base/a.cc": "", "src/base/CMakeLists.txt": "# a.cc\n"}
        self.assertEqual(breaches(tree), ["src/base/a.cc:1 unlisted"])

    def test_listed_from_above(self):
        self.assertEqual(breaches({"tests/sim/a.cc": "", "tests/CMakeLists.txt": "x(sim/a.cc)"}), [])


class Readmes(unittest.TestCase):
    def said(self, readme, *names):
        """What the README of json lacks of these files."""
        tree = {f"src/json/{name}": "" for name in names}
        tree["src/json/CMakeLists.txt"] = f"add_component(SRCS {' '.join(names)})\n"
        tree["src/json/README.md"] = readme
        return breaches(tree)

    def test_names_each_file_and_folder(self):
        lacks = ["src/json/README.md:1 readme"]
        self.assertEqual(self.said("# json\n\n`patch`\n", "patch.cc"), [])
        self.assertEqual(self.said("# json\n\n`patch`\n", "patch.cc", "yaml.cc"), lacks)
        self.assertEqual(self.said("# json\n\n`patch`\n", "patch.cc", "text/yaml.cc"), lacks)
        self.assertEqual(self.said("# json\n\n`patch`, `text/yaml`\n", "patch.cc", "text/print.cc"), [])
        self.assertEqual(self.said("# json\n\npatch, `repatch`, `patch_it`, `*`\n", "patch.cc"), lacks)

    def test_may_name_several_at_once(self):
        self.assertEqual(self.said("# json\n\n`yaml*`\n", "yaml.cc", "yaml_print.cc"), [])

    def test_needs_no_tests(self):
        self.assertEqual(self.said("# json\n\n`patch`\n", "patch.cc", "patch_test.cc", "fake_disk.cc"), [])

    def test_a_layer_without_one_lacks_all(self):
        tree = source("json", "", **{"README.md": "# All\n"})
        self.assertEqual(breaches(tree), ["src/json/README.md:1 readme"])

    def test_names_files_that_are_there(self):
        self.assertEqual(self.said("# json\n\n`patch.cc`, src/json/foo_job.cc\n", "patch.cc"), [])
        self.assertEqual(self.said("# json\n\n`patch.cc`, `gone.h`\n", "patch.cc"), ["src/json/README.md:3 name"])


class Lengths(unittest.TestCase):
    LONG = "void F() {\n" + "  g();\n" * 100 + "}\n"

    def test_long_function(self):
        self.assertEqual(breaches(source("base", self.LONG)), ["src/base/a.cc:1 length"])

    def test_long_file(self):
        text = "int f();\n" * 801
        self.assertEqual(breaches(source("base", text)), ["src/base/a.cc:801 length"])

    def test_ratchet_allows_what_was_there_and_no_more(self):
        def with_limit(entry):
            return breaches(source("base", self.LONG, **{tidy.RATCHET: entry + "\n"}))

        self.assertEqual(with_limit("function src/base/a.cc F 102"), [])
        self.assertEqual(with_limit("function src/base/a.cc F 101"), ["src/base/a.cc:1 length"])

    def test_ratchet_forgets_what_got_better(self):
        tree = source("base", "", **{tidy.RATCHET: "function src/base/a.cc F 102\n"})
        self.assertEqual(breaches(tree), [f"{tidy.RATCHET}:1 ratchet"])

    def names(self, text):
        return [name for name, _, _ in tidy.functions(tidy.blank(text))]

    def test_reads_functions(self):
        self.assertEqual(self.names("namespace a { int F(int x) { return x; } }"), ["F"])
        self.assertEqual(self.names("struct S : B { void G() const { if (a) { b(); } } };"), ["G"])
        self.assertEqual(self.names("A::A(int x) : B(x), c_{1}, d_(2) { e(); }"), ["A::A"])
        self.assertEqual(self.names("bool S::operator==(const S& o) const { return 1; }"),
                         ["S::operator=="])
        self.assertEqual(self.names("TEST(Store, Keeps) { { } }"), ["TEST(Store,Keeps)"])
        self.assertEqual(self.names('#define X(a) { a }\nconst int k[] = {f(1), f(2)};'), [])
        self.assertEqual(self.names("template <class T> class A { T t_{}; void F() {} };"), ["F"])
        self.assertEqual(self.names("enum class E { kA, kB };\nauto F() -> int { return 1; }"), ["F"])
        self.assertEqual(self.names("const auto& t = *new std::map<int, int>{{1, f()}};"), [])


if __name__ == "__main__":
    unittest.main()
