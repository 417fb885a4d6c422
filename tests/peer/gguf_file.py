"""The metadata of a GGUF file, to be written again with some of it changed and without weights."""

import struct

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, FLAG = 8, 7


def read(path):
    """Keys with the type and the bytes of their values."""
    with open(path, "rb") as file:
        magic, version, _tensors, count = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF" or version < 2:
            raise SystemExit(f"{path} is no GGUF file of version 2 or 3")

        def value(kind):
            if kind == TEXT:
                head = file.read(8)
                return head + file.read(struct.unpack("<Q", head)[0])
            if kind == 9:
                head = file.read(12)
                of, length = struct.unpack("<IQ", head)
                if of == TEXT:
                    return head + b"".join(value(TEXT) for _ in range(length))
                return head + file.read(_SIZES[of] * length)
            return file.read(_SIZES[kind])

        entries = {}
        for _ in range(count):
            key = file.read(struct.unpack("<Q", file.read(8))[0]).decode()
            kind, = struct.unpack("<I", file.read(4))
            entries[key] = (kind, value(kind))
        return entries


def text(value):
    data = value.encode()
    return (TEXT, struct.pack("<Q", len(data)) + data)


def flag(value):
    return (FLAG, bytes([value]))


def text_of(entries, key):
    kind, data = entries.get(key, (None, b""))
    return data[8:].decode() if kind == TEXT else None


def write(path, entries):
    with open(path, "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries)))
        for key, (kind, data) in entries.items():
            name = key.encode()
            file.write(struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + data)
