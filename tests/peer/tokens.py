"""Compares token ids with llama.cpp's.

    cargo xtask peer tokens [--texts N] [--variants] [--long] FILE...

For every GGUF file: the ids of plain texts, of texts with the tokens around them that the file asks
for, and of prompts made by templates; what every token says in a reply; which tokens end one.
--variants: also with every other rule of splitting text, or with the space prefix turned over.
--long: also texts of a megabyte.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf_file
import texts

HERE = Path(__file__).parent
#: Pairs of control tokens that templates are made of; the first pair that a vocabulary has is used.
PAIRS = [
    ("<|im_start|>", "<|im_end|>"), ("<|user|>", "<|end|>"), ("<|start_header_id|>", "<|eot_id|>"),
    ("<|turn>", "<turn|>"), ("<start_of_turn>", "<end_of_turn>"),
    ("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"), ("<fim_prefix>", "<fim_suffix>"),
    ("<s>", "</s>"), ("<|endoftext|>", "<|endoftext|>"),
]
TEMPLATES = [
    "{% for m in messages %}BEGIN{{ m.role }}\n{{ m.content }}END\n{% endfor %}BEGINassistant\n",
    "{% for m in messages %}BEGIN {{ m.content }} END{{ m.content | trim }}{% endfor %}",
]


def ours(program, path, questions):
    """Our answers. All or nothing."""
    command = [program, "vocabulary", str(path)]
    done = subprocess.run(command, input=lines(questions), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(path, questions):
    """The peer's answers; None where it breaks down, which some of its rules do on some texts."""
    answers = []
    while len(answers) < len(questions):
        command = [sys.executable, str(HERE / "vocabulary.py"), str(path)]
        rest = lines(questions[len(answers):])
        done = subprocess.run(command, input=rest, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env={**os.environ, "GGML_NO_BACKTRACE": "1"})
        whole = [line for line in done.stdout.splitlines(keepends=True) if line.endswith(b"\n")]
        answers += [json.loads(line[7:]) for line in whole if line.startswith(b"answer ")]
        if len(answers) < len(questions):
            answers.append(None)
        if answers.count(None) > 200:
            answers += [None] * (len(questions) - len(answers))
    return answers


def rules(program):
    """Every rule of splitting text."""
    done = subprocess.run([program, "rules"], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout.split()


def lines(questions):
    return "".join(json.dumps(question) + "\n" for question in questions).encode()


def compare(kind, questions, mine, their, failures):
    """Counts equal answers and shows the shortest of the others."""
    compared = [it for it in zip(questions, mine, their) if it[2] is not None]
    wrong = [it for it in compared if it[1] != it[2]]
    skipped = len(questions) - len(compared)
    note = f", {skipped} that the peer has no answer to" if skipped else ""
    print(f"  {kind}: {len(compared) - len(wrong)} of {len(compared)} equal{note}", flush=True)
    for question, one, other in sorted(wrong, key=lambda it: len(json.dumps(it[0])))[:3]:
        place = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
        print(f"    {json.dumps(question)[:200]}\n      at {place}: ours {one[place - 2 if place > 2 else 0:place + 6]}"
              f", the peer's {other[place - 2 if place > 2 else 0:place + 6]}")
    failures.extend(wrong)


def check(program, path, samples, failures):
    plain = [{"text": text} for text in samples]
    around = [{"sequence": text} for text in samples[:200]]
    questions = plain + around + [{"tokens": {}}]
    mine, their = ours(program, path, questions), theirs(path, questions)
    facts = their[-1]
    compare("plain texts", plain, mine, their, failures)
    count = len(plain)
    compare("whole sequences", around, mine[count:], their[count:], failures)
    if facts is None:
        print("  the peer cannot say what its tokens are")
        return
    compare("stop tokens", ["stops"], [mine[-1]["stops"]], [facts["stops"]], failures)
    # For a text that is not in its byte alphabet the peer writes a note of its own; we say the text.
    unsaid = "[UNK_BYTE".encode().hex()
    replies = [None if unsaid in reply else reply for reply in facts["replies"]]
    compare("replies of single tokens", list(range(len(replies))), mine[-1]["replies"], replies, failures)
    prompts(program, path, samples, facts, failures)


def prompts(program, path, samples, facts, failures):
    control = [text for text in facts["control"] if text]
    pair = next((pair for pair in PAIRS if set(pair) <= set(control)), None)
    if pair is None:
        return
    # What spells a control token is one to the peer and plain text to us.
    spelled = re.compile("|".join(map(re.escape, control)))
    contents = [text for text in samples if text and not spelled.search(text)][:600]
    templates = [it.replace("BEGIN", pair[0]).replace("END", pair[1]) for it in TEMPLATES]
    asked = [{"chat": {"template": template, "content": content}}
             for template in templates for content in contents]
    mine = ours(program, path, asked)
    rendered = [{"rendered": answer["rendered"]} for answer in mine]
    their = theirs(path, rendered)
    bos = facts["bos"]
    if bos is not None:
        their = [ids if ids is None or ids[:1] == [bos] else [bos] + ids for ids in their]
    compare("prompts", rendered, [answer["ids"] for answer in mine], their, failures)


def variants(program, path, folder):
    """The same vocabulary with other things said about it."""
    entries = gguf_file.read(path)
    model = gguf_file.text_of(entries, "tokenizer.ggml.model")
    changes = []
    if model == "gpt2":
        names = rules(program)
        changes = [("tokenizer.ggml.pre", name, gguf_file.text(name)) for name in names]
    elif model == "llama":
        key = "tokenizer.ggml.add_space_prefix"
        changes = [(key, str(value), gguf_file.flag(value)) for value in (False, True)]
    for key, name, value in changes:
        target = Path(folder) / f"{Path(path).stem}+{name}.gguf"
        gguf_file.write(target, {**entries, key: value})
        yield target
        os.unlink(target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--texts", type=int, default=2300)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("files", nargs="+")
    asked = parser.parse_args()
    samples = texts.varied(asked.texts)
    if asked.long:
        samples += texts.long_ones()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for path in asked.files:
            print(path, flush=True)
            check(asked.program, path, samples, failures)
            for variant in variants(asked.program, path, folder) if asked.variants else ():
                print(variant.name, flush=True)
                check(asked.program, variant, samples, failures)
    print("everything is equal" if not failures else f"{len(failures)} differences")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
