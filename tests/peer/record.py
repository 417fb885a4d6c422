"""Writes the vocabularies and ids that the tests of `crates/candle` compare with.

usage: record.py PROGRAM   (PROGRAM only names the rules of splitting text)
"""

import json
import struct
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import gguf_file
import texts
from tokens import rules, theirs
from vocabulary import Vocabulary

TARGET = Path(__file__).parents[2] / "crates/candle/src/tokenizer/recorded"
NORMAL, UNKNOWN, CONTROL, OWN, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

ALPHABET = {}
for byte in range(256):
    plain = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte
    ALPHABET[byte] = chr(byte) if plain else chr(0x100 + sum(1 for b in ALPHABET.values() if ord(b) > 0xFF))

CORPUS = (texts.PHRASES + texts.CODE + texts.EMOJI) * 2 + texts.NUMBERS * 3 + [
    " ".join(texts.WORDS), " ".join(texts.WORDS).upper(), "it's IT'S we'll We'Ll 12 123 1234 12345",
    "a  b   c    d\n\n\ne\r\nf\t\tg \n h, i. j! k? (l) [m] x=1; y+=2; don't don’t 1,000.00 $9 €9",
] * 3


def trained(count, units):
    """Merges of the commonest neighbours, across whatever rules would split."""
    runs = [units(text) for text in CORPUS]
    merges = []
    while len(merges) < count:
        pairs = Counter(pair for run in runs for pair in zip(run, run[1:]))
        pair = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(pair)
        for place, run in enumerate(runs):
            merged, at = [], 0
            while at < len(run):
                if tuple(run[at:at + 2]) == pair:
                    merged.append(run[at] + run[at + 1])
                    at += 2
                else:
                    merged.append(run[at])
                    at += 1
            runs[place] = merged
    return merges


def byte_level():
    # One rare byte is missing, and one merge makes a text that is no token.
    tokens = [(ALPHABET[byte], NORMAL) for byte in range(256) if byte != 0x01]
    merges = trained(420, lambda text: [ALPHABET[byte] for byte in text.encode()])
    known = {text for text, _ in tokens}
    for number, (left, right) in enumerate(merges):
        if left + right not in known and number != 300:
            known.add(left + right)
            tokens.append((left + right, NORMAL))
    # Whole pieces that no merge leads to.
    tokens += [("Ġwhole", NORMAL), ("7654321", NORMAL)]
    tokens += [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<|endoftext|>", CONTROL)]
    tokens += [("<tool>", OWN), ("tool><", OWN), ("  \n", OWN), ("<unused>", UNUSED)]
    return {"model": "gpt2", "tokens": tokens, "merges": [" ".join(merge) for merge in merges]}


def by_scores():
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    merges = trained(420, lambda text: list(text.replace(" ", "▁")))
    singles = sorted({char for text in CORPUS for char in text.replace(" ", "▁")})
    known, scores = {text for text, _ in tokens} | {"\n\n", "\n\n\n"}, [0.0] * len(tokens)
    # Some scores are shared, and some characters are known by their bytes only.
    for rank, text in enumerate([left + right for left, right in merges] + singles[::2]):
        if text not in known:
            known.add(text)
            tokens.append((text, NORMAL))
            scores.append(-float(rank // 3))
    tokens += [("<|user|>", CONTROL), ("<|end|>", CONTROL), ("<h1>", OWN), ("\n\n", OWN),
               ("\n\n\n", OWN), ("▁▁▁▁▁", OWN), ("<unused0>", UNUSED)]
    scores += [0.0] * (len(tokens) - len(scores))
    return {"model": "llama", "tokens": tokens, "scores": scores}


def characters():
    """Pairs over characters, with spaces marked, as in gemma 4."""
    tokens = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    merges = trained(300, lambda text: list(text.replace(" ", "▁").replace("\n", "")))
    singles = sorted({char for text in CORPUS for char in text.replace(" ", "▁")})
    known = {text for text, _ in tokens}
    for text in singles[::2] + [left + right for left, right in merges] + ["\n", "\n\n", "\n\n\n"]:
        if text not in known:
            known.add(text)
            tokens.append((text, NORMAL))
    tokens += [("<|turn>", CONTROL), ("<turn|>", CONTROL), ("<h1>", OWN)]
    return {"model": "gemma4", "tokens": tokens, "merges": [" ".join(merge) for merge in merges]}


def entries(vocabulary, changes):
    def texts_of(values):
        return (9, struct.pack("<IQ", 8, len(values)) + b"".join(gguf_file.text(v)[1] for v in values))

    def numbers(kind, code, values):
        return (9, struct.pack(f"<IQ{len(values)}{code}", kind, len(values), *values))

    found = {
        "general.architecture": gguf_file.text("llama"),
        "tokenizer.ggml.model": gguf_file.text(vocabulary["model"]),
        "tokenizer.ggml.tokens": texts_of([text for text, _ in vocabulary["tokens"]]),
        "tokenizer.ggml.token_type": numbers(5, "i", [kind for _, kind in vocabulary["tokens"]]),
    }
    if "merges" in vocabulary:
        found["tokenizer.ggml.merges"] = texts_of(vocabulary["merges"])
    if "scores" in vocabulary:
        found["tokenizer.ggml.scores"] = numbers(6, "f", vocabulary["scores"])
    for key, value in changes.items():
        flag = isinstance(value, bool)
        found[key] = gguf_file.flag(value) if flag else gguf_file.text(value)
    return found


def answers(vocabulary, changes, questions):
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        gguf_file.write(file.name, entries(vocabulary, changes))
        if changes.get("tokenizer.ggml.pre") == "whitespace":
            # The peer breaks down on some texts.
            return theirs(file.name, questions)
        peer = Vocabulary(file.name)
        return [peer.answer(question) for question in questions]


def main():
    names = rules(sys.argv[1])
    source = texts.Source(7)
    def mixture(count, pieces):
        return ["".join(source.piece() for _ in range(pieces)) for _ in range(count)]
    few = [
        "It's 1234567,  ok\n\n x I'LL we'Re", "a=12345.678 (b)\r\n\r\n  c\t\td", "世界你好ABC한국어カナ½٣٤٥٦x",
        "नमस्ते e\u0301\u0301cole ÉCOLEécole HTTPServer iPhone ǅ", " \n \n  x   \u3000\u00a0y  ",
        "!!!...??? </a>;\n\"q\" _x_ $9 €5 <tool><tool>  \n", "👨‍👩‍👧‍👦🇩🇪❤️\u200d\u0001\u0085\ufffe\ue000\U000105c0",
        "Привет, мир! whole 1 22 333 4444 a1b22c333 ไทย。，。。x", "x's'S’s ' 'quoted' don'T y'all 7654321 a7654321",
    ] + mixture(13, 4)
    questions = [{"text": text} for text in few]
    vocabulary = byte_level()
    groups = defaultdict(list)
    for name in names:
        given = answers(vocabulary, {"tokenizer.ggml.pre": name}, questions)
        groups[json.dumps(given)].append(name)
    dump("pairs", {**vocabulary, "texts": few,
                   "rules": [{"names": names, "ids": json.loads(ids)} for ids, names in groups.items()]})

    many = few + texts.LOOK_ALIKES + texts.PHRASES + mixture(60, 4)
    for name, vocabulary, begin in [("scores", by_scores(), "<|user|>"), ("characters", characters(), "<|turn>")]:
        key = "tokenizer.ggml.add_space_prefix"
        cases = []
        for prefix in ([True, False] if name == "scores" else [False]):
            changes = {key: prefix} if name == "scores" else {}
            rendered = [f"{begin}user\n{text}{begin}  assistant\n" for text in few]
            count = len(many)
            given = answers(vocabulary, changes, [{"text": text} for text in many]
                            + [{"rendered": text} for text in rendered] + [{"tokens": {}}])
            cases.append({"space_prefix": prefix, "ids": given[:count], "prompts": given[count:-1]})
        facts = {"stops": given[-1]["stops"], "replies": given[-1]["replies"]}
        dump(name, {**vocabulary, "texts": many, "begin": begin, "cases": cases, **facts})


def dump(name, value):
    TARGET.mkdir(exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (TARGET / f"{name}.json").write_text(text + "\n")
    print(name, len(text.encode()))


if __name__ == "__main__":
    main()
