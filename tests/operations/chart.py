"""Renders the chart without Helm: the few things its templates use, and an error for anything else."""

import json
import re

import yaml

ACTION = re.compile(r"(\{\{-?)(.*?)(-?\}\})", re.DOTALL)
DEFINED = re.compile(r'\{\{- define "(.*?)" -\}\}(.*?)\{\{- end \}\}', re.DOTALL)


class Template:
    def __init__(self, text, scope):
        self.scope = scope
        self.tokens = []
        position = 0
        strip_next = False
        for match in ACTION.finditer(text):
            before = text[position:match.start()]
            before = before.lstrip() if strip_next else before
            self.tokens.append(("text", before.rstrip() if match.group(1) == "{{-" else before))
            self.tokens.append(("action", match.group(2).strip()))
            strip_next = match.group(3) == "-}}"
            position = match.end()
        rest = text[position:]
        self.tokens.append(("text", rest.lstrip() if strip_next else rest))

    def render(self):
        text, at = self.block(0, self.scope)
        if at != len(self.tokens):
            raise ValueError(f"unexpected {self.tokens[at]}")
        return text

    def block(self, at, scope):
        """Up to the end, or the `end` or `else` that closes it."""
        out = []
        while at < len(self.tokens):
            kind, text = self.tokens[at]
            if kind == "text":
                out.append(text)
                at += 1
            elif text in ("end", "else"):
                break
            elif text.startswith("if "):
                yes, at = self.block(at + 1, scope)
                no = ""
                if self.tokens[at][1] == "else":
                    no, at = self.block(at + 1, scope)
                out.append(yes if self.value(text[3:], scope) else no)
                at += 1
            elif text.startswith("range "):
                end = at
                for item in self.value(text[6:], scope):
                    body, end = self.block(at + 1, dict(scope, **{"": item}))
                    out.append(body)
                if end == at:
                    _, end = self.block(at + 1, dict(scope, **{"": ""}))
                at = end + 1
            else:
                out.append(str(self.value(text, scope)))
                at += 1
        return "".join(out), at

    def value(self, expression, scope):
        parts = [part.strip() for part in expression.split("|")]
        value = self.term(parts[0], scope)
        for part in parts[1:]:
            name, *arguments = part.split()
            value = self.function(name, value, [self.term(a, scope) for a in arguments])
        return value

    def function(self, name, value, arguments):
        if name == "default":
            return value or arguments[0]
        if name == "quote":
            return json.dumps(str(value))
        if name == "replace":
            return str(value).replace(*arguments)
        if name in ("indent", "nindent"):
            lines = str(value).rstrip("\n").split("\n")
            text = "\n".join(" " * arguments[0] + line if line else line for line in lines)
            return ("\n" if name == "nindent" else "") + text
        raise ValueError(f"function {name}")

    def term(self, text, scope):
        if re.fullmatch(r"\d+", text):
            return int(text)
        if text.startswith('"'):
            return json.loads(text)
        if text.startswith("toYaml "):
            return yaml.safe_dump(self.term(text[7:], scope), default_flow_style=False)
        if found := re.fullmatch(r'include "(.*)" \.', text):
            return Template(scope["Defined"][found.group(1)].strip(), scope).render()
        if found := re.fullmatch(r'printf ("[^"]*") (.*)', text):
            return json.loads(found.group(1)) % tuple(self.term(word, scope) for word in found.group(2).split())
        if found := re.fullmatch(r'\.Capabilities\.APIVersions\.Has "(.*)"', text):
            return found.group(1) in scope["Capabilities"]
        if found := re.fullmatch(r'\.Files\.Get "(.*)"', text):
            return (scope["Root"] / found.group(1)).read_text()
        if found := re.fullmatch(r'\(\.Files\.Glob "(.*)"\)\.AsConfig', text):
            files = {path.name: path.read_text() for path in sorted(scope["Root"].glob(found.group(1)))}
            return yaml.safe_dump(files)
        if text == ".":
            return scope[""]
        if not re.fullmatch(r"(\.\w+)+", text):
            raise ValueError(f"term {text}")
        value = scope
        for step in text[1:].split("."):
            value = value[step]
        return value


def render(root, values, namespace, apis=("policy/v1",)):
    """The objects of the chart at `root`."""
    about = yaml.safe_load((root / "Chart.yaml").read_text())
    scope = {"Values": values, "Release": {"Namespace": namespace, "Name": "swell", "Service": "Helm"}, "Root": root,
             "Capabilities": set(apis), "Chart": {name[0].upper() + name[1:]: value for name, value in about.items()},
             "Defined": dict(DEFINED.findall((root / "templates" / "_helpers.tpl").read_text()))}
    found = []
    for path in sorted((root / "templates").rglob("*.yaml")):
        found += [d for d in yaml.safe_load_all(Template(path.read_text(), scope).render()) if d]
    return found
