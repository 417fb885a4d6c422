"""Writes the reference logits of the small models of every family.

    cargo run -p correx-candle --example peer -- models FOLDER
    python tests/peer/families.py FOLDER

The test is `every_family_agrees_with_llama_cpp` in `crates/candle/tests/families`.
"""

import json
import sys
from pathlib import Path

import llama_cpp
import numpy

from llama import Model, Sequence

REFERENCE = Path(__file__).parents[2] / "crates/candle/tests/families/reference"


def main(folder):
    REFERENCE.mkdir(exist_ok=True)
    reference = {}
    for about in json.loads((folder / "models.json").read_text()):
        name = about["name"]
        model = Model(folder / f"{name}.gguf")
        sequence = Sequence(model, about["window"])
        logits = sequence.logits(about["ids"], every=True)[about["positions"]]
        sequence.close()
        model.close()
        if not numpy.isfinite(logits).all():
            raise RuntimeError(f"{name}: the logits are not finite")
        (REFERENCE / f"{name}.f32").write_bytes(logits.astype("<f4").tobytes())
        reference[name] = about["sha256"]
        print(f"{name}: largest logit {numpy.abs(logits).max():.2f}")
    told = {"peer": f"llama-cpp-python {llama_cpp.__version__}", "sha256": reference}
    (REFERENCE / "models.json").write_text(json.dumps(told, indent=1) + "\n")


main(Path(sys.argv[1]))
