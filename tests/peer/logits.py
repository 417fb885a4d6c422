"""Compares the logits of a real model at every position of a text with llama.cpp's.

    cargo build --release -p correx-candle --example peer
    python tests/peer/logits.py target/release/examples/peer MODEL [TEXT]

Prints on how many positions the first token is the same, and the mean Kullback-Leibler divergence
of Correx's distribution from the peer's. The text is ARCHITECTURE.md unless another is named; its
first 1,000 tokens count.

A quantized model multiplies activations of eight bits: the least difference, even in the order of a
sum, makes some of them round the other way, in every layer. So the peer is compared with itself too,
once step by step in full precision and once as people run it. Correx should be as near to it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

from llama import Model, Sequence

TOKENS = 1000
ROOT = Path(__file__).parents[2]


def log_softmax(logits):
    logits = logits.astype(numpy.float64)
    logits -= logits.max()
    return logits - numpy.log(numpy.exp(logits).sum())


class Comparison:
    def __init__(self):
        self.same, self.divergences = 0, []

    def add(self, peers, others):
        self.same += peers.argmax() == others.argmax()
        theirs, mine = log_softmax(peers), log_softmax(others)
        self.divergences.append((numpy.exp(theirs) * (theirs - mine)).sum())

    def tell(self, who):
        self.share, self.mean = self.same / len(self.divergences), numpy.mean(self.divergences)
        print(f"  {who}: same first token {100 * self.share:.1f} %, mean divergence {self.mean:.5f}")


def main(program, path, text=ROOT / "ARCHITECTURE.md"):
    model = Model(path)
    ids = model.tokenize(Path(text).read_text())[:TOKENS]
    sequence, usual = Sequence(model, 1024), Sequence(model, 1024, like_users=True)
    correx, itself = Comparison(), Comparison()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(ids, file)
        file.flush()
        ours = subprocess.Popen([program, "logits", path, file.name], stdout=subprocess.PIPE)
        for first in range(0, len(ids), 64):
            part = ids[first : first + 64]
            others = usual.logits(part, every=True)
            for peers, other in zip(sequence.logits(part, every=True), others):
                row = ours.stdout.read(4 * model.size)
                correx.add(peers, numpy.frombuffer(row, "<f4"))
                itself.add(peers, other)
        if ours.stdout.read(1):
            raise RuntimeError("the vocabularies differ in size")
        if ours.wait() != 0:
            raise RuntimeError("Correx fails")
    print(f"{Path(path).name}, {len(ids)} positions, against llama.cpp:")
    correx.tell("Correx")
    itself.tell("itself, as people run it")
    enough = min(0.99, itself.share - 0.005)
    return 0 if correx.share >= enough and correx.mean < 0.01 else 1


sys.exit(main(*sys.argv[1:]))
