"""Tables with writes that were not seen: what their predicate reads say no more."""

import isolang
from isolang.history.not_seen import unseen_line
from isolang.history.statements import statements_in
from isolang.observe.history.lines import settle_possible_facts, without_predicate_reads

SCAN = '[:rp {:table "t" :where [:= "v" 1]} {}]'
OTHER = '[:rp {:table "u" :where [:= "v" 1]} {}]'
ABSENT = '[:r-not-in ["t" 1] [nil]]'
READ = '[:r ["t" 1] {"id" 1}]'
WRITE = '[:w ["u" 2] {"v" 1}]'
WRITES = f"{{:index 0, :type :invoke, :process 1, :time 1, :f :txn, :value [{WRITE}]}}\n"


def ended(kind, values, perhaps, statements):
    """A completion as observers write it."""
    tab = "\t".join
    callers = tab(f'"a.py:{n}"' for n, _ in enumerate(values, 1))
    possible = f", :perhaps [{tab(perhaps)}]" if perhaps else ""
    return (
        f"{{:index 1, :type :{kind}, :process 1, :time 2, :f :txn, :value [{tab(values)}], "
        f":callers [{callers}], :statements [{tab(statements)}]{possible}}}\n"
    )


def without(folder, text, kept=lambda table, version: False):
    """The text without the predicate reads of t, once possible facts are settled, and which."""
    path, into, last = (folder / name for name in ("all", "some", "last"))
    path.write_text(text)
    removed = [*without_predicate_reads(path, {"t": "t/1"}, into)]
    settle_possible_facts(into, kept, last)
    return last.read_text(), removed


def test_possible_facts_of_a_doubtful_table_are_left_out_and_counted(tmp_path):
    perhaps = [
        f'[0 {OTHER} "1" "b.py:1" ""]',
        f'[1 {SCAN} "1" "b.py:2" "not found by SELECT 1"]',
        f'[1 {SCAN} "1" "b.py:3" "" [["u" "7"]]]',
        f'[2 {ABSENT} "1" "b.py:4" ""]',
        f'[3 {READ} "2" "b.py:5" ""]',
    ]
    values = [WRITE, SCAN, OTHER]
    text, removed = without(tmp_path, WRITES + ended("ok", values, perhaps, ['"1"', '"2"', '"3"']))
    possible = f':perhaps [[0 {OTHER} "1" "b.py:1" ""]\t[2 {READ} "2" "b.py:5" ""]]'
    rest = f':value [{WRITE}\t{OTHER}], :callers ["a.py:1"\t"a.py:3"], :statements ["1"\t"3"]'
    assert text.endswith(f"{rest}, {possible}}}\n")
    assert removed == [("a.py:2", ""), ("SELECT 1", "b.py:2"), ("b.py:3", ""), ("b.py:4", "")]


def test_a_transaction_of_unknown_outcome_keeps_the_statements_of_its_writes(tmp_path):
    text, _ = without(tmp_path, WRITES + ended("info", [SCAN, WRITE], [], ['"2"']))
    assert ':statements ["2"]' in text
    (statements,) = {*statements_in(text.encode(), "run").values()}
    assert len(statements) == 1


def test_what_was_left_out_neither_convicts_nor_acquits(tmp_path):
    """Rows of t, which only a doubtful read missed, in a cycle with one of u."""
    text = (
        '{:index 0, :type :invoke, :process 1, :time 1, :f :txn, :value [[:w ["u" 2] {"v" 1}]]}\n'
        '{:index 1, :type :invoke, :process 2, :time 2, :f :txn, :value [[:w ["t" 2] {"v" 1}]]}\n'
        '{:index 2, :type :ok, :process 1, :time 3, :f :txn, :value [[:w ["u" 2] {"v" 1}]]'
        f', :perhaps [[0 {SCAN} "1" "b.py:1" ""]]}}\n'
        f'{{:index 3, :type :ok, :process 2, :time 4, :f :txn, :value [{OTHER}\t[:w ["t" 2] '
        '{"v" 1}]]}\n'
    )
    path = tmp_path / "run.edn"
    path.write_text(text)
    assert isolang.check(isolang.load_history(path), "ser").cause == "possible facts"
    counted = isolang.load_history(path, possible_facts="count")
    assert isolang.check(counted, "ser").outcome == "invalid"
    changed, removed = without(tmp_path, text)
    assert len(removed) == 1
    path.write_text(changed + unseen_line({"conditions": ["conditions (1)"]}))
    verdict = isolang.check(isolang.load_history(path), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "unseen")
