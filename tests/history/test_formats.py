"""One small file of each format, and what it is taken to mean."""

import bz2
import gzip
import io
import lzma
import shutil
import sys
import types

import pytest
from support.fuzz_readers import cobra as cobra_log
from support.paths import CORPORA
from support.paths import HISTORIES as DATA

from isolang import check
from isolang.api import load_history
from isolang.errors import HistoryError, UnsupportedError
from isolang.history import UNKNOWN, Keyword
from isolang.history.detect import detect, has_cobra_records
from isolang.history.formats import find_format

X, Y = Keyword("x"), Keyword("y")

# name → format, then per transaction: name, status, operations
EXPECTED = {
    "register.edn": (
        "edn",
        [
            ("T3", "committed", [("w", X, 1), ("r", Y, None)]),
            ("T1", "maybe", [("w", X, 2)]),
            ("T6", "aborted", [("w", X, 3)]),
            ("T8", "committed", [("r", X, 1)]),
        ],
    ),
    "list-append.edn": (
        "edn",
        [
            ("T1", "committed", [("append", 5, 1), ("append", 5, 2)]),
            ("T3", "committed", [("r", 5, [1, 2]), ("r", 6, [])]),
        ],
    ),
    "completions.edn": (
        "edn",
        [("T1", "committed", [("w", 1, "a")]), ("T2", "committed", [("r", 1, "a")])],
    ),
    "jepsen.json": ("jepsen-json", [("T1", "committed", [("w", "x", 2), ("r", "y", None)])]),
    "tiny.bincode": (
        "dbcop",
        [
            ("T1", "committed", [("w", 1, 5), ("r", 2, 0)]),
            ("T2", "aborted", [("w", 1, 6)]),
            ("T3", "committed", [("r", 1, 5), ("r", 2, 0)]),
        ],
    ),
    "dbcop.json": (
        "dbcop-json",
        [
            ("T1", "committed", [("w", 0, 1), ("r", 1, None)]),
            ("T2", "committed", [("r", 0, 1)]),
            ("T3", "aborted", [("w", 1, 2**64 - 1)]),
            ("T4", "committed", [("r", 1, None)]),
        ],
    ),
    "dbcop-compact.json": (
        "dbcop-json",
        [
            ("T1", "committed", [("w", 0, 0), ("r", 1, None)]),
            ("T2", "committed", [("r", 0, 0), ("r", 1, None)]),
        ],
    ),
    "session.hist": (
        "hist",
        [
            ("T1", "committed", [("w", "x", 1), ("w", "y", 2)]),
            ("T2", "committed", [("r", "y", 2), ("w", "x", 3)]),
            ("T3", "committed", [("r", "x", 1), ("r", "z", None)]),
            ("T4", "aborted", [("r", "y", None), ("w", "y", 4)]),
        ],
    ),
    "cobra": (
        "cobra",
        [
            ("T1001", "committed", [("w", 7, 70), ("r", 8, 80, "initial")]),
            ("T2001", "committed", [("r", 7, 70, (0, 0)), ("r", 9, None, "initial")]),
            ("T2002", "committed", [("r", 9, 90, "missing")]),
        ],
    ),
    "cobra-duplicates": (
        "cobra",
        [
            ("T1", "committed", [("w", 7, 70)]),
            ("T2", "committed", [("w", 7, 70)]),
            ("T3", "committed", [("r", 7, 70), ("r", 8, 5, "initial")]),
        ],
    ),
    "viper": (
        "viper",
        [
            ("T1", "committed", [("w", 1, 100), ("r", 2, 55, "initial"), ("w", 3, 7)]),
            ("T2", "committed", [("r", 1, 100)]),
            ("T3", "committed", [("r", 1, 100), ("w", 1, 900)]),
            ("T4", "committed", [("r", 1, 900), ("w", 1, 101), ("r", 4, None)]),
        ],
    ),
    "viper-initial": (
        "viper",
        [
            ("T0", "initial", [("w", 1, 10), ("w", 2, 20)]),
            ("T1", "committed", [("r", 1, 10), ("r", 3, None, "initial"), ("r", 2, 99)]),
        ],
    ),
    "isovista": (
        "viper",
        [
            ("T1", "committed", [("w", 1, 10), ("r", 2, None, "initial")]),
            ("T2", "aborted", [("w", 1, 11), ("r", 2, None, "initial")]),
        ],
    ),
    "plume.txt": (
        "plume",
        [
            ("T1", "committed", [("w", 0, 1), ("r", 1, 0)]),
            ("T-1", "aborted", [("w", 1, 5)]),
            ("T7", "committed", [("r", 0, 1)]),
        ],
    ),
    "awdit.txt": (
        "awdit",
        [
            ("T1", "committed", [("w", 0, 1), ("w", 1, 1)]),
            ("T2", "committed", [("w", 0, 2)]),
            ("T3", "committed", [("r", 0, 2), ("r", 1, 1)]),
        ],
    ),
}
EXPECTED["register.edn.gz"] = EXPECTED["register.edn"]
EXPECTED["plume.txt.zst"] = EXPECTED["plume.txt"]
EXPECTED["hist-00000"] = EXPECTED["tiny.bincode"]


def content(h):
    return [(h.name_of(i), t.status, t.ops) for i, t in enumerate(h.transactions())]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample(name):
    """Each sample is recognised by its content and means what it should."""
    form, expected = EXPECTED[name]
    if name.endswith(".zst"):
        pytest.importorskip("zstandard")
    h = load_history(DATA / name)
    assert h.format == form
    assert content(h) == expected
    assert content(load_history(str(DATA / name), format=form)) == expected
    assert len(h.sha256) == 64


@pytest.mark.parametrize("name", [n for n in EXPECTED if (DATA / n).is_file()])
def test_names_do_not_matter(name, tmp_path):
    """A file under another name, in a stream, or compressed, is the same history."""
    if name.endswith(".zst"):
        pytest.importorskip("zstandard")
    _, expected = EXPECTED[name]
    data = (DATA / name).read_bytes()
    assert content(load_history(io.BytesIO(data))) == expected
    other = tmp_path / "something.else"
    other.write_bytes(data if name.endswith((".gz", ".zst")) else gzip.compress(data))
    assert content(load_history(other)) == expected


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO((DATA / "plume.txt").read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    h = load_history("-")
    assert content(h) == EXPECTED["plume.txt"][1]
    assert h.where(0) == "<stdin>:1"


def test_real_time():
    """Lines or :index give real time; completions alone do not; Cobra's timestamps by option."""
    h = load_history(DATA / "register.edn")
    assert h.real_time == "the order of :index, from :invoke to :ok or :fail"
    times = [(t.begin, t.end) for t in h.transactions()]
    assert times == [(0, 3), (1, None), (5, 6), (7, 8)]
    h = load_history(DATA / "completions.edn")
    assert (h.columns.has_time, h.real_time) == (
        False,
        "none, because the file has only completions and no :invoke",
    )
    h = load_history(DATA / "cobra-times", timestamps=True)
    assert [(t.begin, t.end) for t in h.transactions()] == [(100, 200), (300, 400)]
    assert h.real_time == "the timestamps of start and commit"


def test_what_is_said():
    """How the input was understood, and what was ignored."""
    h = load_history(DATA / "register.edn")
    assert h.initial == "a read of nil or of the empty list"
    assert h.session == "one :process"
    assert h.session_names == ("0", "1", "2")
    assert h.ignored == (
        "1 operation that no client sent (:nemesis)",
        ":time (the order of operations decides)",
    )
    h = load_history(DATA / "cobra")
    assert h.session_names == ("T2", "T10")
    assert h.ignored == (
        "1 side file (.debug, .error, .wlog)",
        "other files of the folder: notes.txt",
    )
    assert h.notes == (
        "each read names its source by the id of the write",
        "1 read of a write that no log contains",
    )
    h = load_history(DATA / "cobra-duplicates")
    assert h.notes == ("every write id is 0xabddefee, so key and value identify a write",)
    h = load_history(DATA / "hist-00000")
    assert h.ignored == ("other files of the folder: README", "1 failed operation")
    assert [t.failed for t in h.transactions()] == [(), (), (1,)]
    assert h.initial_values() == {1: 0, 2: 0}
    h = load_history(DATA / "viper")
    assert h.ignored == ("1 failed operation",)
    assert h.notes == ("1 read of a value that no transaction wrote, which is the initial state",)
    assert h.session_names == ("J2", "J10")
    h = load_history(DATA / "viper-initial")
    assert h.initial_values() == {1: 10, 2: 20}
    assert h.counts()["sessions"] == 1
    h = load_history(DATA / "isovista")
    assert h.notes[:2] == (
        ("the fourth slot of an operation holds its transaction's outcome, as IsoVista writes it"),
        "1 transaction with the outcome false, which aborted",
    )
    h = load_history(DATA / "dbcop-compact.json")
    assert h.notes == (
        "1 read of version 0, which no transaction wrote and which is the initial state",
    )
    assert h.session_names == ("1", "3")
    assert h.ignored == ("1 session without transactions",)
    h = load_history(DATA / "awdit.txt")
    assert h.initial == "none, so a read of a number that no transaction wrote is a violation"


def test_places():
    """Transactions and operations are found in the file again."""
    h = load_history(DATA / "register.edn")
    assert h.where(3) == f"{DATA}/register.edn:10"
    h = load_history(DATA / "tiny.bincode")
    data = (DATA / "tiny.bincode").read_bytes()
    assert h.where(2).startswith(f"{DATA}/tiny.bincode byte ")
    position = int(h.where_op(3).rsplit(" ", 1)[1])
    assert data[position : position + 9] == b"\0" + (1).to_bytes(8, "little")
    h = load_history(DATA / "session.hist")
    assert [h.where_op(op) for op in (0, 4, 5)] == [
        f"{DATA}/session.hist:{line}" for line in (2, 4, 5)
    ]
    h = load_history(DATA / "viper")
    assert h.where(3) == f"{DATA}/viper/J10.log:2"
    h = load_history(DATA / "dbcop.json")
    assert h.where_op(3) == f"{DATA}/dbcop.json transaction 3, operation 1"


def test_initial_by_label():
    """--initial: the transaction with that label is T0, and its last writes are initial values."""
    h = load_history(DATA / "session.hist", initial=1)
    assert h.name_of(0) == "T0"
    assert h.initial_values() == {"x": 1, "y": 2}
    assert h.counts()["transactions"] == 3
    assert h.notes[-1] == "transaction 1 is the initial one, as requested"
    h = load_history(DATA / "cobra", initial=1001)
    assert h.transaction(1).ops[0] == ("r", 7, 70, "initial")


NUMBERS = "transactions have the number"
WRONG_INITIAL = [
    (
        "session.hist",
        9,
        ": no transaction has the number 9 (numbers run from 1 to 4); see `isocheck stats`",
    ),
    ("session.hist", 4, ": transaction 4 was aborted, so it cannot be the initial one"),
    (
        "list-append.edn",
        1,
        (
            ": transaction 1: the initial transaction cannot contain an append; lists start "
            "empty, so only a transaction with nothing but writes can be the initial one"
        ),
    ),
    (
        "viper-initial",
        1,
        ": the file itself declares another initial transaction; leave out --initial",
    ),
]


@pytest.mark.parametrize(("name", "label", "message"), WRONG_INITIAL)
def test_wrong_initial(name, label, message):
    with pytest.raises(HistoryError) as error:
        load_history(DATA / name, initial=label)
    assert str(error.value) == f"{DATA / name}{message}"


def test_initial_label_that_repeats():
    data = b"w(1,1,1,-1)\nw(1,2,1,3)\nw(1,3,1,-1)\n"
    with pytest.raises(HistoryError) as error:
        load_history(io.BytesIO(data), initial=-1)
    assert str(error.value) == (
        "<stream>: 2 transactions have the number -1 (at positions 1, 3), and only one "
        "transaction can be the initial one; give them different numbers"
    )


FORMATS = (
    "the formats are edn, jepsen-json, jepsen, registers, workload, dbcop, dbcop-json, hist, "
    "cobra, viper, plume, awdit, leopard"
)

EVENT = "{:type :ok, :process 0, :f :txn, :value [[:w 2 3]]}\n"

# content → formats, or the start of what is said
DETECTION = [
    (b"", ("edn",)),
    (b" \n\t\n", ("edn",)),
    (b"PK\x03\x04rest", "a zip archive; unpack it first"),
    (b"\x00\x01\x02\x03", "binary data that starts with 00 01 02 03"),
    (b"hello\nworld\n", "text that starts with 'hello'"),
    (b"Some text, like this\n", "text that starts with 'Some text, like this'"),
    (f"\ufeff{EVENT}".encode("utf-16-le"), "not UTF-8 at line 1, but UTF-16; write it as UTF-8"),
    (f"\ufeff{EVENT}".encode("utf-16-be"), "not UTF-8 at line 1, but UTF-16; write it as UTF-8"),
    (f"{EVENT}{EVENT}".replace(":w 2", ':w "é"', 1).encode("latin-1"), "not UTF-8 at line 1, but"),
    ((EVENT + EVENT.replace(":w 2", ':w "é"')).encode("latin-1"), "not UTF-8 at line 2, but byte"),
    (b"\xff\xfe\xfd and much more than four bytes", "binary data that starts with"),
    (b"[]\n", ("jepsen-json",)),
    (b"---\n", ("hist", "awdit")),
    (b"===\n", ("awdit",)),
    (b"{:type :ok}", ("edn",)),
    (b"; comment\n\n{ :type :ok}", ("edn",)),
    (b"#jepsen.history.Op{:type :ok}", ("edn",)),
    (b"({:a 1})", ("edn",)),
    (b"[\n ; why\n {:a 1}]", ("edn",)),
    (b"\xef\xbb\xbf{:type :ok}", ("edn",)),
    (b'{"type": "ok", "value": []}', ("jepsen-json",)),
    (b'[{"process": 1, "value": []}]', ("jepsen-json",)),
    (b'{"value": []}\n', ("viper",)),
    (b'{"isInitial": true, "value": []}\n', ("viper",)),
    (b'{\n "params": {},\n "data": []}', ("dbcop-json",)),
    (b'{"data": [[]]', ("dbcop-json",)),
    (b"[[", ("dbcop-json",)),
    (b'{"valid": true}', "JSON that starts with"),
    (b"[1, 2]", "JSON that starts with"),
    (b"[x:=1]\n", ("hist",)),
    (b"// only a comment\n", ("hist",)),
    (b"----\n[ x == ? ]!\n", ("hist",)),
    (b"r(1,2,3,4)\n", ("plume",)),
    (b"w(1,2,3,-1)\r\n", ("plume",)),
    (b"r 1 2\n", ("awdit",)),
    (b"=====\nw 1 2\nwhat is this\n", ("awdit",)),
    (b'{"threadID":"0-0-0","transactionID":"0-0-0,0"}\n', ("leopard",)),
    (b"w 1 2 3\n", "text that starts with 'w 1 2 3'"),
    (b"INFO  jepsen.util - 2\t:invoke\t:cas\t[1 0]\n", ("registers",)),
    (b"{:process 1, :type :ok, :f :cas, :value [1 2]}", ("registers",)),
    (b'[{"process": 1, "type": "ok", "f": "read", "value": 3}]', ("registers",)),
    (b"{:process 1, :f :read, :value [1 5]}\n{:process 1, :f :write, :value 1}", ("registers",)),
    (
        b'{:process 0, :type :invoke, :f :append, :key "0", :value "x"}{:f :get, :process 0}',
        ("registers",),
    ),
    (b"{:process 1, :f :read, :value 5}\n{:process 2, :f :add, :value 1}", ("workload",)),
    (b"{:process 1, :f :txn, :value [[:w 1 2]]}\n{:process 2, :f :add, :value 1}", ("edn",)),
    (b'[{"process":1,"f":"transfer","value":{"from":1,"to":2,"amount":5}}]', ("workload",)),
    (b"{:f :write, :value 2}\n{:f :read, :value #{2 3}}", ("workload",)),
    (b"{:process 0, :f :write, :value 2}\n{:process 0, :f :read, :value [2 3 4]}", ("workload",)),
    (
        b"{:process 0, :f :write, :value [1 2]}\n{:process 0, :f :read, :value [1 2]}",
        ("registers",),
    ),
    (b"{:process 1, :f :read, :value {0 5}}", ("edn",)),
    (b"{:process 1, :f :read, :value [[:r 1 nil] [:r 2 nil]]}", ("edn",)),
    (b"{:process 1, :f :read, :value #{1 2}}", ("edn",)),
    (b"{:process :nemesis, :f :start}{:process 1, :f :txn, :value [[:r 1 nil]]}", ("edn",)),
    # What the nemesis does says nothing of the clients' operations.
    (
        b'{:f :cut, :value {"n1" #{"n2"} :f :add}, :process :nemesis}\n'
        b"{:process 0, :f :write, :value 3}\n{:process 1, :f :read, :value 3}",
        ("registers",),
    ),
    (
        b'[{"process":"nemesis","f":"cut","value":{"n1":["n2"]}},'
        b'{"process":0,"f":"write","value":3},{"process":1,"f":"read","value":3}]',
        ("registers",),
    ),
]


@pytest.mark.parametrize(("data", "expected"), DETECTION)
def test_detection(data, expected):
    guess = detect(data)
    if isinstance(expected, tuple):
        assert guess.formats == expected
    else:
        assert guess.formats == ()
        assert guess.looks_like.startswith(expected)


UNSUPPORTED = [
    (
        b"- - events:\n    - write: true\n",
        "dbcop's YAML; convert it to dbcop JSON: an event {write: true, variable: x, version: v} "
        'is {"Write": {"variable": x, "version": v}} there, and success is "committed"',
    ),
    (b"3\n0 1 A 5 6\n", "VeriStrong's flat list-append text; convert it to Jepsen EDN"),
]


@pytest.mark.parametrize(("data", "what"), UNSUPPORTED)
def test_known_but_unsupported(data, what):
    with pytest.raises(UnsupportedError) as error:
        load_history(io.BytesIO(data))
    assert str(error.value) == f"<stream>: unsupported: {what}; {FORMATS}"


def test_unknown_content():
    with pytest.raises(HistoryError) as error:
        load_history(io.BytesIO(b"hello\n"))
    assert str(error.value) == (
        "<stream>: not a history in a known format (got text that starts with 'hello'); " + FORMATS
    )


def test_open_content():
    with pytest.raises(HistoryError) as error:
        load_history(io.BytesIO(b"---\n"))
    assert str(error.value) == (
        "<stream>: the content fits several formats (got only lines of dashes); choose "
        "one with --from hist or --from awdit"
    )


def test_long_fork():
    """Jepsen's workload of this name: its transactions are called :read and :write."""
    h = load_history(DATA / "long-fork.edn")
    assert [(t.status, t.ops) for t in h.transactions()] == [
        ("committed", [("w", 0, 1)]),
        ("maybe", [("w", 1, 1)]),
        ("committed", [("r", 0, None), ("r", 1, 1)]),
        ("committed", [("r", 1, None), ("r", 0, 1)]),
    ]
    assert check(h, "psi").outcome == "valid"
    assert check(h, "si").violation.anomaly == "long fork"


@pytest.mark.parametrize("data", [b"", b"\n \n", b"[]", b"[ ]\n", b"()", b"; nothing\n"])
def test_empty_histories(data):
    """Nothing happened: a history without transactions, whatever the format would have been."""
    assert load_history(io.BytesIO(data)).counts()["transactions"] == 0


@pytest.mark.parametrize("form", ["dbcop-json", "jepsen-json"])
def test_an_empty_list_in_either_json(form):
    assert load_history(io.BytesIO(b"[]"), format=form).counts()["transactions"] == 0


def test_the_folder_of_a_jepsen_run(tmp_path):
    """Its history is read, and not its results or the test; compressed and empty ones, too."""
    run = tmp_path / "20261123T051200.000Z"
    run.mkdir()
    (run / "results.edn").write_text("{:valid? true}")
    (run / "test.jepsen").write_bytes(b"JEPSEN\x00\x01")
    (run / "jepsen.log").write_text("INFO [main] jepsen.core - Running\n")
    (run / "history.txt").write_text("0 :invoke :txn [[:w 1 2]]\n")
    (run / "history.json").write_text('[{"type": "ok", "process": 1, "value": []}]')
    with_json = load_history(run)
    assert with_json.format == "jepsen-json"
    (run / "history.edn.xz").write_bytes(lzma.compress((DATA / "register.edn").read_bytes()))
    h = load_history(run)
    assert content(h) == EXPECTED["register.edn"][1]
    assert h.files == (str(run / "history.edn.xz"),)
    assert "results.edn" in h.ignored[0]
    (run / "history.edn.xz").unlink()
    (run / "history.edn").write_bytes(b"")
    assert load_history(run).counts()["transactions"] == 0


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_compression_by_the_standard_library(pack):
    data = (DATA / "register.edn").read_bytes()
    h = load_history(io.BytesIO(pack(data)))
    assert content(h) == EXPECTED["register.edn"][1]
    assert content(load_history(io.BytesIO(pack(data[:60]) + pack(data[60:])))) == content(h)
    with pytest.raises(HistoryError, match=r"<stream>: damaged (gzip|xz|bzip2) data"):
        load_history(io.BytesIO(pack(data)[:-9]))


def test_zstd_of_the_standard_library(monkeypatch):
    """Python 3.14 has zstd itself; the package is not asked then."""
    zstd = types.ModuleType("zstd")
    zstd.ZstdError = ValueError

    def decompress(data):
        if len(data) < 9:
            raise ValueError("cut")
        return b"w(1,1,1,1)\n"

    zstd.decompress = decompress
    package = types.ModuleType("compression")
    package.zstd = zstd
    monkeypatch.setitem(sys.modules, "compression", package)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert load_history(DATA / "plume.txt.zst").counts()["operations"] == 1
    with pytest.raises(HistoryError, match=r"<stream>: damaged zstd data \(cut\)"):
        load_history(io.BytesIO(b"\x28\xb5\x2f\xfd"))


def test_options_and_targets(tmp_path):
    cases = [
        (lambda: load_history(DATA / "plume.txt", format="xml"), "unknown history format"),
        (
            lambda: load_history(DATA / "plume.txt", timestamps=True),
            f"{DATA}/plume.txt: --timestamps applies only to Cobra logs (got plume)",
        ),
        (
            lambda: load_history(tmp_path / "none"),
            f"{tmp_path}/none: cannot read the file: No such file or directory",
        ),
        (lambda: load_history(tmp_path), f"{tmp_path}: the folder contains no history files"),
        (lambda: load_history(io.StringIO("")), "<stream>: a text stream (expected bytes)"),
        (lambda: load_history([]), "not a history (got list, expected a path, '-' or a binary"),
        (
            lambda: load_history(DATA / "cobra-times"),
            f"{DATA}/cobra-times/T1.log: the sizes of its records fit Cobra logs with timestamps "
            "only; pass --timestamps",
        ),
        (
            lambda: load_history(DATA / "cobra", timestamps=True),
            (
                f"{DATA}/cobra/T2.log: the sizes of its records fit Cobra logs without timestamps "
                "only; leave out --timestamps"
            ),
        ),
    ]
    for call, message in cases:
        with pytest.raises(HistoryError) as error:
            call()
        assert str(error.value).startswith(message)


def test_folders(tmp_path):
    """A folder of logs is one history; a damaged log is an error, not one file less."""
    cobra = tmp_path / "cobra"
    shutil.copytree(DATA / "cobra", cobra)
    (cobra / "T3.log").write_bytes(b"garbage")
    with pytest.raises(HistoryError) as error:
        load_history(cobra)
    assert str(error.value) == (
        f"{cobra}/T3.log: not a log of the cobra history in {cobra} (got text that starts with "
        "'garbage', expected Cobra client logs T*.log); was it copied completely?"
    )
    (cobra / "T3.log").write_bytes(b"")
    assert load_history(cobra).ignored[-1] == "1 log without transactions"
    for log in ("T2.log", "T10.log"):
        data = (cobra / log).read_bytes()
        (cobra / f"{log}.gz").write_bytes(gzip.compress(data))
        (cobra / log).unlink()
    assert content(load_history(cobra)) == EXPECTED["cobra"][1]
    two = tmp_path / "two"
    two.mkdir()
    for name in ("a.txt", "b.txt"):
        shutil.copy(DATA / "plume.txt", two / name)
    with pytest.raises(HistoryError) as error:
        load_history(two)
    assert str(error.value) == (
        f"{two}: the folder contains 2 histories (a.txt, b.txt); check them one by one"
    )
    none = tmp_path / "none"
    none.mkdir()
    (none / "readme").write_text("hello")
    with pytest.raises(HistoryError) as error:
        load_history(none)
    assert str(error.value) == (
        f"{none}: the folder contains no history in a known format (looked at readme: "
        f"text that starts with 'hello'); {FORMATS}"
    )
    outer = tmp_path / "outer"
    shutil.copytree(DATA / "viper", outer / "log")
    with pytest.raises(HistoryError) as error:
        load_history(outer)
    assert str(error.value) == (
        f"{outer}: the folder contains no history files; perhaps you mean its folder log"
    )


def test_damaged_compression(tmp_path):
    """A cut is an error, not a shorter history; so are flipped bytes that the format notices."""
    for name, kind in (("register.edn.gz", "gzip"), ("plume.txt.zst", "zstd")):
        if kind == "zstd":
            pytest.importorskip("zstandard")
        file = tmp_path / name
        data = (DATA / name).read_bytes()
        for damaged in (data[:-5], data[: len(data) // 2], data[:6] + b"\xff" * 9 + data[15:]):
            file.write_bytes(damaged)
            with pytest.raises(HistoryError) as error:
                load_history(file)
            assert str(error.value).startswith(f"{file}: damaged {kind} data (")
    file.write_bytes(data + data)  # frames follow one another
    assert load_history(file).counts()["operations"] == 8


def test_zstd_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(HistoryError) as error:
        load_history(DATA / "plume.txt.zst")
    assert str(error.value) == (
        f"{DATA}/plume.txt.zst: the file is compressed with zstd, but the package "
        "zstandard is not installed; pip install 'isolang[zstd]', or decompress it "
        "first: zstd -d"
    )


def test_timeout():
    lines = b"w(1,1,1,1)\n" * 2000
    with pytest.raises(TimeoutError):
        load_history(io.BytesIO(lines), timeout=1e-9)


WRONG = [
    (
        "hist",
        b"[x:=1\n---\n",
        "line 2: a session ends inside the transaction of line 1 (no ']')",
    ),
    (
        "hist",
        b"[x:=1",
        "line 1: a transaction without ']' (the file ends inside it)",
    ),
    (
        "hist",
        b"[x:=1 [",
        "line 1: '[' inside the transaction of line 1 (no ']')",
    ),
    (
        "hist",
        b"\n[]\n",
        "line 2: an empty transaction (got [], expected events in it)",
    ),
    (
        "hist",
        b"x:=1\n",
        "line 1: 'x:=1' outside a transaction (no '[' before it)",
    ),
    (
        "hist",
        b"[x=1]\n",
        "line 1: not a history (got 'x=1]', expected [x:=1 y==2 z==?], ] or ]!, a line of"
        " dashes, or // and a comment)",
    ),
    (
        "hist",
        b"[x:=1a]\n",
        "line 1: not a history (got 'x:=1a]', expected ",
    ),
    (
        "hist",
        b"[x:=18446744073709551616]",
        "line 1: a version beyond 64 bits (got '18446744073709551616')",
    ),
    (
        "hist",
        b"[x:=1]\n\xff",
        "line 2: not a history (got '\\xff', expected [x:=1 y==2 z==?], ] or ]!, a line of"
        " dashes, or // and a comment)",
    ),
    (
        "dbcop-json",
        b"[[0]]",
        "line 1, session 1, transaction 1: not a transaction (got '0', expected {\"events\""
        ': [...], "committed": true or false})',
    ),
    (
        "dbcop-json",
        b"{}",
        'line 1: no sessions (got no field "data", expected {"data": [[...], ...]})',
    ),
    (
        "dbcop-json",
        b"3",
        "line 1: not a list of sessions (got '3', expected [[...], ...])",
    ),
    (
        "dbcop-json",
        b"[3]",
        "line 1, session 1: not a list of transactions (got '3', expected [...])",
    ),
    (
        "dbcop-json",
        b"[[[]]]",
        "line 1, session 1, transaction 1: not a transaction (got '[]', expected {\"events"
        '": [...], "committed": true or false})',
    ),
    (
        "dbcop-json",
        b'[[{"events": []}]]',
        'line 1, session 1, transaction 1: no outcome (got \'{"events": []}\', expected {"e'
        'vents": [...], "committed": true or false})',
    ),
    (
        "dbcop-json",
        b'[[{"events": [["x", 1, 2]], "committed": true}]]',
        "line 1, session 1, transaction 1, event 1: not an event (got '[\"x\", 1, 2]', expe"
        'cted {"Read": {"variable": n, "version": n or null}}, {"Write": …}, ["r", n, n o'
        'r null] or ["w", n, n])',
    ),
    (
        "dbcop-json",
        b'[[{"events": [["w", 1, null]], "committed": true}]]',
        "line 1, session 1, transaction 1, event 1: not a version (got 'null', expected a"
        "n unsigned 64-bit integer)",
    ),
    (
        "dbcop-json",
        b'[[{"events": [["r", true, 1]], "committed": true}]]',
        "line 1, session 1, transaction 1, event 1: not a variable (got 'true', expected "
        "an unsigned 64-bit integer)",
    ),
    (
        "dbcop-json",
        b'[[{"events": [["r", 1, -1]], "committed": true}]]',
        "line 1, session 1, transaction 1, event 1: not a version (got '-1', expected an "
        "unsigned 64-bit integer or null)",
    ),
    (
        "dbcop-json",
        b"[" * 100_000,
        "line 1: more than 10000 nested brackets",
    ),
    (
        "viper",
        b'\n{"value": 3}\n',
        "line 2: not a transaction (got '3', expected {\"value\": [...]})",
    ),
    (
        "viper",
        b'{"value": [',
        "line 1: the file ends inside a list (expected ']'); hint: truncated",
    ),
    (
        "viper",
        b'{"value": [["x", 1, 2]]}',
        'line 1, operation 1: not an operation (got \'["x", 1, 2]\', expected ["r", key, va'
        'lue, dead], ["w", key, value, succeeded], ["i", key, value, read, dead, succeede'
        'd, …], ["d", …] or ["range", …])',
    ),
    (
        "viper",
        b'{"value": [["r", [1], 2]]}',
        "line 1, operation 1: not a key (got '[1]', expected a number or a string)",
    ),
    (
        "viper",
        b'{"value": [["w", 1, 2, 3]]}',
        "line 1, operation 1: not a truth value (got '3', expected true or false)",
    ),
    (
        "viper",
        b'{"value": [], "isInitial": 1}',
        "line 1: \"isInitial\" is no truth value (got '1', expected true or false)",
    ),
    (
        "viper",
        b'{"value": [], "isInitial": true}\n{"value": [], "isInitial": true}',
        'line 2: a second "isInitial" transaction (expected one at most)',
    ),
    (
        "viper",
        b'{"value": [["w", "\\ud800", 2]]}',
        "line 1: an unpaired surrogate in a string",
    ),
]


@pytest.mark.parametrize(("form", "data", "message"), WRONG)
def test_wrong_files(form, data, message):
    """Wrong input: the place, what was found, what was expected."""
    with pytest.raises(HistoryError) as error:
        load_history(io.BytesIO(data), format=form)
    text = str(error.value)
    assert text.startswith(f"<stream>: {message}")
    assert message.endswith("expected ") or text == f"<stream>: {message}"


def test_viper_corners():
    """An initial state as a range; unknown fields; strings; reads of nil."""
    data = (
        b'{"value": [["range", "nil", "nil", [{"id": "a", "val": 1}], [{"id": 2, "val": 7}]]], '
        b'"isInitial": true}\n'
        b'{"value": [["r", "a", "nil", false], ["i", 2, 8, null, false, false, true]], "x": 1}\n'
    )
    h = load_history(io.BytesIO(data), format="viper")
    assert h.initial_values() == {"a": 1, 2: 7}
    assert list(h.transactions())[1].ops == [("r", "a", None), ("w", 2, 8)]
    assert list(h.transactions())[1].failed == (1,)
    assert h.ignored == ("1 failed operation", "unknown fields: x")


def test_viper_versions_without_a_writer_have_one_value():
    """Two values that nobody wrote cannot both be initial; 0 and nil say that no row was there."""
    for reads, outcome in [
        ('["r", 2, 98, false], ["r", 2, 99, false]', "invalid"),
        ('["r", 2, 98, false], ["r", 2, 98, false]', "valid"),
        ('["r", 2, 98, false], ["r", 2, 0, false], ["r", 2, "nil", false]', "valid"),
        ('["r", 2, "0", false], ["r", 2, 0, false], ["r", 2, 98, false]', "valid"),
    ]:
        operations = f"[{reads}]"
        split = operations.replace("], [", ']]}\n{"value": [[')
        for lines in (operations, split):
            h = load_history(io.BytesIO(f'{{"value": {lines}}}'.encode()), format="viper")
            verdict = check(h, "pl-2")
            assert (verdict.outcome, verdict.certified) == (outcome, True), lines
    data = b'{"value": [["w", 2, 5, true]], "isInitial": true}\n{"value": [["r", 2, 0, false]]}'
    verdict = check(load_history(io.BytesIO(data), format="viper"), "ser")
    assert (verdict.outcome, verdict.certified) == ("valid", True)


def test_cobra_keys_without_a_value_are_nil(tmp_path):
    """What a read of an absent key or of a fence shows is no second value of what was loaded."""
    init, null, fence, other_fence = 0xBEBEEBEE, 0xDEADBEEF, 0x23332333, 0x66666666
    for ids, outcome in [
        ([(init, init, 5), (init, init, 5), (null, null, 6), (init, fence, 7)], "valid"),
        ([(init, fence, 5), (init, other_fence, 6), (init, null, 7)], "valid"),
        ([(init, init, 5), (init, init, 6)], "invalid"),
    ]:
        reads = [("R", txn, write, 9, value) for txn, write, value in ids]
        (tmp_path / "T1.log").write_bytes(cobra_log([("S", 1), *reads, ("C", 1)]))
        verdict = check(load_history(tmp_path, format="cobra"), "pl-2")
        assert (verdict.outcome, verdict.certified) == (outcome, True), ids


def test_walk_cobra_needs_binary():
    """Texts that begin with S are no Cobra logs, and cut logs are."""
    assert not has_cobra_records(b"S" + b"WRITE(12)" * 20, timestamps=False)
    whole = (DATA / "cobra" / "T2.log").read_bytes()
    assert all(has_cobra_records(whole[:n], timestamps=False) for n in range(9, len(whole)))


def test_unknown_results():
    """In :info and :fail maps nil is not known; it is not the initial state."""
    data = (
        b"{:type :invoke, :process 1, :f :txn, :value [[:r 1 nil]]}\n"
        b"{:type :info, :process 1, :f :txn, :value [[:r 1 nil]]}\n"
    )
    h = load_history(io.BytesIO(data))
    assert h.transaction(0).ops == [("r", 1, UNKNOWN)]
    assert h.ignored == ("1 read of unfinished or failed transactions, whose results are unknown",)


def corpora():
    table = CORPORA / "LABELS.tsv"
    if not table.exists():
        return []
    return [line.split("\t") for line in table.read_text().splitlines()[1:]]


@pytest.mark.skipif(not corpora(), reason="the corpora are not here")
def test_corpora():
    """Every file of the corpora loads in its format, or is refused for the right reason."""
    names = {"awdit-test": "awdit", "etcd-log": "registers", "kv-edn": "registers"}
    loaded = 0
    for path, form, *_ in corpora():
        if path == "edn/jepsen/set_full.edn":
            with pytest.raises(HistoryError, match="line 587: the value has no key"):
                load_history(CORPORA / path)
            continue
        h = load_history(CORPORA / path)
        workload = path.startswith(("edn/custom/", "edn/jepsen/"))
        other = "workload" if workload else "registers" if "/knossos/" in path else ""
        assert h.format == (other or names.get(form, form))
        assert h.counts()["operations"] > 0
        loaded += 1
    assert loaded > 200


ELLE = (
    "elle-list-append", "elle-rw-register", "jepsen-bank", "jepsen-counter", "jepsen-long-fork",
    "jepsen-set", "jepsen-set-full", "knossos-cas-register", "knossos-mutex", "knossos-register",
    "comments", "sequential", "list-append", "rw-register",
)  # fmt: skip


@pytest.mark.parametrize("name", ELLE)
def test_models_of_elle_are_names_of_formats(name):
    """Each ``--model`` of elle-cli can be said after ``--from``, in any case."""
    assert find_format(name).name in ("edn", "registers", "workload")
    assert find_format(name.upper()) is find_format(name)


@pytest.mark.parametrize("name", ["elle-list-append", "list-append", "rw-register"])
@pytest.mark.parametrize(
    "text",
    [
        b"{:type :ok, :f :txn, :process 0, :value [[:append 1 1] [:r 1 [1]]]}",
        b'[{"type": "ok", "f": "txn", "process": 0, "value": [["append", 1, 1], ["r", 1, [1]]]}]',
    ],
)
def test_transactions_by_the_model_s_name(name, text):
    """The name is one for EDN and for JSON, as elle-cli's is."""
    history = load_history(io.BytesIO(text), format=name)
    assert [len(t.ops) for t in history.transactions()] == [2]
