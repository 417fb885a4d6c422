"""Writes a model's weights in full precision (32 bits), by llama.cpp.

    python tests/peer/widen.py MODEL WIDE

With WIDE, `logits.py` and `replies.py` compare the computation itself: a quantized model also
rounds what it multiplies, and no two programs, nor two ways of the peer, round all of it alike.
"""

import ctypes
import sys

import llama_cpp


def main(path, wide):
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    parameters.allow_requantize = True
    return llama_cpp.llama_model_quantize(
        path.encode(), wide.encode(), ctypes.byref(parameters)
    )


sys.exit(main(*sys.argv[1:]))
