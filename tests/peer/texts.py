"""Varied texts, the same ones for the same seed."""

import random

SCRIPTS = [
    (0x61, 0x7A), (0x41, 0x5A), (0xC0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F),
    (0x590, 0x5FF), (0x600, 0x6FF), (0x700, 0x74F), (0x900, 0x97F), (0x980, 0x9FF), (0xA00, 0xA7F),
    (0xB80, 0xBFF), (0xC00, 0xC7F), (0xE00, 0xE7F), (0xE80, 0xEFF), (0xF00, 0xFFF),
    (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x137F), (0x13A0, 0x13FF),
    (0x1780, 0x17FF), (0x1820, 0x18AF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x218F),
    (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x2C00, 0x2DFF), (0x2E80, 0x2FDF),
    (0x3000, 0x30FF), (0x3100, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA6FF),
    (0xA720, 0xABFF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFE6F),
    (0xFF00, 0xFFEF), (0x10000, 0x1056F), (0x10800, 0x10FFF), (0x11000, 0x11FFF),
    (0x12000, 0x143FF), (0x16000, 0x16FFF), (0x17000, 0x18CFF), (0x1B000, 0x1B2FF),
    (0x1C000, 0x1D7FF), (0x1E000, 0x1EFFF), (0x1F000, 0x1FAFF), (0x20000, 0x2FFFF),
    (0x30000, 0x323AF), (0xE000, 0xF8FF), (0xE0000, 0xE01EF), (0xF0000, 0x10FFFF),
]
WORDS = (
    "the of and to in that is was for it with as his on be at by had not are but from or have an "
    "they which one you were her all she there would their we him been has when who will more no "
    "if out so said what up its about into than them can only other new some could time these two"
).split()
CODE = [
    "def f(x):\n    return x**2\n",
    "for (int i = 0; i < n; ++i) {\n\ta[i] += b[i] * 3.14e-10f;\n}\n",
    '<div class="a">&nbsp;</div>',
    "SELECT * FROM t WHERE id != 'x''y';",
    "let s: &'static str = r#\"raw\"#;",
    "\\frac{1}{2} \\n \\t",
    '{"a":[1,2,null,true],"b":"\\u00e9"}',
    "if(x!=y&&z||!w)return;",
    "#!/bin/sh\nset -e\n\n\ncd /tmp && ls -la | grep 'x'\n",
    "0x1F 0b1010 1_000_000 1e9 .5 5.",
    "__init__ camelCase snake_case SCREAMING_CASE PascalCaseHTTPServer",
    "a->b::c.d?.e!",
    "// comment\r\n/* multi\r\n   line */\r\n",
]
LOOK_ALIKES = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<unk>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "<bos>", "[INST]", "[/INST]", "<|user|>", "<|end|>",
    "<0x0A>", "<0xE2>", "<0x0", "▁", "▁▁", "<|fim_prefix|>", "<fim_prefix>", "<file_sep>",
    "<reponame>", "<tool_call>", "</think>", "<think>", "<h1>", "</table>", "<unused3>", "<mask>",
    "[MASK]", "[PAD]", "<sentinel:12>", "IMGIMGABCDZ", "IMGIMGAZ", "<|start|>", "<|channel|>",
    "<img>", "<|", "|>", "<", "im_end",
]
CONTRACTIONS = [
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'lL", "'D", "’s",
    "’t", "’re", "’ll", "`s", "'", "''", "'x", "'r", "'v", "'l", "'L",
]
EMOJI = [
    "😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇺🇸🇫🇷", "❤️", "☺", "👩🏿‍🚀", "1️⃣", "🫠",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "©️", "‼️",
]
BLANKS = [
    " ", "  ", "   ", "    ", "\n", "\n\n", "\n\n\n", "\r\n", "\r", "\t", "\t\t", " \n", "\n ", "\t ",
    "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085", "\v", "\f", " \t\n\r", "\u200b",
    "\u2009\u2009", "\u1680",
]
NUMBERS = [
    "٣٤٥٦", "१२३४", "½¾", "²³¹", "ⅧⅨ", "①②③", "１２３４", "12٣456", "1e-5", "3.14", "1,000,000.00",
    "00012345", "-17", "$1234567.89", "1234567890123",
]
PHRASES = [
    "नमस्ते दुनिया", "こんにちは世界", "你好，世界！这是一个测试。", "안녕하세요 세계", "مرحبا بالعالم",
    "السَّلامُ عَلَيْكُمْ", "שלום עולם", "สวัสดีชาวโลก", "Привет, мир!", "Γειά σου Κόσμε",
    "Xin chào thế giới", "Ǆ ǅ ǆ ŉ ﬃ ẞ", "İstanbul ıI", "ქართული", "አማርኛ", "বাংলা ভাষা", "தமிழ்",
    "ខ្មែរ", "མི་", "繁體中文與日本語カタカナ", "e\u0301cole ÉCOLE", "Ⅷ", "ǅungla", "ʰʲ",
]
ODD = (
    list(range(0, 32)) + list(range(0x7F, 0xA0))
    + [0xAD, 0x200C, 0x200D, 0x200E, 0x202E, 0xFEFF, 0xFFFE, 0xFFFF, 0x1FFFE, 0xFDD0, 0xE000, 0x378,
       0x10FFFF, 0x1C89, 0x105C0]
)
MARKS = "!?.,;:-_=+*/\\|~^<>()[]{}\"'`@#$%&"


class Source:
    """Pieces of text by chance."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def character(self, first, last):
        while True:
            code = self.chance.randint(first, last)
            if not 0xD800 <= code <= 0xDFFF:
                return chr(code)

    def any_character(self):
        whole = self.chance.random() < 0.3
        return self.character(*((0, 0x10FFFF) if whole else self.chance.choice(SCRIPTS)))

    def word(self, most=8):
        script = self.chance.choice(SCRIPTS)
        return "".join(self.character(*script) for _ in range(self.chance.randint(1, most)))

    def number(self):
        chance = self.chance
        return chance.choice([
            str(chance.randint(0, 10 ** chance.randint(1, 18))),
            f"{chance.randint(0, 10 ** 7):,}",
            f"{chance.random():.{chance.randint(1, 12)}f}",
            chance.choice(NUMBERS),
        ])

    def mixed(self):
        chance = self.chance
        parts = [self.word(3), chance.choice(WORDS), str(chance.randint(0, 99999)), chance.choice(MARKS)]
        return "".join(chance.choice(parts) for _ in range(chance.randint(1, 6)))

    def piece(self):
        chance = self.chance
        pick = chance.choice
        return pick([
            lambda: pick(WORDS),
            lambda: " " + pick(WORDS),
            lambda: pick(WORDS).capitalize() + pick([". ", ", ", "; ", "! ", "? ", " - ", "—", "…"]),
            self.word,
            lambda: "".join(self.any_character() for _ in range(chance.randint(1, 6))),
            lambda: pick(CODE),
            lambda: pick(LOOK_ALIKES),
            lambda: pick(WORDS) + pick(CONTRACTIONS),
            lambda: pick(EMOJI),
            lambda: pick(BLANKS),
            lambda: pick([" ", "\n", "\t", "\r\n", "\u3000"]) * chance.randint(1, 40),
            self.number,
            lambda: pick("aeoxnñ世 ")
            + "".join(chr(chance.randint(0x300, 0x36F)) for _ in range(chance.randint(1, 4))),
            lambda: pick(PHRASES),
            lambda: chr(pick(ODD)),
            lambda: "".join(pick([str.upper, str.lower])(c) for c in pick(WORDS)),
            lambda: pick(MARKS) * chance.randint(1, 6),
            self.mixed,
        ])()


def varied(count, seed=1):
    """At least `count` texts of up to some hundred characters."""
    source = Source(seed)
    texts = ["", " 's", "\t\t\tx", "x   ", "   x", "x \n \n y", "a" * 300, " " * 300]
    texts += CODE + LOOK_ALIKES + CONTRACTIONS + EMOJI + BLANKS + PHRASES + NUMBERS
    texts += [chr(code) for code in range(256)]
    while len(texts) < count:
        pieces = source.chance.choice([1, 1, 2, 3, 5, 8, 13, 30])
        texts.append("".join(source.piece() for _ in range(pieces)))
    return texts


def long_ones(seed=2):
    """Texts of about a megabyte."""
    source = Source(seed)
    mixture = [source.piece() for _ in range(60_000)]
    return [
        "a" * (1 << 20), " " * (1 << 20), "\n" * (1 << 20), "世" * (1 << 18), "1" * (1 << 20),
        " a" * (1 << 19), "👨‍👩‍👧‍👦" * (1 << 15), "".join(mixture),
    ]
