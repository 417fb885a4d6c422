"""llama.cpp, by its plain interface: ids in, logits out. CPU only.

Keys and values are kept in full precision and attention is computed step by step, so that what
differs is not lost in the peer's own rounding, unless `like_users` asks for its usual settings.
"""

import ctypes

import llama_cpp
import numpy

GGML_TYPE_F32 = 0


@llama_cpp.llama_log_callback
def _silent(_level, _text, _data):
    pass


llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()


class Model:
    def __init__(self, path, threads=1):
        parameters = llama_cpp.llama_model_default_params()
        parameters.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.size = llama_cpp.llama_vocab_n_tokens(self.vocabulary)
        self.threads = threads

    def close(self):
        llama_cpp.llama_model_free(self.model)

    def tokenize(self, text):
        data = text.encode()
        ids = (llama_cpp.llama_token * (len(data) + 8))()
        count = llama_cpp.llama_tokenize(
            self.vocabulary, data, len(data), ids, len(ids), True, False
        )
        if count < 0:
            raise RuntimeError("the text has more tokens than bytes")
        return list(ids[:count])


class Sequence:
    """One sequence of at most `window` tokens."""

    def __init__(self, model, window, like_users=False):
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = window
        parameters.n_batch = parameters.n_ubatch = 64
        parameters.n_threads = parameters.n_threads_batch = model.threads
        if not like_users:
            parameters.type_k = parameters.type_v = GGML_TYPE_F32
            parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.model = model
        self.context = llama_cpp.llama_init_from_model(model.model, parameters)
        if not self.context:
            raise RuntimeError("llama.cpp makes no context")
        self.position = 0

    def close(self):
        llama_cpp.llama_free(self.context)

    def logits(self, ids, every=False):
        """Adds ids; the logits behind the last, or behind every one of them."""
        rows = []
        for first in range(0, len(ids), 64):
            part = ids[first : first + 64]
            batch = llama_cpp.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            wanted = []
            for place, token in enumerate(part):
                batch.token[place] = token
                batch.pos[place] = self.position + place
                batch.n_seq_id[place] = 1
                batch.seq_id[place][0] = 0
                want = every or first + place + 1 == len(ids)
                batch.logits[place] = want
                if want:
                    wanted.append(place)
            if llama_cpp.llama_decode(self.context, batch) != 0:
                raise RuntimeError("llama.cpp fails")
            for place in wanted:
                pointer = llama_cpp.llama_get_logits_ith(self.context, place)
                rows.append(numpy.ctypeslib.as_array(pointer, (self.model.size,)).copy())
            llama_cpp.llama_batch_free(batch)
            self.position += len(part)
        return numpy.stack(rows)
