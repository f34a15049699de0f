#!/usr/bin/env python3
"""The house rules that no other tool knows, as a test: docs/STYLE.md says why each is there.

Reads the whole tree in about a second and prints `file:line: rule: message` for each breach; the
exit status is 1 when there was any. Python's standard library only.

  tools/tidy.py                   check the tree this file stands in
  tools/tidy.py DIRECTORY         check another tree
  tools/tidy.py --update-ratchet  write today's overlong files and functions to the ratchet
"""

import fnmatch
import os
import re
import subprocess
import sys

# Layer -> the layers it may use directly; allowances are transitive. ARCHITECTURE.md has the table.
LAYERS = {
    "base": [],
    "json": ["base"],
    "kube/api": ["json"],
    "kube/store": ["kube/api"],
    "kube/client": ["kube/api"],
    "kube/apiserver": ["kube/store"],
    "kube/net": ["base"],
    "kube/node": ["kube/client"],
    "kube/images": ["kube/net", "json"],
    "kube/process": ["kube/images", "kube/net", "kube/node"],
    "kube/edge": ["kube/net", "kube/apiserver", "kube/client", "kube/node"],
    "kube/cri": ["kube/process", "kube/edge"],
    "kube/controllers": ["kube/client"],
    "goodput": ["base"],
    "sched": ["goodput"],
    "lab": ["json", "sched"],
    "elastic": ["base", "json"],
    "sched_inputs": ["kube/controllers", "sched"],
    "autoscaling": ["sched_inputs", "elastic"],
    "jobs": ["autoscaling"],
    "scheduling": ["jobs"],
    "projects": ["scheduling"],
    "manager": ["projects"],
    "sim": ["kube/apiserver", "kube/node", "manager"],
    "cli": ["kube/client", "kube/edge"],
    "ui": ["cli", "kube/controllers"],
}
LAYERS["ops"] = [layer for layer in LAYERS if layer != "sim"]
LAYERS["bin"] = list(LAYERS)

# Layer or folder -> its folders: each may use those before it. What lies beside them is "."; where that is not in
# the list it may use all of them.
FOLDERS = {
    "kube/api": ["rest", "meta", "schema", "patch", "openapi", "cel", "crd", "objects", "validate"],
    "kube/apiserver": ["request", ".", "webhooks", "print", "access", "fields", "admission", "reading", "writing",
                       "pods", "kinds", "request_filters", "server"],
    "kube/controllers": [".", "cluster", "workloads"],
    "kube/edge": ["http", "cluster", "streams", "kubelet", "webhook"],
    "kube/net": ["reactor", "tls", "connection", "http", "framing"],
    "kube/node": ["runtime", "spec", "devices", "network", "health", "pod"],
    "kube/process": ["shim", "files", "background", "network", "streams", "machine"],
    "jobs": ["kinds", "gpus", "pass", "decisions", "progress", "crons"],
    "lab": ["trace", "model", ".", "policies"],
    "sched": ["state", "queues", "placement", "cycle", "record", "victims", "actions"],
    "cli": [".", "print", "views", "setup", "access", "pods", "objects", "projects", "nodes", "jobs", "top", "arena",
            "runai", "elasticdl", "slurm"],
    "ops": [".", "nodes", "cluster", "access", "backup", "cycles", "install", "pages", "options", "lab"],
    "ui": ["requests", "state", "views", "history", "commands", "programs"],
}

# Where the real clock, real randomness and blocking are allowed: the plugs and their wiring.
REAL_WORLD = {"base", "kube/net", "kube/images", "kube/process", "kube/edge", "kube/cri", "ops", "bin"}

# What a header says of threads, in its comments. With macros, plain values and what tests use it goes without saying.
THREADS = re.compile(r"//.*(?:[Tt]hread|[Ee]xecutor|[Pp]ure function|[Pp]lain value)")
NO_THREADS = re.compile(r"src/base/(?:check|result)\.h$|_(?:test_util|testing|fixture)\.h$|/test_\w+\.h$")

# Words that only their author understood, and sentence forms that are read twice (docs/GLOSSARY.md has what to write
# instead). They are looked for in comments and documents.
PRIVATE_WORDS = [
    (re.compile(r"\b(?:askers?|tellers?|wish(?:es)?|backstage|homonyms?|intake|latecomers?|farewell|foresight)\b",
                re.I),
     "a private word"),
    (re.compile(r"(?<!there )\b(?:is|are|was|were) none\b(?! of| left| the)|\bnull: (?:no|none)\b"
                r"|\bthat there (?:is|are) not\b"),
     "say that it does not exist"),
    (re.compile(r"\b(?:[Tt]hose|[Tt]hat|him|them|[Aa]nybody|everybody) who\b|\b[Ww]hoever\b"),
     "name the user, client or pod"),
    (re.compile(r"(?:^|[.!?:] )(?:Who|For whom|Whom|Whose|What of|Of (?!course))\b(?![^.?]*\?)"),
     "begin the sentence with its subject"),
    (re.compile(r"\b(?:goes|went|go) on(?! to\b)(?=[ ,.;:])"), "write continues"),
    (re.compile(r"\blooks? (?:again|once more)\b"), "write retries, polls or reads again"),
    (re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|later|sooner)", re.I),
     "write: is not a ..."),
]

# What the README of a layer says in code: names of files and folders, `lab_*` for several.
CODE_SPAN = re.compile(r"`([^`\n]+)`")
README_NAME = re.compile(r"[\w*][\w*/.-]*")
# Tests and what they share need no line in a README.
FOR_TESTS = re.compile(r"_(?:test|test_util|testing|fixture|bench|fuzz)\.(?:cc|h)$|/(?:test|fake)_\w+\.(?:cc|h)$")

# A source file of ours that a comment or a document names; foo.cc stands for any.
NAMED_SOURCE = re.compile(r"(?<![\w/<.*])((?:[a-z_0-9]+/)*(?!foo\b|foo_)[a-z_0-9]+\.(?:h|cc))\b")

COLUMNS_CPP = 100
COLUMNS_SCRIPTS = 120  # Python, shell and the pages: one statement a line matters more than the width
FILE_LINES = 800
FUNCTION_LINES = 100
RATCHET = "tools/tidy-ratchet.txt"

# Written so that this file does not break its own rules.
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~$}-])/wo" r"rk/(?:main|shared)\b")
SUPPRESSION = re.compile(r"NOLI" r"NT(?:NEXTLINE|BEGIN|END)?(?P<tail>.*)")

NETWORK_INCLUDE = re.compile(r"<(?:boost/(?:asio|beast)|openssl/)")
HEAVY_INCLUDE = re.compile(
    r"<(?:boost/(?:asio|beast)|openssl/|spdlog|fmt/|sqlite3|yaml-cpp|CLI/"
    r"|(?:regex|ranges|iostream)>)"
)
# What kube/api reads for everybody.
PHASE_READ = re.compile(r'\bGet\w*\([^;]*?\{"status", "phase"\}')
FULL_JSON_INCLUDE = re.compile(r"<boost/json(?!/fwd\.hpp)")

# What the deterministic layers must get through their constructors instead.
BANNED_IN_PURE_LAYERS = [
    (r"\bsleep_(?:for|until)\b|\bu?sleep\s*\(|\bnanosleep\b", "blocks; post to the Executor"),
    (r"\b(?:system|steady|high_resolution)_clock\s*::\s*now\b", "real time; take a Clock&"),
    (r"\b(?:gettimeofday|clock_gettime)\b|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)",
     "real time; take a Clock&"),
    (r"\bs?rand\s*\(|\brandom_device\b|\bmt19937", "ambient randomness; take a Random&"),
]
# What GCC 12 lacks, clang 14 cannot parse, or the house does without.
BANNED_EVERYWHERE = [
    (r"\bstd\s*::\s*(?:ranges\s*::\s*)?views\b", "clang 14 cannot parse it; write a loop"),
    (r"\bstd\s*::\s*source_location\b", "clang 14 cannot parse it; use __builtin_FILE()"),
    (r"\bstd\s*::\s*(?:expected|unexpected)\b", "C++23; use Result"),
    (r"\bstd\s*::\s*format\b", "GCC 12 lacks it"),
    (r"\bco_(?:await|return|yield)\b", "no coroutines; see docs/adr/0001"),
    (r"\bthrow\b(?!\s*\()", "no exceptions of our own; return a Status"),
]
BANNED_MUTEX = (
    r"\bstd\s*::\s*(?:mutex|lock_guard|unique_lock|scoped_lock|condition_variable)\b",
    "clang cannot check it; use Mutex of base/mutex.h",
)

# Files in which package managers write down where they download from, and the hosts that
# everybody can reach.
LOCK_FILES = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|\.npmrc"
    r"|pip\.conf|requirements[\w.-]*\.txt|go\.sum|Cargo\.lock|Dockerfile[\w.-]*)$"
)
PUBLIC_HOSTS = {
    "registry.npmjs.org", "pypi.org", "files.pythonhosted.org", "github.com", "deb.debian.org",
    "proxy.golang.org", "opencollective.com",
}
HOST = re.compile(r"https?://(?:[^/@\s\"']*@)?([\w.-]+)")

CPP = (".cc", ".h")
SCRIPTS = (".py", ".sh")
PAGES = (".ts", ".tsx", ".mjs", ".css")
NOT_OURS = ("third_party/",)


def read(root, path):
    """The text of a file, or None where it is not text."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
    except (UnicodeDecodeError, OSError):
        return None
    return None if "\0" in text else text


def list_files(root):
    """All files that git knows or would add; without git, all but what builds leave."""
    try:
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout.decode()
        files = [f for f in out.split("\0") if f]
    except (OSError, subprocess.CalledProcessError):
        files = []
        for folder, folders, names in os.walk(root):
            folders[:] = [d for d in folders if d not in (".git", "build", "node_modules")]
            files += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted({f for f in files if os.path.isfile(os.path.join(root, f))})


CPP_TOKEN = re.compile(
    r"""
      //(?:\\\n|[^\n])*                                            # line comment
    | /\*.*?\*/                                                    # block comment
    | (?:u8|u|U|L)?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"    # raw string
    | "(?:\\.|[^"\\\n])*"                                          # string
    | (?<![0-9A-Za-z_])(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+'            # character, not 1'000
    """,
    re.VERBOSE | re.DOTALL,
)


def blank(text):
    """C++ without comments and literals, every line and column where it was."""

    def spaces(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return '"' + re.sub(r"[^\n]", " ", token[1:-1]) + '"'

    return CPP_TOKEN.sub(spaces, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def layer_of(below):
    """The layer of a path below src/, or None."""
    parts = below.split("/")
    return next((l for l in ("/".join(parts[:2]), parts[0]) if l in LAYERS and l != below), None)


def layer_named(name):
    """The layer whose library is swell_<name>, or None."""
    return next((layer for layer in LAYERS if layer.split("/")[-1] == name), None)


def closure(layers):
    """Layer -> every layer it may use, itself included."""
    reach = {}

    def visit(layer):
        if layer not in reach:
            reach[layer] = {layer}
            for used in layers[layer]:
                reach[layer] |= visit(used)
        return reach[layer]

    for layer in layers:
        visit(layer)
    return reach


NOT_A_FUNCTION = re.compile(r"^(?:\s*template\s*<.*>)?\s*(?:inline\s+)?"
                            r"(?:namespace|enum|extern|union)\b", re.DOTALL)
CLASS_LIKE = re.compile(r"\b(?:class|struct)\s+(?:\w+\s*\([^()]*\)\s*)*\w+[^()=;]*$")
INITIALIZER_LIST = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")


def functions(code):
    """(name, first line, number of lines) of each function body in blanked code.

    A reader of braces, not a parser: at namespace and class level, a brace that follows a
    parameter list opens a function; braces in a constructor's initializers are passed over.
    """
    found = []
    code = re.sub(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code)
    start = 0  # of the declaration being read
    i = 0
    while i < len(code):
        c = code[i]
        if c in ";}":
            start = i + 1
        elif c == "{":
            head = code[start:i]
            before = head.rstrip()
            if INITIALIZER_LIST.search(head) and re.search(r"[\w>]$", before) and not re.search(
                r"\b(?:const|noexcept|override|final|try)$", before
            ):
                i = matching_brace(code, i) + 1
                continue
            opens_scope = NOT_A_FUNCTION.match(head) or CLASS_LIKE.search(head)
            if not opens_scope and "(" in head and not re.search(r"=\s*$", before):
                end = matching_brace(code, i)
                name_at = start + len(head) - len(head.lstrip())
                first = line_of(code, name_at)
                found.append((function_name(head), first, line_of(code, end) - first + 1))
                i = end
            elif not opens_scope:  # an initializer: pass over it, the declaration goes on
                i = matching_brace(code, i) + 1
                continue
            start = i + 1
        i += 1
    return found


def matching_brace(code, at):
    depth = 0
    for i in range(at, len(code)):
        if code[i] == "{":
            depth += 1
        elif code[i] == "}":
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def function_name(head):
    head = re.sub(r"\b(?:SWELL_\w+|alignas|__attribute__|explicit|noexcept)\s*\((?:[^()]|\([^()]*\))*\)",
                  " ", head)
    match = re.search(r"((?:[\w~]+(?:<[^<>]*>)?\s*::\s*)*(?:operator[^\w\s(]+|operator\s*\(\)|[\w~]+))"
                      r"\s*\(([^()]*)", head)
    if not match:
        return "?"
    name = re.sub(r"\s+", "", match.group(1))
    if re.match(r"(?:TEST|TEST_F|TEST_P|TYPED_TEST|BENCHMARK\w*)$", name):
        name += "(" + re.sub(r"\s+", "", match.group(2)) + ")"
    return name


SENTENCE = re.compile(r'"((?:[^"\\]|\\.)*[a-z] [a-z](?:[^"\\]|\\.)*)"')


def sentences(line):
    """What a line of C++ says to people: its comment, or the texts in its string literals."""
    code, slashes, comment = line.partition("// ")
    return comment.strip() if slashes and '"' not in code else " ".join(SENTENCE.findall(code))


# What Python says to readers: docstrings (the text begins its line) and comments; other strings are passed over.
PYTHON_PROSE = re.compile(
    r"""(?ms)(?P<begins>^[ \t]*[rR]?)?(?P<quotes>\"{3}|'{3})(?P<doc>.*?)(?P=quotes)"""
    r"""|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\#(?P<comment>[^\n]*)"""
)


def python_prose(text):
    """The docstrings and comments of Python, each on the line where it was."""
    lines = [""] * (text.count("\n") + 1)
    for match in PYTHON_PROSE.finditer(text):
        said = match.group("comment") or (match.group("doc") if match.group("begins") is not None else None)
        for number, line in enumerate((said or "").split("\n"), line_of(text, match.start()) - 1):
            lines[number] = line.strip()
    return lines


def prose_lines(path, text):
    """What a file says to readers, line by line; None where it is not checked: past decisions and data."""
    if path.startswith("docs/adr/") or path == "docs/GLOSSARY.md":
        return None
    if path.startswith("src/") and path.endswith(CPP):
        return [sentences(line) for line in text.splitlines()]
    if path.endswith((".md", "event_reasons.txt")) or path.startswith("src/kube/api/schemas/"):
        return [line.lstrip("-*|# ") for line in re.sub(r"`[^`\n]*`", "``", text).splitlines()]
    if path.endswith(".py") or re.match(r"#!.*\bpython", text):
        lines = python_prose(text)
    elif path.endswith((".ts", ".tsx", ".mjs")):
        lines = [line.partition("// ")[2] for line in text.splitlines()]
    elif text.startswith("#!") or path.endswith(".sh") or path.startswith("deploy/"):
        lines = [re.sub(r"^(?:.*\s)?#(?=\s)|^.*", "", line, count=1) for line in text.splitlines()]
    else:
        return None
    return [re.sub(r"`[^`\n]*`", "``", line).strip() for line in lines]


class Tidy:
    """One run over one tree."""

    def __init__(self, root):
        self.root = root
        self.files = list_files(root)
        self.breaches = []
        self.reach = closure(LAYERS)
        self.text = {}
        for path in self.files:
            text = read(root, path)
            if text is not None:
                self.text[path] = text
        self.cmake = {}  # CMakeLists.txt and *.cmake without comments
        for path, text in self.text.items():
            if path.endswith(("CMakeLists.txt", ".cmake")):
                self.cmake[path] = re.sub(r"#[^\n]*", "", text)
        self.sources = set()  # names that C++ files go by: b.cc, a/b.cc, src/a/b.cc
        for parts in (path.split("/") for path in self.files if path.endswith(CPP)):
            self.sources.update("/".join(parts[i:]) for i in range(len(parts)))
        self.too_long = {}  # ratchet key -> (path, line, lines)

    def breach(self, path, line, rule, message):
        self.breaches.append((path, line, rule, message))

    # -- rules over any text ------------------------------------------------------------------

    def check_text(self, path, text):
        is_script = text.startswith("#!")
        is_page = path.endswith(PAGES) and not path.startswith("web/dist/")  # dist is built
        for number, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                self.breach(path, number, "unfinished", "finish it, or open an issue and remove this")
            if MACHINE_PATH.search(line):
                self.breach(path, number, "machine-path", "a path of one machine")
            if LOCK_FILES.search(path):
                for host in HOST.findall(line):
                    if host not in PUBLIC_HOSTS:
                        self.breach(path, number, "registry", f"{host} is not public")
        if path.endswith(CPP):
            self.check_width(path, text, COLUMNS_CPP)
        elif path.endswith(SCRIPTS) or is_script or is_page:
            self.check_width(path, text, COLUMNS_SCRIPTS)
        if path.endswith(".py") or re.match(r"#!.*\bpython", text):
            try:
                compile(text, path, "exec")
            except (SyntaxError, ValueError) as e:
                self.breach(path, getattr(e, "lineno", 1) or 1, "python", str(e))
        if path.endswith(CPP + (".py",)) or is_script or is_page:
            count = text.count("\n")
            if count > FILE_LINES:
                self.too_long["file " + path] = (path, FILE_LINES + 1, count)

    def check_names(self, path, text):
        """A reader who follows a pointer to another file finds it."""
        for number, line in enumerate(text.splitlines(), 1):
            if path.endswith(CPP):
                line = "" if "#include" in line else line.partition("//")[2]
            for name in NAMED_SOURCE.findall(line):
                if name not in self.sources:
                    self.breach(path, number, "name", f"there is no {name}")

    def check_prose(self, path, text):
        """Comments and documents use the field's words and plain sentences."""
        for number, line in enumerate(prose_lines(path, text) or [], 1):
            for pattern, advice in PRIVATE_WORDS:
                match = pattern.search(line)
                if match:
                    self.breach(path, number, "prose", f"'{match.group(0).strip()}': {advice} (docs/GLOSSARY.md)")

    def check_width(self, path, text, columns):
        verbatim = set()  # lines inside raw strings: their width belongs to the data
        if path.endswith(CPP):
            for match in CPP_TOKEN.finditer(text):
                if match.group("mark") is not None:
                    first = line_of(text, match.start())
                    verbatim.update(range(first, first + match.group(0).count("\n") + 1))
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) <= columns or number in verbatim or "://" in line:
                continue
            if not re.match(r"\s*#\s*include", line):
                self.breach(path, number, "width", f"{len(line)} columns, {columns} fit")

    # -- rules over C++ -----------------------------------------------------------------------

    def check_cpp(self, path, text):
        code = blank(text)
        parts = path.split("/")
        layer = layer_of("/".join(parts[1:])) if parts[0] == "src" else None
        is_test = bool(re.search(r"_(?:test|test_util|bench|fuzz)\.(?:cc|h)$", path)) or parts[0] == "tests"
        if parts[0] == "src" and layer is None:
            self.breach(path, 1, "layer", f"src/{parts[1]} is not a layer; the table is in tools/tidy.py")
        self.check_includes(path, text, layer, is_test)
        if layer and layer != "kube/api" and not is_test:
            for match in PHASE_READ.finditer(text):
                self.breach(path, line_of(text, match.start()), "reader", "api::StatusPhase or api::Phase reads it")
        for within in FOLDERS:
            if path.startswith(f"src/{within}/") and not is_test:
                self.check_folders(path, text, within)
        self.check_identifiers(path, code, layer, is_test)
        self.check_suppressions(path, text)
        if layer:
            self.check_namespace(path, code, layer)
        if path.endswith(".h"):
            self.check_header(path, text)
        names = {}
        for name, line, count in functions(code):
            if count > FUNCTION_LINES:
                names[name] = names.get(name, 0) + 1
                suffix = f"#{names[name]}" if names[name] > 1 else ""  # overloads
                self.too_long[f"function {path} {name}{suffix}"] = (path, line, count)

    def check_includes(self, path, text, layer, is_test):
        allowed = self.reach.get(layer, set(LAYERS))
        if is_test and layer:
            allowed = allowed | self.test_layers(layer)
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))', line)
            if not match:
                continue
            own, outside = match.groups()
            if own:
                target = layer_of(own)
                if layer and "/" not in own:
                    self.breach(path, number, "include", f'say "{layer}/{own}": paths start at src/')
                elif layer and target and target not in allowed:
                    self.breach(path, number, "layer", f"{layer} may not use {target}")
                continue
            if NETWORK_INCLUDE.match(outside) and layer != "kube/net":
                self.breach(path, number, "network", f"only net includes {outside}")
            elif path.endswith(".h") and layer and HEAVY_INCLUDE.match(outside):
                if not (layer == "kube/net" and path.endswith("_internal.h")):
                    self.breach(path, number, "heavy-header", f"{outside} belongs in a .cc file")
            elif path.endswith(".h") and layer != "json" and FULL_JSON_INCLUDE.match(outside):
                self.breach(path, number, "heavy-header", "include json/value.h or boost/json/fwd.hpp")

    def check_folders(self, path, text, within):
        """Within a layer, too, arrows point one way."""
        order = FOLDERS[within]

        def place(below):
            folder = below.split("/")[0] if "/" in below else "."
            return order.index(folder) if folder in order else len(order)

        here = place(path[len(f"src/{within}/"):])
        for match in re.finditer(rf'^\s*#\s*include\s+"{within}/([^"]+)"', text, re.MULTILINE):
            if place(match.group(1)) > here:
                line = line_of(text, match.start(1))
                self.breach(path, line, "folder", f"{within}/{order[here]} may not use {within}/{match.group(1)}")

    def test_layers(self, layer):
        """What the layer's tests may use beyond the layer: CMake's TEST_DEPS, transitively."""
        text = self.cmake.get(f"src/{layer}/CMakeLists.txt", "")
        allowed = set()
        for match in re.finditer(r"\bTEST_DEPS\s+([^A-Z)]*)", text):
            for used in match.group(1).split():
                allowed |= self.reach.get(layer_named(used.removesuffix("_testing")), set())
                if used == "manager_testing":
                    allowed |= self.reach["kube/apiserver"]
        return allowed

    def check_identifiers(self, path, code, layer, is_test):
        rules = []
        if layer:
            rules += BANNED_EVERYWHERE
            if layer != "base" and not is_test:
                rules.append(BANNED_MUTEX)
        if layer and layer not in REAL_WORLD:
            rules += BANNED_IN_PURE_LAYERS
        for pattern, reason in rules:
            for match in re.finditer(pattern, code):
                word = re.sub(r"\s+", "", match.group(0))
                self.breach(path, line_of(code, match.start()), "banned", f"{word}: {reason}")

    def check_suppressions(self, path, text):
        for number, line in enumerate(text.splitlines(), 1):
            match = SUPPRESSION.search(line)
            if match and "END" not in match.group(0)[:10]:
                if not re.match(r"\([\w.,* -]+\): \S+", match.group("tail")):
                    self.breach(path, number, "suppression", "say which check and why: (check): reason")

    def check_namespace(self, path, code, layer):
        """A layer's folder is its namespace. What another layer has may be declared in that one's."""
        own = "swell" if layer in ("base", "bin") else "swell::" + layer.split("/")[-1]
        opened = list(re.finditer(r"^namespace (swell[\w:]*) \{", code, re.MULTILINE))
        if opened and not any(m.group(1) == own or own != "swell" and m.group(1).startswith(own + "::")
                              for m in opened):
            self.breach(path, line_of(code, opened[0].start()), "namespace", f"src/{layer} is {own}")

    def check_header(self, path, text):
        lines = text.splitlines()
        if not lines or not lines[0].startswith(("//", "/*")):
            self.breach(path, 1, "header", "starts with a comment: what it is, threads, ownership")
        first_code = next((i for i, l in enumerate(blank(text).splitlines(), 1) if l.strip()), 1)
        if not lines or lines[first_code - 1].strip() != "#pragma once":
            self.breach(path, first_code, "header", "#pragma once comes before all other code")
        if path.startswith("src/") and not NO_THREADS.search(path) and not THREADS.search(text):
            self.breach(path, 1, "threads", "no comment says which thread may use it (docs/STYLE.md)")
        elif path.startswith("src/") and not NO_THREADS.search(path):
            if not re.match(r"// \w[^\n]*(?:\n//[^\n]*)*?\n// - Threads: ", text):
                self.breach(path, 1, "head", "one sentence, then bullets: '// - Threads: ...' (docs/STYLE.md)")

    # -- rules over the tree ------------------------------------------------------------------

    def check_tree(self):
        included = set()
        for path, text in self.text.items():
            if path.endswith(CPP):
                included.update(re.findall(r'(?m)^\s*#\s*include\s+"([^"]+)"', text))
        for path in self.text:
            if path.endswith(".cc") and not self.listed(path):
                self.breach(path, 1, "unlisted", "no CMakeLists.txt builds it")
            elif path.endswith(".h") and path.startswith("src/"):
                if path[len("src/"):] not in included and not self.listed(path):
                    self.breach(path, 1, "dead", "nothing includes it")

    def listed(self, path):
        """Whether a CMake file in this folder or above names the file."""
        folder = os.path.dirname(path)
        while True:
            relative = os.path.relpath(path, folder or ".")
            for cmake, text in self.cmake.items():
                if os.path.dirname(cmake) == folder:
                    if re.search(r"(?<![\w./-])" + re.escape(relative) + r"(?![\w./-])", text):
                        return True
            if not folder:
                return False
            folder = os.path.dirname(folder)

    def check_cmake_layers(self):
        """add_component's DEPS follow the table, as the includes do."""
        for path, text in self.cmake.items():
            match = re.fullmatch(r"src/([\w/]+)/CMakeLists\.txt", path)
            if not match or match.group(1) not in LAYERS:
                continue
            layer = match.group(1)
            for deps in re.finditer(r"(?<![A-Z_])DEPS\s+([^A-Z)]*)", text):
                for used in deps.group(1).split():
                    if layer_named(used) and layer_named(used) not in self.reach[layer]:
                        line = line_of(text, deps.start())
                        self.breach(path, line, "layer", f"{layer} may not use {used}")

    def check_readmes(self):
        """The README of a layer names each folder of it, and each file that lies in none."""
        named = {}  # layer -> patterns
        for layer in LAYERS:
            readme = self.text.get(f"src/{layer}/README.md", "")
            words = [word for span in CODE_SPAN.findall(readme) for word in README_NAME.findall(span)]
            stems = {part for word in words for part in re.sub(r"\.(?:cc|h)$", "", word).split("/")}
            named[layer] = {stem for stem in stems if re.search(r"\w\w", stem)}
        missing = set()
        for path in self.text:
            layer = layer_of(path[len("src/"):]) if path.startswith("src/") and path.endswith(CPP) else None
            if layer is None or FOR_TESTS.search(path):
                continue
            *folders, file = path[len(f"src/{layer}/"):].split("/")
            missing.update((layer, name) for name in folders or [file.rsplit(".", 1)[0]])
        for layer, name in sorted(missing):
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in named[layer]):
                self.breach(f"src/{layer}/README.md", 1, "readme", f"says nothing of `{name}`")

    def check_ratchet(self):
        """What was too long before may stay as long as it is; it may not grow, nothing may join."""
        known = {}
        for number, line in enumerate(self.text.get(RATCHET, "").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                key, _, limit = line.rpartition(" ")
                known[key] = (int(limit), number)
        for key, (path, line, count) in sorted(self.too_long.items()):
            kind = key.split(" ")[0]
            name = key.split(" ", 2)[2] if kind == "function" else "file"
            limit = FUNCTION_LINES if kind == "function" else FILE_LINES
            if key in known:
                limit = known[key][0]
            if count > limit:
                self.breach(path, line, "length", f"{name} has {count} lines, {limit} are allowed")
        for key, (_, number) in known.items():
            if key not in self.too_long:
                self.breach(RATCHET, number, "ratchet", f"no longer too long, remove: {key}")

    def update_ratchet(self):
        head = [
            "# Files and functions that were longer than docs/STYLE.md allows when the rule met them.",
            "# They may shrink, not grow. tools/tidy.py --update-ratchet writes this file.",
        ]
        body = [f"{key} {entry[2]}" for key, entry in sorted(self.too_long.items())]
        with open(os.path.join(self.root, RATCHET), "w", encoding="utf-8") as f:
            f.write("\n".join(head + body) + "\n")

    def scan(self):
        for path, text in sorted(self.text.items()):
            if path.startswith(NOT_OURS) or path == "LICENSE":
                continue
            self.check_text(path, text)
            if path.endswith(CPP):
                self.check_cpp(path, text)
            if path.startswith("src/") and path.endswith(CPP + (".md",)) or (
                path.startswith("docs/") and "/adr/" not in path
            ):
                self.check_names(path, text)
            self.check_prose(path, text)

    def run(self):
        self.scan()
        self.check_tree()
        self.check_cmake_layers()
        self.check_readmes()
        self.check_ratchet()
        return sorted(set(self.breaches))


def main(arguments):
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    update = "--update-ratchet" in arguments
    folders = [a for a in arguments if not a.startswith("--")]
    tidy = Tidy(folders[0] if folders else here)
    if update:
        tidy.scan()
        tidy.update_ratchet()
        return 0
    breaches = tidy.run()
    for path, line, rule, message in breaches:
        print(f"{path}:{line}: {rule}: {message}")
    if breaches:
        print(f"{len(breaches)} breach(es) of the house rules (docs/STYLE.md)")
        return 1
    print(f"{len(tidy.files)} files keep the house rules")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
