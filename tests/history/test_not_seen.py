"""What the observer of a recorded application did not see, as comments of the recording say."""

import gzip
import io
import json

import pytest
from msgspec.structs import replace
from support.cli import run_here

import isolang
from isolang.certify.certificate import verify
from isolang.certify.errors import NotCertifiedError
from isolang.errors import HistoryError
from isolang.history.not_seen import read_unseen
from isolang.options import Options
from isolang.pipeline.levels import levels_of
from isolang.watch.parts import Parts

SKEW = """\
{:type :invoke, :process 0, :value [[:w :y 1]]}
{:type :invoke, :process 1, :value [[:w :x 1]]}
{:type :ok, :process 0, :value [[:r :x nil] [:w :y 1]]}
{:type :ok, :process 1, :value [[:r :y nil] [:w :x 1]]}
"""
UNSEEN = """\
;:unseen {"limits": ["rows that LIMIT may have left out (2; first: SELECT a, app.py:3)"]}
"""
MORE = """\
;:unseen {"limits": ["others (1)"], "shapes": ["WITH (1)"]}
"""
REASON = (
    "the recorded history satisfies the level, but some operations were not seen: rows that LIMIT "
    "may have left out (2; first: SELECT a, app.py:3); hint: --allow-unseen limits accepts this "
    "(allow_unseen in Python)"
)


def read(text, **options):
    return isolang.load_history(io.BytesIO(text.encode()), "edn", **options)


def test_what_was_not_seen_makes_a_valid_verdict_unknown():
    verdict = isolang.check(read(SKEW + UNSEEN), "si")
    assert (verdict.outcome, verdict.cause, verdict.reason) == ("unknown", "unseen", REASON)
    assert not verdict.certified
    assert isolang.check(read(SKEW), "si").outcome == "valid"


def test_it_never_changes_a_violation():
    verdict = isolang.check(read(SKEW + UNSEEN), "ser")
    assert verdict.violation.anomaly == "write skew"
    assert verdict.certified


def test_every_kind_has_to_be_allowed():
    text = SKEW + UNSEEN + ';:columns {"t": {"at": "date"}}\n' + MORE
    assert read(text).unseen == {
        "limits": ("rows that LIMIT may have left out (2; first: SELECT a, app.py:3)",
                   "others (1)"),
        "shapes": ("WITH (1)",),
    }  # fmt: skip
    allowed = isolang.check(read(text, allow_unseen=["limits", "copy"]), "si")
    assert allowed.outcome == "unknown"
    assert allowed.reason.count("--allow-unseen") == 1
    verdict = isolang.check(read(text, allow_unseen=["shapes", "limits"]), "si")
    assert verdict.outcome == "valid"
    assert 'read with allow_unseen ["shapes", "limits"]' in map(str, verdict.history.caveats)


RECORDED = """\
{:index 0, :type :invoke, :process 0, :time 0, :observed true, :f :init, :value {["t" 1] {:v 0}}}
{:index 1, :type :ok, :process 0, :time 0, :f :init, :value {["t" 1] {:v 0}}}
{:index 2, :type :invoke, :process 1, :time 1, :f :txn, :value [[:w ["t" 1] {:v 1}]]}
{:index 3, :type :ok, :process 1, :time 2, :value [[:r ["t" 1] {:v 0}] [:w ["t" 1] {:v 1}]]}
"""
ANOTHER = """\
{:index 8, :type :invoke, :process 4, :time 7, :observed true, :f :txn, :value [[:w ["u" 1] {}]]}
{:index 9, :type :ok, :process 4, :time 8, :f :txn, :value [[:w ["u" 1] {}]]}
"""
END = ";:unseen {}\n"
# A row that a writer outside the recording deleted.
MISSED = """\
{:index 4, :type :invoke, :process 2, :time 3, :f :txn, :value []}
{:index 5, :type :ok, :process 2, :time 4, :f :txn, :value [[:rp {:table "t" :where :true} {}]]}
"""
LOST = """\
{:index 6, :type :invoke, :process 3, :time 5, :f :txn, :value [[:w ["t" 1] {:v 2}]]}
{:index 7, :type :ok, :process 3, :time 6, :value [[:r ["t" 1] {:v 0}] [:w ["t" 1] {:v 2}]]}
"""


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (RECORDED + END, "valid"),
        (RECORDED, "unknown"),
        (RECORDED + UNSEEN, "unknown"),
        (RECORDED + END + ANOTHER + END, "valid"),
        (RECORDED + ANOTHER + END, "unknown"),
        (RECORDED + END + ANOTHER, "unknown"),
        (RECORDED.replace(" :observed true,", ""), "valid"),
        (RECORDED.replace("{:v 1}", '{:v ", :observed true,"}') + END, "valid"),
    ],
    ids=["whole", "killed", "unseen", "joined", "the first killed", "the second killed", "old",
         "a value"],
)  # fmt: skip
def test_a_recording_without_an_end_is_never_valid(text, outcome):
    verdict = isolang.check(read(text), "ser")
    assert verdict.outcome == outcome, verdict
    assert outcome == "valid" or verdict.cause == "unseen"


@pytest.mark.parametrize("kind", ["unread", "decided"])
def test_what_could_not_matter_in_one_of_several_recordings_may_matter_in_another(kind):
    """The other one may read the tables of these writes, or write those of these reads."""
    end = f';:unseen {{"{kind}": ["things (1)"]}}\n'
    assert isolang.check(read(RECORDED + end), "ser").outcome == "valid"
    joined = RECORDED + end + ANOTHER + END
    verdict = isolang.check(read(joined), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "unseen")
    assert "things (1); hint: --allow-unseen joined accepts this" in verdict.reason
    assert isolang.check(read(joined, allow_unseen=["joined"]), "ser").outcome == "valid"
    old = joined.replace(" :observed true,", "")
    assert isolang.check(read(old), "ser").outcome == "unknown"


def test_a_recording_that_was_cut_is_never_valid():
    whole = RECORDED + UNSEEN.replace("limits", "decided") + ";:unseen {}\n"
    assert isolang.check(read(whole), "ser").outcome == "valid"
    for end, letter in enumerate(RECORDED):
        if letter == "\n":
            verdict = isolang.check(read(RECORDED[: end + 1]), "ser")
            assert (verdict.outcome, verdict.cause) == ("unknown", "unseen"), end
            assert "--allow-unseen end accepts this" in verdict.reason
            allowed = read(RECORDED[: end + 1], allow_unseen=["end"])
            assert isolang.check(allowed, "ser").outcome == "valid"
    for end in range(len(RECORDED) + 1, len(RECORDED) + len(END) - 2):
        try:
            outcome = isolang.check(read((RECORDED + END)[:end]), "ser").outcome
        except HistoryError:
            continue
        assert outcome == "unknown", end


def test_without_an_end_no_predicate_read_convicts():
    """The audit at the end removes those that a writer outside the recording contradicts."""
    text = RECORDED + MISSED
    assert isolang.check(read(text + END), "ser").outcome == "invalid"
    history = read(text)
    assert isolang.check(history, "ser").outcome == "unknown"
    assert "1 predicate read of a recording without an end, because no audit confirmed them" in (
        history.ignored
    )
    assert levels_of(history).levels["ser"].standing == "unknown"
    assert isolang.check(read(text, allow_unseen=["end"]), "ser").outcome == "invalid"
    absent = text.replace('[:rp {:table "t" :where :true} {}]', '[:r-not-in ["t" 2] [nil]]')
    assert isolang.check(read(absent), "ser").outcome == "unknown"
    assert isolang.check(read(text + LOST), "ser").violation.anomaly == "lost update"


def test_a_converted_recording_without_an_end_has_none_either(tmp_path, capfd):
    path, into = tmp_path / "run.edn", tmp_path / "into.edn"
    path.write_text(RECORDED)
    assert run_here(capfd, "convert", "--to", "edn", path, into).code == 0
    assert into.read_text().splitlines()[-1].startswith(';:unseen {"end": ["what the observer had')
    path.write_text(RECORDED + END)
    assert run_here(capfd, "convert", "--to", "edn", path, into).code == 0
    assert isolang.check(isolang.load_history(into), "ser").outcome == "valid"


ABSENT = MISSED.replace('[:rp {:table "t" :where :true} {}]', '[:r-not-in ["t" 2] [nil]]')


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RECORDED + END, 0),
        (RECORDED + MISSED + END, 1),
        (RECORDED, 3),
        (RECORDED + ANOTHER + END, 3),
        (RECORDED + MISSED, 3),
        (RECORDED + ABSENT, 3),
        (RECORDED + MISSED + LOST, 1),
    ],
    ids=["whole", "whole, missed", "killed", "the first killed", "missed", "absent", "lost"],
)
def test_a_watch_of_a_recording_judges_as_a_check_does(tmp_path, capfd, text, code):
    """Without an end, it is never valid, and no predicate read convicts."""
    path = tmp_path / "log.edn"
    path.write_text(text)
    asked = ("-s", "ser", "--from", "edn")
    run = run_here(capfd, "watch", *asked, "--until-idle", "0", path)
    assert run.code == run_here(capfd, "check", *asked, path).code == code, run.out
    assert ("the recording has no end" in " ".join(run.out.split())) == (code == 3)


def test_a_compressed_recording_without_an_end_does_not_convict(tmp_path, capfd):
    """The watch looks for the end in the decompressed files, also if they were rotated."""
    asked = ("watch", "-s", "ser", "--from", "edn", "--until-idle", "0")
    packed, log = tmp_path / "log.edn.gz", tmp_path / "rotated.edn"
    packed.write_bytes(gzip.compress((RECORDED + MISSED).encode()))
    (tmp_path / "rotated.edn.1").write_text(RECORDED)
    log.write_text(MISSED)
    for path in (packed, log):
        assert run_here(capfd, *asked, path).code == 3
    packed.write_bytes(gzip.compress((RECORDED + MISSED + END).encode()))
    log.write_text(MISSED + END)
    for path in (packed, log):
        assert run_here(capfd, *asked, path).code == 1


def test_a_chain_of_a_recording_without_an_end_is_not_accepted(tmp_path, capfd, monkeypatch):
    path, state = tmp_path / "log.edn", tmp_path / "state"
    path.write_text(RECORDED)
    monkeypatch.setattr(Parts, "lacks_end", False)
    watch = ("watch", "-s", "ser", "--from", "edn", "--until-idle", "0", "--state", state, path)
    assert run_here(capfd, *watch).code == 0
    run = run_here(capfd, "verify", state, path)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")


def test_a_changed_history_still_lacks_it():
    history = read(SKEW + UNSEEN)
    assert isolang.check(history.without_versions(), "si").outcome == "unknown"
    assert isolang.check(replace(history, name="other"), "si").outcome == "unknown"


def test_no_level_is_satisfied():
    levels = levels_of(read(SKEW + UNSEEN), Options())
    assert not levels.strongest()
    assert levels.levels["ser"].standing == "violated"
    assert levels.levels["si"].reason == REASON
    assert levels_of(read(SKEW + UNSEEN, allow_unseen=["limits"])).levels["si"].standing == (
        "satisfied"
    )


@pytest.mark.parametrize(
    "comment", [";:unseen", ";:unseen ", ";:unseen {", ";:unseen [1]", ';:unseen {"limits": 2}']
)
def test_a_malformed_comment_is_refused(comment):
    """Rather than ignored, because it may be the rest of one that was cut off."""
    with pytest.raises(HistoryError, match="run:5: not what a recording did not see"):
        read_unseen((SKEW + comment).encode(), "run")


def test_commands_say_so(tmp_path, capfd):
    path = tmp_path / "run.edn"
    path.write_text(SKEW + UNSEEN)
    run = run_here(capfd, "check", "-s", "si", "-o", "json", path)
    report = json.loads(run.out)
    assert (run.code, report["verdict"], report["reason"]) == (3, "unknown", REASON)
    run = run_here(capfd, "check", "-s", "ser", path)
    assert (run.code, "strongest satisfied: none" in run.out) == (1, True)
    run = run_here(capfd, "check", "-s", "ser", "--allow-unseen", "limits", path)
    assert (run.code, "strongest satisfied: strong-si;" in run.out) == (1, True)
    run = run_here(capfd, "check", "-s", "si", "--allow-unseen", "limits", path)
    assert run.code == 0
    run = run_here(capfd, "levels", "--at-least", "si", path)
    assert (run.code, "strongest satisfied  none" in run.out) == (3, True)


def test_a_certificate_of_less_is_not_accepted(tmp_path):
    """Such as one made before the comment was written, or by hand."""
    history = read(SKEW + UNSEEN)
    seen = isolang.check(replace(history, unseen={}), "si")
    with pytest.raises(NotCertifiedError, match="some operations were not seen"):
        verify(seen.certificate(), history, seen.spec)
    convicted = isolang.check(history, "ser")
    assert verify(convicted.certificate(), history, convicted.spec)


MORE_FACTS = SKEW.replace(
    "[:w :y 1]]}\n{:type :ok", "[:w :y 1]] :perhaps [[0 [:r :z nil]]]}\n{:type :ok"
)


@pytest.mark.parametrize("text", [SKEW + UNSEEN, MORE_FACTS])
def test_a_watch_says_what_it_did_not_consider(tmp_path, capfd, text):
    path, state = tmp_path / "log.edn", tmp_path / "state"
    path.write_text(text)
    run = run_here(
        capfd, "watch", "-s", "si", "--from", "edn", "--until-idle", "0", "--state", state, path
    )
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")
    assert "the log names facts that only may have decided" in run.out
    run = run_here(capfd, "watch", "-s", "ser", "--from", "edn", "--until-idle", "0", path)
    assert (run.code, run.out.split()[0]) == (1, "INVALID")


def test_a_chain_of_a_log_that_names_more_is_not_accepted(tmp_path, capfd, monkeypatch):
    path, state = tmp_path / "log.edn", tmp_path / "state"
    path.write_text(SKEW + UNSEEN)
    monkeypatch.setattr(Parts, "lacks_facts", False)
    run = run_here(
        capfd, "watch", "-s", "si", "--from", "edn", "--until-idle", "0", "--state", state, path
    )
    assert run.code == 0, run.out
    run = run_here(capfd, "verify", state, path)
    assert (run.code, run.out.split()[0]) == (3, "UNKNOWN")


TRANSFER = """\
{:type :invoke, :process 0, :value [[:w "a/1" 1]], :label "pay"}
{:type :ok, :process 0, :value [[:w "a/1" 1]], :label "pay"}
"""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TRANSFER + UNSEEN, "rows that LIMIT may have left out"),
        (TRANSFER + ';:unseen {"decided": ["reads that cannot matter (1)"]}\n', "cannot matter"),
        (
            TRANSFER.replace('"pay"}\n', '"pay" :perhaps [[0 [:r "a/2" nil]]]}\n'),
            "only may have decided",
        ),
    ],
)
def test_programs_of_which_not_everything_is_known_are_not_robust(tmp_path, capfd, text, what):
    """Not even if what was not seen could not matter in the run."""
    path = tmp_path / "run.edn"
    path.write_text(TRANSFER)
    assert run_here(capfd, "robust", path).code == 0
    path.write_text(text)
    run = run_here(capfd, "robust", "--templates", tmp_path / "t", path)
    assert (run.code, what in run.out, "lowest level for" in run.out) == (3, True, False)
    assert what in (tmp_path / "t").read_text()
    if "decided" in text:
        assert isolang.check(read(text), "ser").outcome == "valid"
