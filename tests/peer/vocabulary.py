"""llama.cpp as a peer: vocabularies of GGUF files, through llama-cpp-python."""

import ctypes

import llama_cpp


@llama_cpp.llama_log_callback
def _quiet(_level, _text, _data):
    pass


llama_cpp.llama_log_set(_quiet, ctypes.c_void_p(0))


class Vocabulary:
    """The vocabulary of a file, loaded without its weights."""

    def __init__(self, path):
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise SystemExit(f"the peer cannot load {path}")
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)

    def __len__(self):
        return llama_cpp.llama_vocab_n_tokens(self.vocab)

    def encode(self, text, add_special=False, parse_special=False):
        data = text.encode()
        room = len(data) + 16
        while True:
            ids = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(
                self.vocab, data, len(data), ids, room, add_special, parse_special
            )
            if count >= 0:
                return list(ids[:count])
            room = -count

    def begins_with_bos(self):
        return bool(llama_cpp.llama_vocab_get_add_bos(self.vocab))

    def bos(self):
        return llama_cpp.llama_vocab_bos(self.vocab)

    def stops(self):
        is_eog = llama_cpp.llama_vocab_is_eog
        return [token for token in range(len(self)) if is_eog(self.vocab, token)]

    def piece(self, token):
        """The bytes that a token adds to a reply."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = llama_cpp.llama_token_to_piece(self.vocab, token, buffer, room, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def looks(self, token):
        """Whether a token steers or stands for what is unknown, and the text it is written as."""
        attributes = llama_cpp.llama_vocab_get_attr(self.vocab, token)
        special = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
        return bool(attributes & special), llama_cpp.llama_vocab_get_text(self.vocab, token).decode(errors="replace")

    def answer(self, question):
        """The answer to one of the questions that Correx answers too, or about a rendered prompt."""
        (kind, value), = question.items()
        if kind == "text":
            return self.encode(value)
        if kind == "sequence":
            return self.encode(value, add_special=True)
        if kind == "rendered":
            return self.encode(value, parse_special=True)
        looks = [self.looks(token) for token in range(len(self))]
        return {
            "replies": [self.piece(token).hex() for token in range(len(self))],
            "stops": self.stops(),
            "control": [text for control, text in looks if control],
            "bos": self.bos() if self.begins_with_bos() else None,
        }


if __name__ == "__main__":
    import json
    import sys

    opened = Vocabulary(sys.argv[1])
    for line in sys.stdin:
        print("answer", json.dumps(opened.answer(json.loads(line)), separators=(",", ":")), flush=True)
