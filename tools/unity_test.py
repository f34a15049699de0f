"""Tests of unity.py: files share a batch exactly when they mean the same together as apart."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import unity  # noqa: E402: the path has to be set first

OWN = "namespace a {{\nnamespace {{\n\n{}\n\n}}  // namespace\n{}\n}}  // namespace a\n"


def batches(*codes, most=9):
    return unity.batches([unity.File(code) for code in codes], most)


def own(declaration, rest=""):
    return OWN.format(declaration, rest)


class Batches(unittest.TestCase):
    def test_files_that_have_nothing_to_do_with_each_other_go_together(self):
        files = own("int F(int x) { return x; }"), own("struct S {\n  int f;\n};"), "int G();"
        self.assertEqual(batches(*files), [0, 0, 0])

    def test_a_batch_has_room_for_so_many(self):
        self.assertEqual(batches(*["int G();"] * 5, most=2), [0, 0, 1, 1, 2])

    def test_what_one_keeps_to_itself_no_other_mentions(self):
        for declaration, name in (
            ("int F(int x) { return x; }", "F"),
            ("constexpr std::array<int, 2> kRows = {1, 2};", "kRows"),
            ("const std::function<void(int)> kCall;", "kCall"),
            ("[[maybe_unused]] constexpr char kText[] = \"x\";", "kText"),
            ("enum class Shape { kRound };", "Shape"),
            ("template <typename T>\nT Most(T a, T b) {\n  return a;\n}", "Most"),
            ("std::map<std::string, int> Long(const std::string& text,\n    int second) {", "Long"),
            ("using Text = std::string;", "Text"),
        ):
            with self.subTest(name):
                self.assertEqual(batches(own(declaration), f"int Use() {{ return {name}(); }}"), [0, 1])
                self.assertEqual(batches(f"int Use() {{ return {name}(); }}", own(declaration)), [0, 1])

    def test_a_file_that_clashes_leaves_its_place_to_the_next(self):
        self.assertEqual(batches(own("int F() { return 1; }"), own("int F() { return 2; }"), "int G();"), [0, 1, 0])

    def test_a_members_or_another_namespaces_name_is_no_mention(self):
        owner = own("int F() { return 1; }")
        for use in ("x.F()", "x->F()", "b::F()", "Shape::F()"):
            with self.subTest(use):
                self.assertEqual(batches(owner, own("", f"int Use() {{ return {use}; }}")), [0, 0])
        self.assertEqual(batches(owner, own("", "int Use() { return a::F(); }")), [0, 1])

    def test_what_a_header_declares_is_a_mention_in_its_namespace(self):
        unity.header.cache_clear()
        self.addCleanup(unity.header.cache_clear)
        sources, unity._SOURCES = unity._SOURCES, self.sources({
            "x/far.h": '#include "x/near.h"\n', "x/near.h": "namespace a {\n\nstruct F {};\n\n}  // namespace a\n"})
        self.addCleanup(setattr, unity, "_SOURCES", sources)
        user = '#include "x/far.h"\n'
        self.assertEqual(batches(own("int F() { return 1; }"), user + own("", "int G();")), [0, 1])
        self.assertEqual(batches(own("int F() { return 1; }"), user + "namespace b {\nint G();\n}\n"), [0, 0])

    def sources(self, headers):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        for name, text in headers.items():
            path = Path(directory.name) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Path(directory.name)

    def test_tests_are_nobodys_own(self):
        self.assertEqual(batches(own("TEST(Suite, One) {\n}"), own("TEST(Suite, Two) {\n}")), [0, 0])

    def test_what_stands_in_text_and_comments_is_no_mention(self):
        self.assertEqual(batches(own("int F() { return 1; }"), '// F\nauto x = "F" R"(F)";'), [0, 0])

    def test_what_all_may_see_is_nobodys_own(self):
        self.assertEqual(batches(own("", "int F() { return 1; }"), "int G() { return F(); }"), [0, 0])

    def test_the_same_alias_is_no_clash(self):
        self.assertEqual(batches("using std::string;\n", "using std::string;\n"), [0, 0])
        self.assertEqual(batches("namespace c = x::y;\n", "namespace c = x::z;\n"), [0, 1])

    def test_macros_and_statics_are_a_files_own(self):
        self.assertEqual(batches("#define F 1\n", "int G() { return F; }"), [0, 1])
        self.assertEqual(batches("static int F() { return 1; }\n", "int G() { return F(); }"), [0, 1])

    def test_a_directive_is_for_those_that_have_it_too(self):
        self.assertEqual(batches("using namespace std;\n", "int G();", "using namespace std;\n"), [0, 1, 0])


if __name__ == "__main__":
    unittest.main()
