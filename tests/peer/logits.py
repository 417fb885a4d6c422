"""Compares the logits of a real model at every position of a text with llama.cpp's.

    cargo build --release -p correx-candle --example peer
    python tests/peer/logits.py target/release/examples/peer MODEL [TEXT]

Prints on how many positions the first token is the same, and the mean Kullback-Leibler divergence
of Correx's distribution from the peer's. The text is README.md unless another is named; its first
1,000 tokens count.
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


def main(program, path, text=ROOT / "README.md"):
    model = Model(path)
    ids = model.tokenize(Path(text).read_text())[:TOKENS]
    sequence = Sequence(model, 1024)
    same, divergences = 0, []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(ids, file)
        file.flush()
        ours = subprocess.Popen([program, "logits", path, file.name], stdout=subprocess.PIPE)
        for first in range(0, len(ids), 64):
            for peers in sequence.logits(ids[first : first + 64], every=True):
                row = ours.stdout.read(4 * model.size)
                row = numpy.frombuffer(row, "<f4")
                same += row.argmax() == peers.argmax()
                theirs, mine = log_softmax(peers), log_softmax(row)
                divergences.append((numpy.exp(theirs) * (theirs - mine)).sum())
        if ours.stdout.read(1):
            raise RuntimeError("the vocabularies differ in size")
        if ours.wait() != 0:
            raise RuntimeError("Correx fails")
    share, mean = same / len(ids), float(numpy.mean(divergences))
    print(f"{Path(path).name}: {len(ids)} positions")
    print(f"  same first token: {100 * share:.1f} %")
    print(f"  mean KL divergence: {mean:.5f} (largest {max(divergences):.4f})")
    return 0 if share >= 0.99 and mean < 0.01 else 1


sys.exit(main(*sys.argv[1:]))
