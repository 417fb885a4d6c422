"""Compares greedy replies of a real model with llama.cpp's, id by id.

    cargo build --release -p correx-candle --example peer
    python tests/peer/replies.py target/release/examples/peer MODEL

Prompts are plain text, as the peer's tokenizer reads it. Where two replies part, the gap between
the peer's two largest logits says whether it was a close call.
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


def main(program, path):
    model = Model(path)
    prompts = [model.tokenize(prompt) for prompt in PROMPTS]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(prompts, file)
        file.flush()
        command = [program, "replies", path, file.name, str(TOKENS)]
        ours = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    same, close = 0, 0
    for text, prompt, reply in zip(PROMPTS, prompts, ours):
        sequence = Sequence(model, 512)
        ids = prompt
        for place, mine in enumerate(reply["ids"]):
            logits = sequence.logits(ids)[-1]
            first = int(logits.argmax())
            if first != mine:
                gap = float(logits[first] - logits[mine])
                close += gap <= CLOSE
                print(f"  {text!r} parts at id {place}: {first}, not {mine}; gap {gap:.4f}")
                break
            ids = [first]
        else:
            same += 1
        sequence.close()
    parted = len(PROMPTS) - same
    print(f"{Path(path).name}: {same} of {len(PROMPTS)} replies of {TOKENS} ids are the same")
    print(f"  {close} of {parted} that part do so where the peer was close")
    return 0 if same >= 18 and close == parted else 1


sys.exit(main(*sys.argv[1:]))
