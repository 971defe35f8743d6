#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The protocol as 0.1.0 speaks it, against the programs of a build. Neither libshuf nor a library of protobuf encodes it.

    wire.py SHUFD SHUFCTL

FRAMES has what the client of 0.1.0 sends and what its daemon replies. First this program is the client of 0.1.0, and
the daemon must reply with these fields. Then it is the daemon of 0.1.0, and shufctl must send these fields and print
these values. Further fields are allowed on both sides. After a release a row never changes.
"""
import fcntl
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

# ---- Plain protobuf --------------------------------------------------------------------------------------------------
# A message is a dict by the number of the field. A value is an int (varint), a float (double), bytes or str, a dict (a
# message), a list (packed varints), or a name "$x": an id that the daemon chooses, and that later requests repeat.

CHOSEN = {"$lease": 0x1234567890ABCD, "$block": 0x2345678901, "$buffer": 77}  # by the daemon of this program


def varint(value):
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value >= 0x80 else bytes([value])


def encode(fields, ids):
    out = b""
    for number, value in fields.items():
        value = ids[value] if isinstance(value, str) and value.startswith("$") else value
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            body = payload_of(value, ids)
            out += varint(number << 3 | 2) + varint(len(body)) + body
    return out


def payload_of(value, ids):
    if isinstance(value, dict):
        return encode(value, ids)
    if isinstance(value, list):
        return b"".join(varint(ids.get(item, item)) for item in value)
    return value.encode() if isinstance(value, str) else value


def read_varint(data, at):
    end = at
    while data[end] & 0x80:
        end += 1
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data[at:end + 1])), end + 1


def decode(data):
    """The fields of a message: an int of a varint, or bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            fields[number], at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if kind == 2 else (8, at)
            fields[number], at = data[at:at + size], at + size
    return fields


def check(where, data, expected, ids):
    """Fails unless the message has these fields. Learns the ids that the daemon has chosen."""
    found = decode(data)
    for number, value in expected.items():
        place = f"{where}.{number}"
        has = found.get(number)
        if isinstance(value, dict):
            if has is None:
                sys.exit(f"{place}: the message is missing")
            check(place, has, value, ids)
        elif isinstance(value, str) and value.startswith("$") and value not in ids:
            ids[value] = has
        else:
            wanted = decode(encode({number: value}, ids))[number]
            if has != wanted:
                sys.exit(f"{place}: {has!r}: expected {wanted!r}")


# ---- The frames of 0.1.0 ---------------------------------------------------------------------------------------------


def words(code, *values):
    return struct.pack(f"<{len(values)}{code}", *values)


def result(kind, fields, delivery):
    return {3: {1: delivery, kind: fields}}


def reply(fields):
    return {5: {10: "cpu", **fields}}


PERMUTE, STREAM, SHUFFLE, EXCHANGE, BUFFER = range(16, 21)
INLINE = {1: [1]}
ORDER = words("I", 4, 0, 5, 1, 2, 9, 6, 8, 7, 3)
NORMAL = -1.1297535663808724, 1.5717336330700746, 1.0528282256097008
TEXT = "--out - --format text"
HELLO = (None, None, {2: {1: 1, 2: "libshuf 0.1.0"}}, {4: {1: 1, 3: "cpu"}}, b"")

# The command line of shufctl; its output, or fields of its JSON; the request and the reply, without their ids; the
# front of the payload, or of the block whose descriptor comes with the reply. Rows without a command line are only for
# the daemon.
FRAMES = [
    (f"permute --n 10 --seed 7 {TEXT}", "4 0 5 1 2 9 6 8 7 3", result(PERMUTE, {1: {2: 10, 3: 7}}, INLINE),
     reply({1: "primefold", 2: 1, 3: 1, 4: 10, 5: 40, 8: [4, 0, 5, 1], 9: [6, 8, 7, 3], 12: 1}), ORDER),
    ("permute --n 1000 --seed 7 --epoch 3 --json",
     {"count": 1000, "first": [1, 987, 12, 160], "last": [511, 953, 808, 104], "fingerprint": "0x34663c0964accab0"},
     result(PERMUTE, {1: {2: 1000, 3: 7, 5: 3}}, {5: 1}),
     reply({1: "primefold", 2: 1, 3: 1, 4: 1000, 5: 4000, 7: 0x34663C0964ACCAB0, 8: [1, 987, 12, 160],
            9: [511, 953, 808, 104]}), b""),
    (f"permute --n 1000 --seed 7 --algorithm philox24 --offset 5 --count 3 --stride 2 --dtype u64 {TEXT}", "222 804 524",
     result(PERMUTE, {1: {1: "philox24", 2: 1000, 3: 7}, 3: {1: 5, 2: 3, 3: 2}, 5: 2}, INLINE),
     reply({1: "philox24", 2: 2, 3: 1, 4: 3, 5: 24, 8: [222, 804, 524], 12: 1}), words("Q", 222, 804, 524)),
    (f"permute --n 1001 --seed 7 --algorithm lcg --rank 1 --world 4 --step 248 {TEXT}", "802 766 730",
     result(PERMUTE, {1: {1: "lcg", 2: 1001, 3: 7}, 4: {1: 1, 2: 4, 4: 248}}, INLINE),
     reply({1: "lcg", 2: 1, 3: 1, 4: 3, 5: 12, 8: [802, 766, 730], 12: 1}), words("I", 802, 766, 730)),
    (f"permute --n 100 --seed 7 --chunk 10 --window 3 --offset 5 --count 3 {TEXT}", "80 81 87",
     result(PERMUTE, {1: {2: 100, 3: 7, 6: 10, 7: 3}, 3: {1: 5, 2: 3, 3: 1}}, INLINE),
     reply({1: "primefold", 2: 1, 3: 1, 4: 3, 5: 12, 8: [80, 81, 87], 12: 1}), words("I", 80, 81, 87)),
    (f"gauss --count 3 --seed 7 --mean 1 --std 2 {TEXT}", " ".join(map(str, NORMAL)),
     result(STREAM, {1: 1, 3: 7, 7: 3, 8: 1.0, 9: 2.0}, INLINE),
     reply({2: 4, 3: 1, 4: 3, 5: 24, 12: 1, 22: 1}), words("d", *NORMAL)),
    (f"integers --count 3 --seed 7 --bound 1000 {TEXT}", "272 749 901",
     result(STREAM, {1: 6, 3: 7, 7: 3, 11: 1000}, INLINE),
     reply({2: 1, 3: 1, 4: 3, 5: 12, 8: [272, 749, 901], 12: 1, 22: 6}), words("I", 272, 749, 901)),
    ("index --n 1e9 --seed 7 --at 0,5", "312667191 56957516", {7: {1: {2: 10**9, 3: 7}, 3: words("Q", 0, 5)}},
     {10: {1: "primefold", 2: words("Q", 312667191, 56957516)}}, b""),
    ("index --n 1e9 --seed 7 --at 312667191 --inverse", "0", {7: {1: {2: 10**9, 3: 7}, 2: 1, 3: words("Q", 312667191)}},
     {10: {1: "primefold", 2: words("Q", 0)}}, b""),
    # A lease. Its values are in the block of a descriptor. The client gives it back.
    ("permute --n 10 --seed 7 --transport memfd --json", {"first": [4, 0, 5, 1], "transport": "memfd", "block_bytes": 4096},
     result(PERMUTE, {1: {2: 10, 3: 7}}, {1: [2], 5: 1}),
     reply({1: "primefold", 2: 1, 3: 1, 4: 10, 5: 40, 8: [4, 0, 5, 1], 9: [6, 8, 7, 3], 12: 2, 13: "$lease", 14: "$block",
            15: 4096, 18: 1}), ORDER),
    ("leases --json", {"leases": [{"transport": "memfd", "block_bytes": 4096}]}, {6: {}},
     {9: {1: {1: "$lease", 2: os.getpid(), 4: 2, 6: 1, 8: "$block", 9: 4096, 10: 1, 11: 10, 12: {16: {1: {2: 10, 3: 7}}}}}},
     b""),
    ("status --json", {"backend": "cpu", "leases": 1, "hits": 1}, {4: {}}, {6: {2: "cpu", 7: 1, 17: 1, 18: 1}}, b""),
    (None, None, {5: {1: ["$lease"], 2: ["$block"]}}, {8: {}}, b""),
    # A buffer, whose bytes go through the socket, and its records in the order of a permutation; the plan of an exchange.
    (None, None, result(BUFFER, {1: 20}, INLINE), reply({3: 1, 4: 20, 5: 20, 12: 1, 13: "$buffer"}), b""),
    (None, None, {8: {1: "$buffer", 3: b"0123456789abcdefghij"}}, {11: {}}, b""),
    (None, None, result(SHUFFLE, {1: {2: 10, 3: 7}, 3: 2, 4: "$buffer"}, INLINE),
     reply({1: "primefold", 3: 1, 4: 10, 5: 20, 12: 1, 24: 2}), b"8901ab2345ijcdghef67"),
    (None, None, result(EXCHANGE, {1: {2: 10, 3: 7}, 3: 1, 4: 2}, INLINE),
     reply({1: "primefold", 2: 1, 3: 1, 4: 14, 5: 56, 12: 1}), words("I", 1, 4, 1, 4)),
    ("drop --json", {"results": 0}, {9: {}}, {12: {}}, b""),
    ("metrics", "# HELP", {10: {}}, {13: {}}, b"# HELP"),
]


# ---- As the client of 0.1.0 ------------------------------------------------------------------------------------------


def receive(connection):
    """The next frame, and the descriptors that came with it; None at the end."""
    header, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
    return (receive_bytes(connection, struct.unpack("<I", header)[0]), descriptors) if header else (None, [])


def receive_bytes(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data)) or sys.exit("the connection has ended")
    return data


def send(connection, fields, ids, payload=b"", descriptors=()):
    body = encode(fields, ids)
    socket.send_fds(connection, [struct.pack("<I", len(body)) + body + payload], descriptors)


def ask(connection, number, row, ids):
    """Sends the request of a row and checks the reply."""
    command, _, request, expected, content = row
    where = f"reply to {command or request}"
    send(connection, {1: number, **request}, ids)
    body, descriptors = receive(connection)
    check(where, body, {1: number, **expected}, ids)
    found = receive_bytes(connection, decode(body).get(7, 0))
    for descriptor in descriptors:
        with mmap.mmap(descriptor, 4096, prot=mmap.PROT_READ) as block:
            found = block[:]
        os.close(descriptor)
    if not found.startswith(content):
        sys.exit(f"{where}: {found!r}: expected {content!r}")


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    for _ in range(6000):
        try:
            connection.connect(path)
            return connection
        except OSError:
            time.sleep(0.01)
    sys.exit("the daemon does not listen")


def test_daemon(program, directory):
    path, ids = f"{directory}/shufd.sock", {}
    with subprocess.Popen([program, "--no-config", "--backend=cpu", "--log-level=warning", "--socket", path]) as daemon:
        try:
            connection = connect(path)
            for number, row in enumerate([HELLO, *FRAMES], 1):
                ask(connection, number, row, ids)
        finally:
            daemon.terminate()


# ---- As the daemon of 0.1.0 ------------------------------------------------------------------------------------------


def block_of(content):
    descriptor = os.memfd_create("record", os.MFD_ALLOW_SEALING)
    os.write(descriptor, content.ljust(4096, b"\0"))
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return descriptor


def answer(connection, body, row):
    """Checks a request against the row, and sends its reply."""
    command, _, request, fields, content = row
    check(f"request of {command}", body, request, CHOSEN)
    fields = {1: decode(body)[1], **fields}
    if fields.get(5, {}).get(18):  # by a descriptor
        descriptor = block_of(content)
        send(connection, fields, CHOSEN, descriptors=[descriptor])
        os.close(descriptor)
    else:
        send(connection, {**fields, **({7: len(content)} if content else {})}, CHOSEN, content)


def serve(listener, row):
    """Serves shufctl: a Hello, the request of the row, and the release of its lease."""
    connection = listener.accept()[0]
    release = ("release", None, {5: {1: ["$lease"]}}, {8: {}}, b"")
    for step in (HELLO, row, release):
        body, _ = receive(connection)
        if body is None:
            break
        answer(connection, body, step)


def contains(found, expected):
    """Whether JSON has these fields."""
    if isinstance(expected, dict):
        return all(name in found and contains(found[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(contains, found, expected))
    return found == expected


def test_client(program, path, row):
    command, expected = row[:2]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with subprocess.Popen([program, *command.split(), "--socket", path], stdout=subprocess.PIPE, text=True) as client:
            serve(listener, row)
            printed = client.stdout.read()
    os.unlink(path)
    if not (contains(json.loads(printed), expected) if isinstance(expected, dict) else expected == " ".join(printed.split())):
        sys.exit(f"shufctl {command}: printed {printed}expected {expected}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        test_daemon(sys.argv[1], directory)
        for row in FRAMES:
            if row[0]:
                test_client(sys.argv[2], f"{directory}/{row[0].split()[0]}.sock", row)
    print(f"{len(FRAMES)} frames")


main()
