#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the first inputs of each fuzz target. seeds.py FOLDER writes those of target NAME to FOLDER/NAME.

The corpora beside this file began with these, and have grown by tests/fuzz/run --keep.
"""
import pathlib
import struct
import sys


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(fields):
    """Fields by number: an int, bytes or str, a float, a dict (nested), or a list (packed)."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
            continue
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, dict):
            value = message(value)
        elif isinstance(value, list):
            value = b"".join(varint(v) for v in value)
        elif isinstance(value, str):
            value = value.encode()
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def frame(fields):
    packed = message(fields)
    return struct.pack("<I", len(packed)) + packed


def places(*values):
    return b"".join(struct.pack("<Q", v) for v in values)


HELLO, RESULT, STATUS, RELEASE, LEASES, INDEX, WRITE, DROP, METRICS = range(2, 11)
PERMUTE, STREAM, SHUFFLE, EXCHANGE, BUFFER = range(16, 21)


def ask(kind, fields, delivery=None):
    """A request for a result, which comes inline unless `delivery` says more."""
    return {1: 2, RESULT: {1: delivery or {1: [1]}, kind: fields}}


REQUESTS = {
    "hello": {1: 1, HELLO: {1: 1, 2: "fuzz"}},
    "permute": ask(PERMUTE, {1: {2: 1000, 3: 7}}),
    "permute_slice": ask(PERMUTE, {1: {1: "philox24", 2: 1000}, 3: {1: 5, 2: 20, 3: 7}, 5: 2}, {1: [1, 2], 5: 1}),
    "permute_shard": ask(PERMUTE, {1: {1: "lcg", 2: 1001, 5: 3}, 2: 2, 4: {1: 1, 2: 4, 3: 1, 4: 2, 5: 9}}, {1: [2]}),
    "permute_large": ask(PERMUTE, {1: {2: 1 << 62}, 3: {1: (1 << 62) - 3, 2: 3, 3: 1}, 5: 3}, {6: 77}),
    "permute_above": ask(PERMUTE, {1: {2: (1 << 62) + 1}, 3: {1: 0, 2: 1, 3: 1}}),
    "permute_key": ask(PERMUTE, {1: {2: 10, 4: "name"}}, {2: {1: [1, 2], 2: [3], 3: 1}, 8: 1}),
    "permute_without": {1: 2, RESULT: {PERMUTE: {}}},
    "prefetch": ask(PERMUTE, {1: {2: 1000}}, {1: [2], 3: 1}),
    "status": {1: 3, STATUS: {}},
    "release": {1: 4, RELEASE: {1: [1, 2], 2: [5]}},
    "release_all": {1: 4, RELEASE: {3: 1}},
    "leases": {1: 5, LEASES: {1: 2}},
    "index": {1: 6, INDEX: {1: {1: "primefold", 2: 100}, 2: 1, 3: places(0, 1, 99)}},
    "gauss": ask(STREAM, {1: 1, 3: 7, 7: 100, 8: 0.5, 9: 2.0, 10: 5}, {1: [1], 7: 1}),
    "box_muller": ask(STREAM, {1: 1, 2: 1, 5: 9, 6: 5, 7: 100, 9: 1.0, 10: 4}, {1: [2]}),
    "uniform": ask(STREAM, {1: 2, 7: 100, 10: 1}, {1: [2], 4: 1, 5: 1}),
    "exponential": ask(STREAM, {1: 4, 7: 100, 8: 2.5, 10: 5}, {1: [2], 7: 1}),
    "bernoulli": ask(STREAM, {1: 5, 7: 100, 8: 0.1, 10: 2}, {1: [2]}),
    "integers": ask(STREAM, {1: 6, 7: 100, 10: 1, 11: 1000}, {1: [2]}),
    "buffer": ask(BUFFER, {1: 4096}, {1: [2]}),
    "buffer_with_sums": ask(BUFFER, {1: 4096}, {1: [2], 7: 1}),
    "write": {1: 9, WRITE: {1: 1, 2: 8, 3: b"values"}},
    "shuffle": ask(SHUFFLE, {1: {1: "philox24", 2: 10, 3: 1}, 2: 1, 3: 8, 4: 1}, {1: [2], 4: 1}),
    "exchange": ask(EXCHANGE, {1: {2: 1000, 3: 7}, 3: 2, 4: 3}, {1: [2]}),
    "exchange_sizes": ask(EXCHANGE, {1: {2: 9, 5: 1}, 2: 1, 4: 3, 5: places(4, 0, 5), 6: places(8, 1, 0)}, {3: 1}),
    "one_sided": ask(EXCHANGE, {1: {2: 1 << 38}, 3: 63, 4: 64, 7: 65536}, {1: [2]}),
    "one_sided_sizes": ask(EXCHANGE, {1: {2: (1 << 32) + 9}, 3: 1, 4: 3, 5: places(9, 1 << 32, 0),
                                      6: places(0, (1 << 32) + 9, 0), 7: 1 << 31}),
    "drop": {1: 11, DROP: {1: 0}},
    "metrics": {1: 12, METRICS: {1: 1}},
}

SUMS = {1: 0.0, 2: 1.0, 3: 1.5, 4: 100.0, 5: 2.0, 6: 300.0, 7: -3.0, 8: 3.0}
MEMFD = {2: 1, 3: 1, 4: 100, 5: 400, 10: "cpu", 11: "a device", 12: 2, 13: 1, 14: 1, 15: 4096, 18: 1}


def result(**changes):
    fields = {1: "primefold", 2: 1, 3: 1, 4: 100, 5: 400, 6: 5000, 10: "cpu", 11: "a device", 12: 1}
    fields.update({int(key[1:]): value for key, value in changes.items()})
    return fields


# Of the target `replies`: the call, the descriptor, then the stream that the daemon sends.
def replies():
    values = bytes(400)
    ok = {1: 2, 7: 400, 5: result()}
    streams = {
        "permute": (0, 0, frame(ok) + values),
        "permute_each": (1, 0, frame(ok) + values),
        "summarize": (2, 0, frame({1: 2, 5: result(_12=0, _7=99, _8=[1, 2], _9=[3])})),
        "draw": (3, 0, frame({1: 2, 7: 400, 5: result(_1="", _2=5, _22=1, _23=SUMS)}) + values),
        "draw_summary": (4, 0, frame({1: 2, 5: result(_1="", _2=5, _12=0, _22=1, _23=SUMS)})),
        "index": (5, 0, frame({1: 2, 10: {1: "primefold", 2: places(3, 1, 2)}})),
        "lease": (6, 1, frame({1: 2, 5: {1: "primefold", **MEMFD}}) + frame({1: 3, 8: {}})),
        "lease_of_a_short_file": (6, 2, frame({1: 2, 5: {1: "primefold", **MEMFD}}) + frame({1: 3, 8: {}})),
        "lease_behind_the_file": (6, 1, frame({1: 2, 5: {1: "primefold", **MEMFD, 15: 8192, 16: 4096}})
                                  + frame({1: 3, 8: {}})),
        "lease_of_a_device": (6, 3, frame({1: 2, 5: {1: "primefold", **MEMFD}}) + frame({1: 3, 8: {}})),
        "lease_inline": (6, 0, frame(ok) + values),
        "leases": (7, 0, frame({1: 2, 9: {1: {1: 1, 2: 5, 4: 2, 10: 1, 11: 9, 12: {16: {1: {1: "lcg", 2: 9}}}}, 2: 0}})),
        "status": (8, 0, frame({1: 2, 6: {1: "shufd", 2: "cpu", 5: 9, 7: 1, 22: {1: 0, 2: 1, 5: 4096}}})),
        "drop": (9, 0, frame({1: 2, 12: {1: 1, 2: 4096}})),
        "metrics": (10, 0, frame({1: 2, 7: 8, 13: {}}) + b"a 1\n# x\n"),
        "buffer": (11, 4, frame({1: 2, 5: {**MEMFD, 4: 4096, 5: 4096, 2: 0}}) + frame({1: 3, 8: {}})),
        "shuffle_lease": (12, 1, frame({1: 2, 5: {1: "primefold", **MEMFD}})
                          + frame({1: 3, 5: {**MEMFD, 1: "primefold", 2: 0, 4: 50, 5: 400, 13: 2, 18: 0, 24: 8}})
                          + frame({1: 4, 8: {}}) + frame({1: 5, 8: {}})),
        "shuffle": (14, 4, frame({1: 2, 5: {**MEMFD, 2: 0, 4: 400}})
                    + frame({1: 3, 5: {**MEMFD, 1: "primefold", 2: 0, 4: 50, 5: 400, 13: 2, 18: 0, 24: 8}})
                    + frame({1: 4, 8: {}}) + frame({1: 5, 8: {}})),
        "shuffle_local": (14, 0, frame({1: 2, 2: 5, 3: "no memory"}) + frame(ok) + values),
        "inline_buffer": (15, 0, frame({1: 2, 5: {2: 0, 3: 1, 4: 4096, 5: 4096, 10: "cpu", 12: 1, 13: 1, 14: 1,
                                                  15: 4096}}) + frame({1: 3, 11: {}}) + frame({1: 4, 8: {}})),
        "parts": (0, 0, frame({1: 2, 2: 5, 3: "no memory"}) + frame(ok) + values),
        "prefetch": (13, 0, frame({1: 2, 5: result(_12=0)})),
        "refused": (0, 0, frame({1: 2, 2: 3, 3: "the queue is full"})),
        "version": (0x80, 0, frame({1: 1, 2: 7, 3: "other version", 4: {1: 2, 2: "shufd 9"}})),
        "hello": (0x80, 0, frame({1: 1, 4: {1: 1, 2: "shufd", 3: "cpu"}}) + frame(ok) + values),
        "unmap": (6, 1, frame({1: 2, 14: 1, 5: {1: "primefold", **MEMFD}}) + frame({1: 3, 14: 1, 8: {}})),
    }
    return {name: bytes([call, fd]) + stream for name, (call, fd, stream) in streams.items()}


def npy(header, version=1):
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text


NPY = {
    "plain": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10, 3), }"),
    "structure": npy("{'descr': [('a', '<i2'), ('b', '|S3', (2,)), ('c', [('d', '<f8')])], "
                     "'fortran_order': False, 'shape': (5,), }"),
    "fortran": npy('{"shape": (4, 2), "fortran_order": True, "descr": ">u8"}', 2),
    "unicode": npy("{'descr': [('\u00e4', '<U4')], 'fortran_order': False, 'shape': (1,)}", 3),
    "time": npy("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2, 2)}"),
    "scalar": npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}"),
    "short": b"\x93NUMPY\x01\x00\xff\xff",
    "escape": npy("{'\x1b]52;c;x\x07': 1}"),
}

CONFIG = {
    "some": b"# a comment\nsocket = /run/shufd/shufd.sock\nhost_memory = 25%\nqueue=8\n  cache_time = 10min\n",
    "log": b"log_level = debug\nsocket_mode = 0660\nmetrics = 127.0.0.1:9180\n; end\n",
    "bad_key": b"sockte = x\n",
    "section": b"[shufd]\nqueue = 2\n",
    "twice": b"queue = 2\nqueue = 3\n",
    "nul": b"queue\x00 = 2\n",
    "textfile": b"metrics_file = /var/lib/x.prom\nbackend = cpu:avx2\nkeys = /etc/keys ; comment\n",
}

VALUES = {
    0: ["1000001", "1025", "1e9", "0x7f", "1_000", "8GiB", "1.5k", "18446744073709551615"],
    1: ["-3", "0.25", "1e-3", "nan", "1e308", "4.9e-324"],
    2: ["10min", "0.5s", "50us", "3", "1h"],
    3: ["25%", "8Gi", "100%", "0"],
    4: ["f32", "float64", "<f2", "bfloat16", "u32"],
    5: ["", "philox24", "primefald"],
    6: ["off", "unix:/run/x.sock", "127.0.0.1:9180", "[::1]:80"],
    7: ["/run/shufd/shufd.sock"],
    8: ["name-1.x", "a.group"],
    9: ["queue 8", "socket_mode 0660", "host_memory 25%", "log_level info"],
    10: ["\x1b[31m\u00e9\u20ac\U0001f600", "\xff"],
}

OPTIONS = {
    "permute": "permute\n--n\n1e9\n--seed=7\n--offset\n3\n--count=10\n--stride\n2",
    "permute_out": "permute\n--n=100\n--seed\n1\n--epoch\n3\n--epochs\n2\n--out\nx.npy\n--format=npy",
    "permute_outside": "permute\n--n=10\n--seed=7\n--offset=20\n--count=5",
    "permute_key": "permute\n--n=10\n--key=name\n--algorithm=lcg\n--dtype=u64\n--json",
    "permute_lease": "permute\n--n=10\n--seed=7\n--transport=memfd\n--quiet\n--socket\n/x",
    "permute_prefetch": "permute\n--n=10\n--seed=7\n--prefetch",
    "shard": "permute\n--n=1000\n--seed=7\n--rank\n1\n--world\n4\n--step\n2\n--drop-last",
    "shard_outside": "permute\n--n=1000\n--seed=7\n--rank=4\n--world=4",
    "permute_chunks": "permute\n--chunks=/nowhere\n--window=2\n--seed=7",
    "index_chunks": "index\n--chunks\n/dev/null\n--window=2\n--seed=7\n--at=1",
    "index": "index\n--n\n100\n--seed=7\n--at\n1,2,5\n--inverse\n--json",
    "index_input": "index\n--n\n100\n--seed=7\n--at\n-\n--out=x.txt",
    "gauss": "gauss\n--count\n1e6\n--seed=7\n--mean\n-0.5\n--std=2\n--dtype\nf32\n--method=box-muller",
    "gauss_outside": "gauss\n--count=1\n--seed=7\n--std=1e300",
    "uniform": "uniform\n--count=5\n--seed=1\n--stream\n9\n--offset=0x10\n--out=-",
    "exponential": "exponential\n--count=5\n--seed=1\n--mean=0.25\n--dtype=f32",
    "integers": "integers\n--count=5\n--bound\n1e3\n--seed=1\n--dtype=u64\n--out=-",
    "bernoulli": "bernoulli\n--count=5\n--seed=1\n--probability=0.1\n--dtype\nu64\n--out=-",
    "mix": "mix\n--sizes\n8e9,2e6,5e5\n--weights=0.7,0.2,0.1\n--seed=7\n--count=20\n--stride=3",
    "mix_stages": "mix\n--sizes=9,5\n--seed=7\n--epochs\n3,0\n--chunk=2,0\n--window=2,0\n--stage=20:1/3,1e-2\n"
                  "--block=8\n--until=all-exhausted\n--out=x.npy",
    "mix_counts": "mix\n--sizes=9,5\n--seed=7\n--epochs=2\n--offset=3\n--counts\n--json",
    "mix_wrong": "mix\n--sizes=9,5\n--seed=7\n--weights=0.1234567890123456789,1/3\n--count=1",
    "shuffle": "shuffle\n--record\n8\n--in\nin.bin\n--seed=7\n--out\nout.bin\n--inverse",
    "help": "permute\n--help",
    "unknown": "gauss\n--cuont\n4",
}


# Of the target `state`: its steps by name, in the order of the table in fuzz_state.c, and the bytes that
# each takes from the script. The first byte is the client. Client 3 is of the daemon's user.
STEPS = ("permute stream exchange shuffle buffer write release index drop status leases metrics large_summary "
         "permute permute permute release hello hello end pause garbage refuse reload reload unmap").split()
AT_ONCE = 0x80  # the next step does not wait for the reply

COPY, LEASE, MAP = 32, 64, 128  # flags of a result
FINGERPRINT, PREFETCH, GIVES_BACK = 1, 6, 24
ONE_SIDED = 128  # of the rank of an exchange


def steps(script, flag=0):
    return b"".join(bytes([STEPS.index(name) | flag, *fields]) for name, *fields in script)


HELLOS = [("hello", client, 0) for client in range(1, 4)]
STATE = {
    "lease": [("permute", 0, LEASE | MAP | FINGERPRINT, 4, 2, 0, 0), ("permute", 0, LEASE, 4, 2, 0, 0),
              ("status", 0), ("leases", 0, 255), ("release", 0, 3, 0), ("unmap", 0), ("drop", 0, 2)],
    "views": [("permute", 0, COPY | FINGERPRINT, 48, 3, 1, 1, 9, 3), ("permute", 0, COPY, 0, 3, 2, 2, 29, 7),
              ("permute", 0, COPY, 1, 4, 0, 0), ("permute", 0, COPY, 2, 4, 0, 1, 99, 0)],
    "streams": [("stream", 0, COPY | FINGERPRINT, 2, 65, 20, 1), ("stream", 0, LEASE | MAP, 3, 0, 9, 0),
                ("stream", 0, COPY, 0, 0, 9, 0), ("stream", 0, FINGERPRINT, 7, 1, 9, 129)],
    "keys": [*HELLOS, ("permute", 2, COPY, 0, 2, 129, 0), ("permute", 3, LEASE | MAP, 0, 2, 130, 0),
             ("permute", 2, COPY, 0, 2, 130, 0), ("reload", 19), ("permute", 2, COPY, 0, 2, 129, 0),
             ("index", 3, 48, 1, 2, 3, 130), ("reload", 20), ("permute", 2, COPY, 0, 2, 129, 0)],
    "exchange": [("exchange", 0, LEASE | MAP, 12, 200, 1, 0), ("exchange", 0, LEASE, 12, 200, 1, 0),
                 ("exchange", 0, COPY, 206, 255, 2, 9, 50, 60, 70, 1, 2, 3, 0),
                 ("exchange", 0, PREFETCH | LEASE, 80, 99, 0, 40, 50, 60, 70, 80, 129)],
    "one_sided": [("exchange", 0, LEASE | MAP, 12, 200, ONE_SIDED | 1, 0), ("exchange", 0, LEASE | MAP, 12, 200, 1, 0),
                  ("exchange", 0, LEASE, 12, 200, ONE_SIDED | 1, 0), ("exchange", 0, LEASE, 12, 200, ONE_SIDED | 6, 0),
                  ("exchange", 0, COPY, 206, 255, ONE_SIDED | 2, 9, 50, 60, 70, 1, 2, 3, 0),
                  ("exchange", 0, PREFETCH | LEASE, 80, 99, ONE_SIDED, 40, 50, 60, 70, 80, 129)],
    "shuffle": [("permute", 0, LEASE | MAP, 0, 3, 0, 0), ("shuffle", 0, COPY, 64, 0, 0, 1),
                ("shuffle", 0, LEASE | MAP, 96, 0, 0, 129), ("shuffle", 0, COPY, 3, 0, 9, 0)],
    "buffer": [("buffer", 0, LEASE | MAP, 30), ("write", 0, 0, 3, 200), ("shuffle", 0, LEASE, 7, 0, 99, 0),
               ("buffer", 0, COPY, 30), ("write", 0, 1, 0, 255), ("release", 0, 7, 0)],
    "users": [*HELLOS, *[("permute", client, LEASE | MAP, 32, 6, client, 0) for client in range(4)],
              ("reload", 11), ("reload", 13), *[("permute", 2, LEASE, 32, 6, i, 0) for i in range(3)],
              ("leases", 2, 255), ("leases", 3, 255), ("status", 2), ("status", 3), ("metrics", 2, 1),
              ("drop", 3, 1, 2), ("drop", 2, 0), ("drop", 3, 0)],
    "large": [("large_summary", 0, 0, 129)],
    "prefetch": [("permute", 0, PREFETCH | LEASE, 0, 4, 0, 0), ("permute", 0, LEASE | MAP, 0, 4, 0, 0),
                 ("permute", 0, LEASE | GIVES_BACK, 0, 0, 4, 1, 0), ("refuse", 2),
                 ("permute", 0, LEASE, 0, 5, 2, 0), ("end", 0)],
}


def corpora():
    yield "requests", {name: message(fields) for name, fields in REQUESTS.items()}
    frames = {name: frame(REQUESTS["hello"]) + frame(fields) for name, fields in REQUESTS.items()}
    frames["all"] = b"".join(frame(fields) for fields in REQUESTS.values())
    frames["bad_length"] = frame(REQUESTS["hello"]) + b"\xff\xff\xff\xff"
    frames["too_long"] = frame(REQUESTS["hello"]) + struct.pack("<I", 65537) + bytes(40)
    yield "frames", frames
    yield "replies", replies()
    yield "npy", NPY
    yield "config", CONFIG
    yield "values", {f"{kind}-{i}": bytes([kind]) + text.encode()
                     for kind, texts in VALUES.items() for i, text in enumerate(texts)}
    yield "options", {name: text.encode() for name, text in OPTIONS.items()}
    yield "kernels", {f"{kind}-{i}": bytes([kind]) + bytes((i * 37 + j * (5 + i)) % 256 for j in range(48))
                      for kind in range(6) for i in range(4)}
    yield "state", {f"{name}{suffix}": steps(script, flag) for name, script in STATE.items()
                    for suffix, flag in (("", 0), ("-at-once", AT_ONCE))}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, inputs in corpora():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for key, content in inputs.items():
            (folder / name / key).write_bytes(content)


if __name__ == "__main__":
    main()
