"""Renders the templates in python.json again with Python's Jinja2, set up as Hugging Face's
`apply_chat_template` sets it up, and writes down what comes out (null: it refuses).

    python3 -m venv venv && venv/bin/pip install jinja2
    venv/bin/python record.py [FILE]

A file holds a list of {"template": …, "variables": {…}?, "output": …}; "file" names a template
beside it instead.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """`{% generation %}`: its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime(2025, 7, 4).strftime
    return env


def main():
    default = pathlib.Path(__file__).with_name("python.json")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    env = environment()
    cases = json.loads(path.read_text(encoding="utf-8"))
    for case in cases:
        source = case.get("template")
        if source is None:
            source = (path.parent / case["file"]).read_text(encoding="utf-8")
        try:
            template = env.from_string(source)
            case["output"] = template.render(**case.get("variables", {}))
        except Exception:  # Whatever it is: the template is refused.
            case["output"] = None
    text = json.dumps(cases, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
