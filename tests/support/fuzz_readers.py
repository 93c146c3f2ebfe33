"""Gives mutated inputs to the native readers, which must return valid columns or a clear error.

The script ``python tests/support/fuzz_readers.py --n 100000`` runs many mutants, and
``tests/native/readers/test_readers.py`` runs a few.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from isolang import _native

Read = Callable[[bytes], object]

INIT, NULL, UNIVERSAL = 0xBEBEEBEE, 0xDEADBEEF, 0xABDDEFEE


def bincode(
    sessions: Sequence[Sequence[tuple[Sequence[tuple[bool, int, int, bool]], bool]]],
) -> bytes:
    """Return sessions in dbcop's binary format.

    A transaction is a pair (events, success). An event is (write, variable, value, success).
    """
    out = [struct.pack("<5Q", 7, len(sessions), 2, 3, 4)]
    for text in ("PostgreSQL", "2024-10-31T15:14:38.697607399+08:00", "2024-10-31T15:14:39+08:00"):
        out.append(struct.pack("<Q", len(text)) + text.encode())
    out.append(struct.pack("<Q", len(sessions)))
    for session in sessions:
        out.append(struct.pack("<Q", len(session)))
        for events, success in session:
            out.append(struct.pack("<Q", len(events)))
            out += [struct.pack("<?QQ?", *event) for event in events]
            out.append(struct.pack("<?", success))
    return b"".join(out)


def cobra(records: Sequence[tuple[object, ...]]) -> bytes:
    """Return records in Cobra's binary format.

    A record is ("S", txn[, ts]), ("W", wid, key, value), ("R", txn, wid, key, value), ("C", txn[,
    ts]) or ("A",).
    """
    return b"".join(
        str(op).encode() + struct.pack(f">{len(numbers)}q", *numbers) for op, *numbers in records
    )


EDN = [
    b"""{:type :invoke, :f :init, :value {:x 1, :y 2}, :process 0}
{:type :ok, :f :init, :value {:x 1, :y 2}, :process 0}
{:type :ok, :f :txn, :value [[:rp [:= 1] {:x 1}] [:delete :y nil]], :process 1}
""",
    b"""{:type :invoke, :f :txn, :value [[:w :x 1] [:r 2 nil]], :process 0, :time 10, :index 0}
{:type :invoke, :f :txn, :value [[:r :x nil]], :process 1, :time 11, :index 1}
{:type :ok, :f :txn, :value [[:w :x 1] [:r 2 "a\\u00e9\\n"]], :process 0, :time 12, :index 2}
{:type :info, :f :kill, :value [["n1" "n2"] ["n3"]], :process :nemesis, :time 13, :index 3}
{:type :fail, :f :txn, :value [[:r :x nil]], :process 1, :error [:timeout {:a #{1 2}}], :index 4}
""",
    b"""; lists
[#jepsen.history.Op{:index 0 :type :invoke :process 3 :value [[:append 5 1] [:r 5 nil]]}
 #_ #_ {:type :no} "gone" #jepsen.history.Op{:index 1, :type :ok, :process 3, :value
   [[:append 5 1] (:r 5 [1, 2 -3.50 18446744073709551615 99999999999999999999
     \\a #{3 2} {:k [1]} ##NaN])]}
 {:index 2 :type :invoke :process 3 :value [[:append 5 1/2]]}
 {:index 3 :process 3 :type :info :value nil}]
""",
    b"""[{"type": "invoke", "f": "txn", "value": [["w", "x", 2], ["r", "y", null]], "process": 0,
  "time": 1.5},
 {"type": "ok", "f": "txn", "value": [["w", "x", 2], ["r", "y", [1, true]]], "process": 0},
 {"process": "nemesis", "type": "info", "f": "start", "value": {"a": [1, {"b": "}"}]}}]
""",
    b"{:type :ok :value [[:append 1 2]]}\n{:type :ok :value [[:r 1 [2]]]}\n",
]
BINCODE = [
    bincode([[([(True, 0, 1, True), (False, 2**64 - 1, 0, False)], True), ([], False)], []]),
    bincode([[([(False, 3, 7, True)], True)], [([(True, 3, 7, True)] * 3, False)] * 2]),
]
COBRA = [
    (
        cobra([("S", 1), ("W", 10, 5, 7), ("C", 1), ("S", 2), ("R", 1, 10, 5, 7), ("A",)]),
        cobra([("S", 9), ("R", INIT, INIT, 5, 3), ("R", 2, 11, 5, 3), ("C", 9), ("S", 8)]),
    ),
    (
        cobra([("S", 1), ("W", UNIVERSAL, -5, 7), ("C", 1)]),
        cobra([("S", 2), ("R", UNIVERSAL, UNIVERSAL, -5, 7), ("R", NULL, NULL, 6, 0), ("C", 2)]),
    ),
    (
        cobra([("S", 1, 100), ("W", 10, 5, 7), ("C", 1, 200)]),
        cobra([("S", 2, 150), ("R", 1, 10, 5, 7), ("C", 2, 300)]),
    ),
]
PLUME = [
    b"w(0,1,1,1)\nr(0,1,1,2)\nw(7,9,2,-1)\nw(0,18446744073709551615,1,1)\nr(7,0,2,3)\n",
    b"r(1,0,5,4)\r\nw(1,0,5,4)\r\n\r\nw(2,3,5,-1)\r\nw(2,4,6,-1)\r\nr(1,2,5,-1)\r\n",
]
AWDIT = [
    b"w 0 0\nw 1 0\n=====\nw 0 1\n-----\nr 0 1\nr 1 0\n=====\nr 0 1",
    b"r 5 6\n---\n---\n=\nw 5 6\n",
]
HIST = [
    b"""// two sessions
[x:=1 y==0 z==?] [x:=2]!   // and a comment
---
-----  // empty
[ x == 18446744073709551615
  w_2 := 7 ] ! [x==0 y:=3]
--
"""
]
DBCOP_JSON = [
    b"""{"params": {"id": 1, "n_node": 2}, "info": "a", "start": "2020", "end": null, "data": [
 [{"events": [{"Write": {"variable": 1, "version": 1}}, {"Read": {"version": 0, "variable": 2}}],
   "committed": true}, {"committed": false, "events": []}],
 [], [{"events": [["r", 1, null], ["w", 18446744073709551615, 2], ["r", 1, 1]], "committed": true}]
]}
""",
    b'[[{"events":[{"Read":{"variable":1,"version":null}}],"committed":true}],[]]\n',
]
REGISTERS = [
    b"""{:type :invoke, :f :write, :value 1, :process 0, :index 0}
{:type :invoke, :f :cas, :value [1 2], :process 1, :index 1}
{:type :ok, :f :write, :value 1, :process 0, :index 2}
{:type :fail, :f :cas, :value [1 2], :process 1, :error :did-not-match, :index 3}
{:type :info, :f :start, :process :nemesis, :index 4}
{:type :invoke, :f :acquire, :process 2, :value nil, :index 5}
""",
    b"""[{:process 0, :type :invoke, :f :read, :value [a nil]}
{:process 0, :type :ok, :f :read, :value [a 5]}
{:process 1, :type :ok, :f :cas, :value [a [5 nil]]} {:process 1, :type :info, :f :cas}]
""",
    b"""INFO  jepsen.util - 0\t:invoke\t:cas\t[1 0]
INFO  jepsen.util - 0\t:fail\t:cas\t:timed-out
INFO  other - x
INFO  jepsen.util - 1 :ok :read 3
""",
    b"""{:process 0, :type :invoke, :f :append, :key "0", :value "ab"}
{:process 0, :type :ok, :f :append, :key "0", :value "ab"}
{:process 1, :type :invoke, :f :put, :key "0", :value "cd"}
{:process 1, :type :info, :f :put, :key "0", :value "cd"}
{:process 0, :type :ok, :f :get, :key "0", :value "cdab"}
{:process 0, :type :ok, :f :append, :key "0", :value "ab"}
""",
]
VIPER = [
    b"""{"value": [["w", 1, 1, true], ["r", 2, "nil", false]]}
{"value": [["r", 1, -9223372036854775808, false], ["w", 2, 18446744073709551615, false]]}

{"value": []}\r
{ "value" : [ [ "i" , "a" , 1 , null, false, true ] , ["w", 1, 2.5, true]], "x": {"y": [1]}}
""",
    b"""{"value": [["w", 1, 1, true], ["r", 2, 5, true]]}
{"value": [["w", 1, 2, false], ["r", 2, 5, false]]}
{"value": [["range", 0, 9, [{"id": 1, "val": 3}], []]], "isInitial": true}
""",
    b"""{"value": [["w", 1, 1, true], ["range", 0, 9, [{"id": 1, "val": 1}], [], false]]}
{"value": [["range", "nil", 5, [{"id": 1, "val": 1}], [{"id": 2, "val": 4}], true], ["r", 3, 5]]}
{"value": [["d", 2, 4, 3, false, true], ["range", 2, null, [], []]]}
""",
]


def read_one_viper_log(data: bytes) -> object:
    """Read a Viper log that is the only log of its history."""
    return _native.read_viper([("a.log", data)])


def readers() -> list[tuple[str, Read, bytes]]:
    """Return (format, reader, sample) for each sample."""
    out: list[tuple[str, Read, bytes]] = []
    out += [("edn", _native.read_edn, sample) for sample in EDN]
    out += [("registers", _native.read_registers, sample) for sample in REGISTERS]
    out += [("bincode", _native.read_bincode, sample) for sample in BINCODE]
    out += [("plume", _native.read_plume, sample) for sample in PLUME]
    out += [("awdit", _native.read_awdit, sample) for sample in AWDIT]
    out += [("hist", _native.read_hist, sample) for sample in HIST]
    out += [("dbcop-json", _native.read_dbcop_json, sample) for sample in DBCOP_JSON]
    out += [("viper", read_one_viper_log, sample) for sample in VIPER]
    for first, second in COBRA:
        for timestamps in (False, True):

            def one(data: bytes, other: bytes = second, ts: bool = timestamps) -> object:
                return _native.read_cobra([("a.log", data), ("b.log", other)], ts)

            def two(data: bytes, other: bytes = first, ts: bool = timestamps) -> object:
                return _native.read_cobra([("a.log", other), ("b.log", data)], ts)

            out += [("cobra", one, first), ("cobra", two, second)]
    return out


def mutate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Apply one to four random edits to an input; usually one, so many mutants stay readable."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        to = min(len(out), at + rng.choice((1, 2, 4, 8, 16, 64)))
        match rng.randrange(12):
            case 0:
                del out[at:]
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at:to] = rng.randbytes(to - at)
            case 3:
                out[at:at] = rng.randbytes(rng.randint(1, 9))
            case 4:
                out[at:at] = out[at:to] * rng.randint(1, 3)
            case 5:
                other = rng.choice(others)
                cut = rng.randrange(len(other) + 1)
                out[at:] = other[cut:]
            case 6:
                del out[at:to]
            case 7:
                piece = rng.choice(PIECES)
                out[at:at] = piece
            case 8:
                tokens = bytes(out).split(b" ")
                i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
                tokens[i], tokens[j] = tokens[j], tokens[i]
                out = bytearray(b" ".join(tokens))
            case 9 | 10 if digits := [i for i, byte in enumerate(out) if 48 <= byte < 58]:
                out[rng.choice(digits)] = rng.choice(b"0123456789")
            case _:
                out[at : at + 8] = rng.choice(NUMBERS)
    return bytes(out)


PIECES = [
    *(bytes([byte]) for byte in b'()[]{}";:#\\,-=\n'),
    *(b"#_", b"#{", b" nil ", b" null ", b" -1", b" 0 ", b" 1N ", b" ## ", b" #a "),
    b":type :info",
    b":type",
    b"[" * 50,
    b"#_" * 50,
    b"[[:r 1 [1 2]]]",
    b'"\\ud800"',
    b"\xff\xfe",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"0" * 30,
    b"1e999",
]
NUMBERS = [
    struct.pack(order + "Q", n)
    for order in "<>"
    for n in (0, 1, 2**31, 2**63, 2**64 - 1, INIT, UNIVERSAL)
]


def outcome(read: Read, data: bytes) -> str:
    """Return ``read``, ``refused`` or ``unsupported``; all other exceptions are raised."""
    try:
        result = read(data)
    except _native.ReadError as e:
        return "refused" if ": " in str(e) else "refused without a place"
    except _native.UnsupportedInput as e:
        return "unsupported" if ": " in str(e) else "unsupported without a place"
    assert isinstance(result, tuple)
    columns, remarks = result
    columns.validate()
    assert isinstance(remarks, dict)
    for number in range(columns.n_keys()):
        columns.key(number)  # raises an error unless keys and values are valid text
    for number in range(columns.n_values()):
        columns.value(number)
    return "read"


def fuzz(n: int, seed: int) -> Counter[tuple[str, str]]:
    """Read n mutants of the samples in turn, and return how often each (format, outcome) occurred.

    Raises:
        AssertionError: if the columns are invalid, or if the reader raises any other exception. The
            message contains the input.
    """
    rng = random.Random(seed)
    samples = readers()
    everything = [data for _, _, data in samples]
    counts: Counter[tuple[str, str]] = Counter()
    for i in range(n):
        name, read, data = samples[i % len(samples)]
        mutant = mutate(rng, data, everything)
        try:
            counts[name, outcome(read, mutant)] += 1
        except Exception as e:
            raise AssertionError(f"{name}, input {i} of seed {seed}: {mutant!r}") from e
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    counts = fuzz(options.n, options.seed)
    for (name, what), count in sorted(counts.items()):
        print(f"{name:8} {what:12} {count}")
    print(f"{options.n} inputs, seed {options.seed}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
