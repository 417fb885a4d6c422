"""Compares greedy replies of a real model with llama.cpp's, id by id.

    cargo build --release -p correx-candle --example peer
    python tests/peer/replies.py target/release/examples/peer MODEL

Prompts are plain text, as the peer's tokenizer reads it. Where two replies part, the gap between
the peer's two largest logits says whether it was a close call. The peer's own replies with its
usual settings are compared as well: `logits.py` says why they differ.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from llama import Model, Sequence

TOKENS = 32
# The largest gap that still is a close call.
CLOSE = 0.1

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "Water boils at a temperature of",
    "The three most important things about writing a good letter are",
    "fn main() {\n    let numbers = vec![1, 2, 3];\n",
    "Dear Sir or Madam,\n\nI am writing to",
    "1, 1, 2, 3, 5, 8, 13,",
    "Photosynthesis is the process by which",
    "Ingredients:\n- 200 g flour\n- 2 eggs\n- ",
    "Q: What is the largest planet in the solar system?\nA:",
    "SELECT name, price FROM products WHERE",
    "In 1969, the first human",
    "Die Hauptstadt von Deutschland ist",
    "The meeting was moved to Thursday because",
    '{"name": "Ada", "age": 36, "languages": [',
    "To be, or not to be, that is",
    "Our quarterly results show that revenue",
    "# Installation\n\nTo install the program, run",
    "The opposite of hot is cold. The opposite of up is",
]


def compare(model, prompts, replies, who):
    """How many replies are the same as the peer's, and how many part at a close call."""
    same, close = 0, 0
    for text, prompt, reply in zip(PROMPTS, prompts, replies):
        sequence = Sequence(model, 512)
        ids = prompt
        for place, other in enumerate(reply):
            logits = sequence.logits(ids)[-1]
            first = int(logits.argmax())
            if first != other:
                gap = float(logits[first] - logits[other])
                close += gap <= CLOSE
                print(f"  {who}: {text!r} parts at id {place}: gap {gap:.4f}")
                break
            ids = [first]
        else:
            same += 1
        sequence.close()
    print(f"{who}: {same} of {len(PROMPTS)} are the same, {close} part at a close call")
    return same, close


def as_users(model, prompt):
    """The peer's own reply, as people run it."""
    sequence = Sequence(model, 512, like_users=True)
    reply = []
    ids = prompt
    while len(reply) < TOKENS:
        ids = [int(sequence.logits(ids)[-1].argmax())]
        reply += ids
    sequence.close()
    return reply


def main(program, path):
    model = Model(path)
    prompts = [model.tokenize(prompt) for prompt in PROMPTS]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(prompts, file)
        file.flush()
        command = [program, "replies", path, file.name, str(TOKENS)]
        ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    print(f"{Path(path).name}, replies of {TOKENS} ids, against llama.cpp:")
    same, close = compare(model, prompts, [reply["ids"] for reply in ours], "Correx")
    own, _ = compare(model, prompts, [as_users(model, prompt) for prompt in prompts], "itself")
    return 0 if same >= min(18, own - 2) and same + close >= len(PROMPTS) - 2 else 1


sys.exit(main(*sys.argv[1:]))
